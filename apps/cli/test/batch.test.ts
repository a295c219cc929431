import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { harness } from "./harness.js";
import { jsonLines, spawnCarillon } from "./helpers.js";

const stage = harness("batch");

const line = (id: string) =>
  `{"id":"${id}","type":"noop","queue":"bar","schedule":{"every":"1s"},"overlap":"allow","catchUp":"all","payload":{}}\n`;

function* lines(count: number): Generator<string> {
  for (let from = 0; from < count; from += 500) {
    let text = "";
    for (let i = from; i < Math.min(count, from + 500); i++) text += line(`t${i}`);
    yield text;
  }
}

async function stored(): Promise<number> {
  let count = 0;
  let cursor: string | undefined;
  do {
    const page = await stage.client.list({ limit: 1_000, cursor });
    count += page.tasks.length;
    cursor = page.cursor;
  } while (cursor !== undefined);
  return count;
}

const [NO_NODE, NO_WORKER] = ["NO_NODE", "NO_WORKER"].map((code) => expect.objectContaining({ code }));

describe("carillon put --batch", () => {
  it("stores sixty tasks, and changes nothing the second time", async () => {
    const first = await stage.cli(["put", "--batch"], lines(60));
    expect(first.code).toBe(0);
    expect(first.stdout).toBe(
      "60 tasks: 60 created, 0 updated, 0 unchanged (warnings: 60 EACH_SECOND, 60 NO_NODE, 60 NO_WORKER)\n",
    );
    // Prints the first few warnings of a kind, and counts the rest.
    expect(first.stderr.match(/warning: line \d+: .* \[EACH_SECOND\]\n/g)).toHaveLength(3);
    const again = await stage.cli(["put", "--batch"], lines(60));
    expect(again.stdout).toContain("60 tasks: 0 created, 0 updated, 60 unchanged");
    expect(await stored()).toBe(60);
  });

  it("prints a result for each line with --json", async () => {
    const past = line("b").replace('"every":"1s"', '"at":"2020-01-01T00:00:00Z"');
    const { code, stdout } = await stage.cli(
      ["put", "--batch", "--json"],
      `${line("a").replace("1s", "1h")}\n${past}`,
    );
    expect(code).toBe(0);
    expect(jsonLines(stdout)).toEqual([
      expect.objectContaining({
        line: 1,
        outcome: "created",
        state: "scheduled",
        warnings: [NO_NODE, NO_WORKER],
      }),
      expect.objectContaining({
        line: 3,
        state: "finished",
        warnings: [expect.objectContaining({ code: "NO_NEXT" })],
      }),
    ]);
  });

  it.each<[string, string | Buffer, string]>([
    ["an invalid task", line("a:b"), "INVALID_NAME"],
    ["broken JSON", "{\n", "INVALID_TASK"],
    ["what is no UTF-8", Buffer.from(line("b\u00ff"), "latin1"), "INVALID_TASK"],
  ])("stops at %s, names its line, and keeps the tasks before it", async (_, bad, code) => {
    const input = [...lines(1_499), bad, line("after")];
    const { code: exit, stderr } = await stage.cli(["put", "--batch", "--json"], input);
    expect(exit).toBe(2);
    expect(JSON.parse(stderr).error).toMatchObject({
      code,
      line: 1_500,
      message: expect.stringContaining("line 1500:"),
    });
    expect(await stored()).toBe(1_499);
  });

  it("reads characters that arrive in pieces", async () => {
    const named = line("a").replace('"payload":{}', '"payload":"\u{1f514}"');
    const bytes = Buffer.from(`\uFEFF${named.replace("1s", "1h")}`);
    const input = Array.from(bytes, (byte) => Buffer.of(byte));
    expect(await stage.cli(["put", "--batch"], input)).toMatchObject({ code: 0 });
    expect(await stage.client.get("a")).toMatchObject({ payload: "\u{1f514}" });
  });

  it("continues to store when its reader leaves", async () => {
    const child = spawnCarillon(["put", "--batch", "--json"], stage.env);
    const ended = once(child, "exit");
    for (const part of lines(1_000)) child.stdin?.write(part);
    await once(child.stdout as never, "data");
    child.stdout?.destroy();
    for (const part of lines(1_000)) child.stdin?.write(part);
    child.stdin?.end(line("last"));
    expect(await ended).toEqual([0, null]);
    expect(await stored()).toBe(1_001);
  });
});
