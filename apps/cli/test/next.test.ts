import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, expect, it } from "vitest";
import { guessSyntax } from "../src/expression.js";
import { carillon, jsonLines, spawnCarillon } from "./helpers.js";

const FROM = "2026-01-01T00:00:00Z";

describe("carillon next", () => {
  it("answers without Redis, strictly after --from, whole seconds without ms", async () => {
    const { code, stdout } = await carillon(["next", "10s", "--from", FROM, "--count", "2", "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      next: ["2026-01-01T00:00:10Z", "2026-01-01T00:00:20Z"],
      exhausted: false,
    });
  });

  it("reports that nothing follows", async () => {
    const { stdout } = await carillon(["next", "2026-02-01T00:00:00Z", "--from", FROM, "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ next: ["2026-02-01T00:00:00Z"], exhausted: true });
  });

  it("counts in the zone, and shows people UTC, local time and distance", async () => {
    const args = ["next", "0 3 * * *", "--timezone", "Europe/Berlin", "--from", FROM, "-n", "1"];
    const { code, stdout } = await carillon(args);
    expect(code).toBe(0);
    expect(stdout).toMatch(/2026-01-01T02:00:00Z {2}2026-01-01T03:00:00\+01:00 {2}in 2 h/);
    expect(stdout).not.toContain("\u001b");
  });

  it("shows the local time of the zone that an expression names", async () => {
    const { stdout } = await carillon(["next", "Mon *-*-* 09:00 Europe/Berlin", "--from", FROM, "-n", "1"]);
    expect(stdout).toMatch(/2026-01-05T08:00:00Z {2}2026-01-05T09:00:00\+01:00 {2}in /);
  });

  it.each([
    ["no such zone", ["next", "0 3 * * *", "--timezone", "Mars/Base"]],
    ["a zone that every only shows", ["next", "10s", "--timezone", "Mars/Base"]],
    ["an empty expression", ["next", "", "--syntax", "cron"]],
    ["a time without offset", ["next", "10s", "--from", "2026-01-01T00:00"]],
    ["too many times", ["next", "10s", "--count", "1000000"]],
    ["an unknown syntax", ["next", "10s", "--syntax", "french"]],
    ["nothing", ["next"]],
  ])("refuses %s with 2 and a coded error", async (_, args) => {
    const { code, stdout, stderr } = await carillon([...args, "--json"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(JSON.parse(stderr)).toEqual({
      error: expect.objectContaining({
        code: expect.stringMatching(/^INVALID_/),
        message: expect.any(String),
      }),
    });
  });
});

describe("carillon next --batch", () => {
  it("answers each line in order, invalid ones too", async () => {
    const input = [
      { syntax: "every", expr: "10s", timezone: "UTC", from: FROM, count: 1 },
      { syntax: "cron", expr: "nonsense", from: FROM, count: 1 },
      { syntax: "at", expr: "2026-02-01T00:00:00Z", from: FROM, count: 1 },
      { syntax: "at", expr: "2025-02-01T00:00:00Z", from: FROM, count: 0 },
      { syntax: "every", expr: "10s", from: ["2026-01-01"], count: 1 },
    ];
    const text = `${input.map((line) => JSON.stringify(line)).join("\n")}\n\nnot json`;
    const { code, stdout } = await carillon(["next", "--batch"], { input: text });
    expect(code).toBe(0);
    const lines = jsonLines(stdout);
    const answer = { canonical: expect.any(String), description: expect.any(String) };
    expect(lines).toEqual([
      { ...answer, next: ["2026-01-01T00:00:10Z"], exhausted: false },
      { error: { code: "INVALID_SCHEDULE", message: expect.any(String) } },
      { ...answer, next: ["2026-02-01T00:00:00Z"], exhausted: true },
      { ...answer, next: [], exhausted: true },
      { error: { code: "INVALID_OPTION", message: expect.stringContaining("not a time") } },
      { error: { code: "INVALID_TASK", message: expect.stringContaining("not JSON") } },
    ]);
  });

  it("answers a line before it reads the next", async () => {
    const child = spawnCarillon(["next", "--batch"]);
    const answers = createInterface({ input: child.stdout as never });
    for (const expr of ["10s", "20s"]) {
      child.stdin?.write(`${JSON.stringify({ expr, from: FROM, count: 1 })}\n`);
      const [line] = (await once(answers, "line")) as [string];
      expect(JSON.parse(line).next).toEqual([`2026-01-01T00:00:${expr.slice(0, 2)}Z`]);
    }
    child.stdin?.end();
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  it("ends quietly when its reader leaves", async () => {
    const child = spawnCarillon(["next", "--batch"]);
    const ended = once(child, "exit");
    const line = `${JSON.stringify({ expr: "10s" })}\n`;
    child.stdin?.on("error", () => {});
    child.stdin?.write(line);
    await once(child.stdout as never, "data");
    child.stdout?.destroy();
    // Two writes: the program notices the closed pipe at the first.
    const feed = setInterval(() => child.stdin?.write(line.repeat(100)), 5);
    expect(await ended).toEqual([0, null]);
    clearInterval(feed);
  });
});

it.each([
  ["*/5 * * * *", "cron"],
  ["0 0 3 * * MON", "cron"],
  ["* * * *", "cron"],
  ["30 8-11,13-17 * * 1-5", "cron"],
  ["0 9:00 * * *", "cron"],
  ["@daily", "cron"],
  ["10s", "every"],
  ["1h30m", "every"],
  ["PT5M", "every"],
  ["2026-01-01T00:00:00Z", "at"],
  ["1767225600000", "at"],
  ["Mon..Fri 09:00", "calendar"],
  ["*-*-* 00/2:00:00", "calendar"],
  ["daily", "calendar"],
  ["@1767225600", "calendar"],
  ["2026-01-01", "calendar"],
  ["Mon *-*-* UTC", "calendar"],
  ["Mon 12-25 UTC", "calendar"],
  ["*-01,07-01 Europe/Berlin", "calendar"],
  ["Mon 2017-05~07/1 UTC", "calendar"],
  ["Sat *-*-1..7 18:00 Europe/Berlin", "calendar"],
])("the argument %s means %s", (expr, syntax) => {
  expect(guessSyntax(expr)).toBe(syntax);
});
