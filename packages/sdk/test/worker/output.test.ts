import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { captureConsole, printingTo } from "../../src/worker/console-capture.js";
import { Output } from "../../src/worker/output.js";

describe("the saved output of an attempt", () => {
  it("has one entry a line, with its source", () => {
    const output = new Output(1_000);
    output.write("log", "begun");
    output.write("out", "two\nlines");
    output.write("err", "oh");
    expect(output.take()).toEqual({ text: "log begun\nout two\nout lines\nerr oh\n", cut: false });
  });

  it("is returned only when it grew, and again when a save failed", () => {
    const output = new Output(1_000);
    expect(output.take()).toBeUndefined();
    output.write("out", "a");
    expect(output.take()).toBeDefined();
    expect(output.take()).toBeUndefined();
    output.putBack();
    expect(output.take()).toMatchObject({ text: "out a\n" });
  });

  it("keeps the newest lines, with the amount that was cut", () => {
    const output = new Output(30);
    for (let n = 0; n < 10; n++) output.write("out", `line ${n}`);
    // 11 bytes a line.
    expect(output.take()).toEqual({ text: "cut 88 bytes before this\nout line 8\nout line 9\n", cut: true });
  });

  it("keeps the end of one long line", () => {
    const output = new Output(64);
    output.write("out", "before");
    output.write("err", `${"x".repeat(1_000_000)}end`);
    const { text = "", cut } = output.take() ?? {};
    const [mark, line, rest] = text.split("\n");
    expect({ mark, line, rest, cut }).toEqual({
      mark: `cut ${11 + 4 + 1_000_003 + 1 - 64} bytes before this`,
      line: `err ${"x".repeat(56)}end`,
      rest: "",
      cut: true,
    });
  });

  it("counts bytes, and cuts no character in two", () => {
    const output = new Output(14);
    output.write("out", "ü".repeat(10));
    expect(output.take()?.text).toBe("cut 12 bytes before this\nout üüüü\n");
    const none = new Output(0);
    none.write("out", "a");
    expect(none.take()).toEqual({ text: "cut 6 bytes before this\n", cut: true });
  });

  it("excludes output after the attempt's end", () => {
    const output = new Output(100);
    output.close();
    output.write("out", "late");
    expect(output.take()).toBeUndefined();
  });
});

describe("the console during a capture", () => {
  const printed: unknown[][] = [];
  const methods = ["log", "info", "debug", "warn", "error", "dir"] as const;
  let releases: (() => void)[] = [];
  beforeEach(() => {
    printed.length = 0;
    for (const method of methods)
      vi.spyOn(console, method).mockImplementation((...args: unknown[]) => void printed.push(args));
  });
  afterEach(() => {
    for (const release of releases.splice(0)) release();
    vi.restoreAllMocks();
    releases = [];
  });
  const capture = () => {
    const release = captureConsole();
    releases.push(release);
    return release;
  };

  it("writes to the attempt that printed, also from callbacks, and prints as before", async () => {
    capture();
    const [a, b] = [new Output(1_000), new Output(1_000)];
    const speak = (name: string) => async () => {
      console.log("%s has %d", name, 2);
      await new Promise((resolve) => setImmediate(resolve));
      console.error(`${name} failed`, { code: 7 });
    };
    await Promise.all([printingTo(a, speak("a")), printingTo(b, speak("b"))]);
    console.log("nobody's");
    expect(a.take()?.text).toBe("out a has 2\nerr a failed { code: 7 }\n");
    expect(b.take()?.text).toBe("out b has 2\nerr b failed { code: 7 }\n");
    expect(printed).toHaveLength(5);
  });

  it("captures every way to print, once", () => {
    capture();
    const output = new Output(10_000);
    printingTo(output, () => {
      console.info("i");
      console.debug("d");
      console.warn("w");
      console.dir({ a: 1 });
      console.assert(false, "claim");
      console.table([{ n: 1 }]);
      console.trace("here");
    });
    const lines = (output.take()?.text ?? "").split("\n");
    expect(lines.slice(0, 5)).toEqual([
      "out i",
      "out d",
      "err w",
      "out { a: 1 }",
      "err Assertion failed: claim",
    ]);
    expect(lines.filter((line) => line.includes("(index)") || line.includes("Trace: here"))).toHaveLength(2);
  });

  it("is restored when the last capture has ended", () => {
    const before = console.log;
    const [first, second] = [capture(), capture()];
    first();
    first();
    expect(console.log).not.toBe(before);
    second();
    expect(console.log).toBe(before);
  });

  it("is left alone if other code has wrapped it meanwhile", () => {
    const release = capture();
    const ours = console.log;
    const theirs = (...args: unknown[]) => ours(...args);
    console.log = theirs;
    release();
    expect(console.log).toBe(theirs);
    console.log("still works");
    expect(printed).toEqual([["still works"]]);
  });

  it("continues after earlier output, within the same limit", () => {
    const before = new Output(30);
    for (let n = 0; n < 10; n++) before.write("out", `line ${n}`);
    const after = new Output(30);
    after.goOnFrom(before.take()?.text ?? "");
    expect(after.take()).toBeUndefined();
    after.write("log", "and on");
    expect(after.take()).toEqual({ text: "cut 99 bytes before this\nout line 9\nlog and on\n", cut: true });
  });

  it("continues after lines of any kind", () => {
    const text = "out 10%\r20%\r30%\nout windows\r\nlog a\u2028b\u2029c\nout \n";
    const output = new Output(1_000);
    output.goOnFrom(text);
    output.write("log", "and on");
    expect(output.take()).toEqual({ text: `${text}log and on\n`, cut: false });
  });
});
