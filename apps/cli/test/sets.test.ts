import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { SetConfig } from "@carillon/ops";
import { afterAll, describe, expect, it } from "vitest";
import { harness, task } from "./harness.js";
import { carillonOn, Sink } from "./helpers.js";

const bench = harness("sets");
const { cli, json, refusal } = bench;
const folder = mkdtempSync(join(tmpdir(), "carillon-sets-"));
afterAll(() => rmSync(folder, { recursive: true }));

let serial = 0;
function file(content: string, end: string): string {
  serial += 1;
  const path = join(folder, `${serial}.${end}`);
  writeFileSync(path, content);
  return path;
}
const config = (tasks: SetConfig["tasks"], more: Partial<SetConfig> = {}) =>
  file(JSON.stringify({ set: "billing", tasks, ...more }), "json");
const many = (count: number) => Array.from({ length: count }, (_, i) => task(`t${i}`));
const applied = (path: string) => json(["apply", "--config", path, "--yes"]);
const plan = (path: string, ...more: string[]) => cli(["plan", "--config", path, ...more]);

describe("plan and apply", () => {
  it("show what comes, do it, and then find nothing", async () => {
    const path = config([task("a"), task("b")], { calendars: { off: ["2026-12-25"] } });
    const first = await plan(path, "--exit-code");
    expect(first.code).toBe(10);
    expect(first.stdout).toMatch(/^calendar off is created\n\+ create system\/a in queue bar\n/);
    expect(first.stdout).toMatch(/\n {2}every 1h.*; 24 per day\n( {4}\d{4}-.*Z\n){5}\+ create system\/b/);
    expect(first.stdout).toMatch(/\nper day: 0 -> 48 .*\nbilling: 2 create, 0 unchanged\n$/);
    expect(await bench.client.count()).toBe(0);

    const done = await cli(["apply", "--config", path, "--yes"]);
    expect(done).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("\n+ create system/b in queue bar\n"),
    });
    expect(done.stdout).toMatch(/\napplied billing: 2 create, 0 unchanged\n$/);
    expect(await plan(path, "--exit-code")).toMatchObject({
      code: 0,
      stdout: "billing: 2 unchanged\n",
      stderr: "",
    });
  });

  it("show an update with its words and times side by side, and a removal", async () => {
    await applied(config([task("a"), task("b")]));
    const daily = task("a", { schedule: { cron: "30 2 * * *", timezone: "UTC" }, tags: ["x"] });
    const { stdout } = await plan(config([daily]));
    expect(stdout).toMatch(/^~ update system\/a in queue bar\n(?: {2}.*\n)* {2}tags: \[\] -> \["x"\]\n/);
    expect(stdout).toMatch(/; 24 per day -> at 02:30, every day \(UTC\); 1 per day\n {4}was +is\n/);
    expect(stdout.match(/^ {4}\S+Z {2,}\S+T02:30:00Z$/gm)).toHaveLength(5);
    expect(stdout).toContain("\n- remove system/b in queue bar\n");
    expect(stdout).toMatch(/\nbilling: 1 update, 1 remove, 0 unchanged\n$/);
  });

  it.each(["mjs", "jsonl"])("read carillon.config.%s too", async (end) => {
    const [head, one] = ['"set":"billing"', JSON.stringify(task("a"))];
    const text = end === "mjs" ? `export default {${head},tasks:[${one}]};` : `{${head}}\n\n${one}\n`;
    expect((await json(["plan", "--config", file(text, end)])).counts).toMatchObject({ create: 1 });
  });

  it("of a saved plan do exactly that, or nothing", async () => {
    const saved = join(folder, "saved.json");
    const path = config(many(2));
    await plan(path, "--out", saved);
    await bench.client.put(task("t1", { priority: 3 }));
    expect(await refusal(["apply", saved])).toMatchObject({ exit: 5, code: "STALE_PLAN" });
    expect(await bench.client.count()).toBe(1);
    expect(await refusal(["apply", saved, "--keep"])).toMatchObject({ exit: 2, code: "INVALID_OPTION" });

    expect((await plan(path, "--exit-code")).code).toBe(5);
    await plan(path, "--adopt", "t1", "--out", saved);
    expect(await cli(["apply", saved])).toMatchObject({
      code: 0,
      stdout: "applied billing: 1 create, 1 update, 0 unchanged\n",
    });
    expect(await refusal(["apply", path])).toMatchObject({ exit: 2, code: "INVALID_OPTION" });
  });

  it("ask on a terminal, and want --yes without one", async () => {
    const path = config([task("a")]);
    expect(await refusal(["apply", "--config", path])).toMatchObject({ exit: 2, code: "INVALID_OPTION" });
    const answer = (text: string) => {
      const stdin = Object.assign(Readable.from([Buffer.from(text)], { objectMode: false }), { isTTY: true });
      return carillonOn({ stdin, stdout: new Sink() }, ["apply", "--config", path], bench.env);
    };
    for (const no of ["y\n", ""])
      expect(await answer(no)).toMatchObject({ code: 2, stderr: expect.stringContaining("not confirmed") });
    expect(await bench.client.count()).toBe(0);
    expect(await answer("yes\n")).toMatchObject({ code: 0 });
    expect(await bench.client.count()).toBe(1);
  });

  it("remove most of a set only if that is allowed", async () => {
    await applied(config(many(12)));
    const path = config(many(4));
    const refused = await cli(["apply", "--config", path, "--yes"]);
    expect(refused.code).toBe(5);
    expect(refused.stdout).toContain("refused: 8 of 12 tasks would be removed");
    expect(refused.stderr).toContain("[PLAN_REFUSED]");
    expect((await bench.client.list({ set: "billing" })).tasks).toHaveLength(12);
    const kept = await json(["plan", "--config", path, "--keep"]);
    expect([kept.refused, kept.counts]).toMatchObject([[], { remove: 0 }]);
    const done = await json(["apply", "--config", path, "--yes", "--allow-removals", "8"]);
    expect(done.counts).toMatchObject({ remove: 8, unchanged: 4 });
    expect((await bench.client.list({ set: "billing" })).tasks).toHaveLength(4);
  });

  it.each([
    ["a bad task", "json", JSON.stringify({ set: "b", tasks: [task("a"), { id: "b" }] }), "tasks[1]"],
    [
      "a bad schedule",
      "json",
      JSON.stringify({ set: "b", tasks: [task("a", { schedule: { cron: "x" } })] }),
      "cron",
    ],
    ["an unknown field", "json", '{"set":"b","tasks":[],"task":[]}', "task"],
    ["a bad line", "jsonl", '{"set":"b"}\n{', "line 2"],
    ["a list", "json", "[]", "not an object"],
    ["no default export", "mjs", "export const a = 1;", "not an object"],
    ["code that fails", "mjs", "throw new Error('boom');", "boom"],
  ])("name the file and the field for %s", async (_, end, text, what) => {
    const path = file(text, end);
    const { exit, message } = await refusal(["plan", "--config", path]);
    expect([exit, message]).toEqual([2, expect.stringContaining(path)]);
    expect(message).toContain(what);
  });

  it("name the files that are looked for", async () => {
    expect((await refusal(["plan"])).message).toContain("carillon.config.ts, carillon.config.js");
  });
});

describe("drift", () => {
  it("lists tasks that others changed, and counts those that they deleted", async () => {
    const path = config(many(3));
    await applied(path);
    const drift = (...more: string[]) => cli(["drift", "--config", path, "--exit-code", ...more]);
    expect(await drift()).toMatchObject({ code: 0, stdout: "No drift in billing.\n" });
    await bench.client.put(task("t1", { priority: 3 }), { by: "ann" });
    await bench.client.delete("t2");
    const { code, stdout } = await drift();
    expect(code).toBe(10);
    expect(stdout).toMatch(/^TASK .*\nsystem\/t1 +bar .* ann\n1 of the 3 tasks of billing were deleted\.\n$/);
    expect((await plan(path)).stdout).toMatch(/~ update system\/t1 .*\n {2}was changed by ann at /);
    expect(await refusal(["drift", "other"])).toMatchObject({ exit: 3, code: "SET_NOT_FOUND" });
  });
});
