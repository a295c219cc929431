import { spawnSync } from "node:child_process";
import { closeSync, createWriteStream, existsSync, openSync } from "node:fs";
import { Readable } from "node:stream";
import { internalsOf, storeOf } from "@carillon/sdk/internal";
import { startRedis } from "@carillon/testing";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { nodeInfo } from "../../../test/helpers.js";
import { harness } from "./harness.js";
import { carillon, carillonOn, carillonProcess, jsonLines, MAIN, Sink } from "./helpers.js";

const stage = harness("tasks");
const { cli, json, refusal } = stage;

const task = (id: string, more: object = {}) =>
  JSON.stringify({ id, type: "noop", queue: "bar", schedule: { every: "1h" }, ...more });

describe("a task that cannot be read", () => {
  it("is named beside the list and an export, also if nothing else is in them", async () => {
    await json(["put"], task("broken"));
    const store = storeOf(stage.client);
    await store.serverTime();
    const { link, keys } = internalsOf(store);
    await link.client.hset(keys.queue("bar").task("system/broken"), "v", "99");
    const { stdout, stderr } = await cli(["list"]);
    expect(stdout).toBe("No tasks.\n");
    expect(stderr).toContain("1 task cannot be read: system/broken (bar). See carillon doctor.");
    expect(await json(["list"])).toMatchObject({ tasks: [], unreadable: [{ id: "broken" }] });
    expect((await cli(["export", "json"])).stderr).toContain("1 task cannot be read: system/broken (bar).");
  });
});

describe("one task", () => {
  it("is put, changed, paused, resumed, triggered and deleted", async () => {
    const put = () => json(["put"], task("a", { tags: ["x"] }));
    expect(await put()).toMatchObject({
      outcome: "created",
      task: { queue: "bar", owner: "system", id: "a" },
    });
    expect(await put()).toMatchObject({ outcome: "unchanged" });

    expect(await json(["pause", "a", "--note", "broken", "--by", "eve"])).toMatchObject({ changed: true });
    const paused = await json(["show", "system/a", "--queue", "bar"]);
    expect(paused).toMatchObject({ state: "paused", paused: { by: "eve", note: "broken" }, skips: [] });
    expect(paused.displayState).toBe("DISABLED");
    expect((await cli(["show", "a"])).stdout).toMatch(/\nstate +paused by eve\n(.*\n)*enqueued +0\n/);
    expect(await json(["list", "--state", "paused"])).toMatchObject({ tasks: [{ id: "a" }] });
    expect(await json(["resume", "a", "--missed", "catch-up"])).toMatchObject({ changed: true });
    expect(await json(["resume", "a"])).toMatchObject({ changed: false });

    const { run } = await json(["trigger", "a"]);
    expect(await json(["runs", "a"])).toMatchObject({
      runs: [{ id: run, trigger: "manual", state: "queued" }],
    });
    const again = await cli(["trigger", "a", "--json"]);
    expect(again).toMatchObject({ code: 5, stdout: '{"outcome":"skipped","code":"SKIPPED_OVERLAP"}\n' });
    expect(await json(["trigger", "a", "--overlap", "allow"])).toMatchObject({ outcome: "enqueued" });

    await json(["rm", "a"]);
    expect(await refusal(["show", "a"])).toMatchObject({ exit: 3, code: "TASK_NOT_FOUND" });
  });

  it("is put on a condition: unchanged, or not there yet", async () => {
    const on = (revision: string) => ["put", "--if-revision", revision];
    const a = (priority: number) => task("a", { priority });
    expect(await json(on("absent"), a(1))).toMatchObject({ outcome: "created" });
    const { revision } = await json(["show", "a"]);
    expect(await json(on(revision), a(2))).toMatchObject({ outcome: "updated" });
    const conflict = { exit: 5, code: "CONFLICT", field: "ifRevision" };
    expect(await refusal(on(revision), a(3))).toMatchObject(conflict);
    expect(await refusal(on("absent"), a(3))).toMatchObject(conflict);
    const misuse = { exit: 2, field: "--if-revision" };
    expect(await refusal(on(revision), `[${task("a")}]`)).toMatchObject(misuse);
    expect(await refusal([...on(revision), "--batch"], a(3))).toMatchObject(misuse);
    expect(await json(["show", "a"])).toMatchObject({ priority: 2 });
  });

  it("is shown as aligned text, with control characters made visible", async () => {
    expect(await refusal(["put"], task("a", { description: "red \u001b[31m" }))).toMatchObject({
      exit: 2,
      code: "INVALID_TASK",
      field: "description",
    });
    await json(["put"], task("a"));
    // Another client has changed the task.
    const admin = new Redis(stage.redis.url);
    await admin.hset(`{${stage.namespace}:bar}:~t:system/a`, "description", "red \u001b[31m");
    admin.disconnect();
    const shown = await cli(["show", "a"]);
    expect(shown.stdout).toMatch(/^task {10}system\/a\nqueue {9}bar\n/);
    expect(shown.stdout).toContain("red \\u001b[31m");
    const { stdout } = await cli(["list"]);
    const [head, row] = stdout.split("\n") as [string, string];
    expect(row.indexOf("system/a")).toBe(head.indexOf("TASK"));
    expect(row).toMatch(/\d{4}-\d\d-\d\dT\d\d:00:00[+-]\d\d:\d\d \((in .*|now)\)$/);
  });
});

describe("names", () => {
  it("need the queue if an id is in several", async () => {
    await json(["put"], `[${task("a")},${task("a", { queue: "foo" })}]`);
    expect(await refusal(["show", "a"])).toMatchObject({ exit: 3, code: "AMBIGUOUS_TASK", field: "queue" });
    expect(await json(["show", "a", "-q", "foo"])).toMatchObject({ queue: "foo" });
  });

  it("are bound to --owner", async () => {
    await json(["put", "--owner", "acme"], task("a"));
    await json(["put"], task("b"));
    const { tasks } = await json(["list", "--owner", "acme"]);
    expect(tasks).toMatchObject([{ owner: "acme", id: "a" }]);
    expect(await refusal(["show", "b", "--owner", "acme"])).toMatchObject({ exit: 3 });
    expect(await refusal(["show", "system/b", "--owner", "acme"])).toMatchObject({ exit: 3 });
    const foreign = await refusal(["put", "--owner", "acme"], task("c", { owner: "other" }));
    expect(foreign).toMatchObject({ exit: 2, code: "FORBIDDEN", field: "owner" });
  });
});

describe("list", () => {
  it("shows the pending run of a task whose times are all past", async () => {
    await cli(["put"], task("once", { schedule: { at: 0 } }));
    await cli(["trigger", "once"]);
    expect((await cli(["list"])).stdout).toMatch(/system\/once +noop +waits for a worker \(none for noop\) /);
  });

  it("sorts by next time, and filters by the outcome of the last run", async () => {
    const put = (id: string, year: number) =>
      cli(["put"], task(id, { schedule: { at: `${year}-01-01T00:00:00Z` } }));
    await put("a", 2103);
    await put("b", 2101);
    await put("c", 2102);
    const ids = async (...args: string[]) =>
      (await json(["list", ...args])).tasks.map(({ id }: { id: string }) => id) as string[];
    expect(await ids("--sort", "next", "-l", "1")).toEqual(["b"]);
    await cli(["pause", "b"]);
    expect(await ids("--sort", "next")).toEqual(["c", "a"]);
    expect(await ids()).toEqual(["a", "b", "c"]);
    expect(await ids("--failing")).toEqual([]);
    expect(await ids("--sort", "last")).toEqual([]);
    expect(await ids("--never-ran", "-s", "SYSTEM/B")).toEqual(["b"]);
    expect(await ids("--overdue")).toEqual([]);
    expect(await refusal(["list", "--never-ran", "--failing"])).toMatchObject({ exit: 2 });
    expect(await refusal(["list", "--sort", "due"])).toMatchObject({ exit: 2 });
  });

  it("shows one page, or all pages", async () => {
    await json(["put"], `[${Array.from({ length: 7 }, (_, i) => task(`t${i}`)).join(",")}]`);
    const first = await json(["list", "--limit", "4"]);
    const second = await json(["list", "--limit", "4", "--cursor", first.cursor]);
    const ids = (tasks: { id: string }[]) => tasks.map(({ id }) => id);
    expect([...ids(first.tasks), ...ids(second.tasks)]).toEqual(["t0", "t1", "t2", "t3", "t4", "t5", "t6"]);
    const all = await cli(["list", "--all", "--limit", "3", "--json"]);
    expect(ids(jsonLines<{ id: string }>(all.stdout))).toEqual(ids([...first.tasks, ...second.tasks]));
    // Prints one header, regardless of the number of pages.
    const people = await cli(["list", "--all", "--limit", "3"]);
    expect(people.stdout.match(/QUEUE/g)).toHaveLength(1);
  });
});

describe("deliveries of alerts", () => {
  it("are left out of a list by default", async () => {
    await json(["put"], task("alert-1", { queue: "carillon-alerts" }));
    expect(await json(["list"])).toEqual({ tasks: [] });
    expect(await json(["list", "--deliveries"])).toMatchObject({ tasks: [{ id: "alert-1" }] });
  });
});

describe("errors", () => {
  it.each([
    ["an own __proto__", `{"__proto__":{},${task("a").slice(1)}`, "INVALID_TASK", undefined],
    ["half a document", '{"id":', "INVALID_TASK", undefined],
    ["no document", "", "INVALID_TASK", undefined],
    ["a number", "5", "INVALID_TASK", undefined],
  ])("refuses %s with 2", async (_, input, code, field) => {
    const found = await refusal(["put"], input);
    expect(found).toMatchObject({ exit: 2, ...(code ? { code } : {}), ...(field ? { field } : {}) });
    expect(await json(["list"])).toEqual({ tasks: [] });
  });

  it("are reported for an array before anything is written", async () => {
    const found = await refusal(["put"], `[${task("a")},${task("b", { queue: "x y" })}]`);
    expect(found).toMatchObject({ exit: 2, code: "INVALID_NAME", field: "[1].queue" });
    expect(await json(["list"])).toEqual({ tasks: [] });
  });

  it.each([
    ["an unknown command", ["lst"]],
    ["an unknown option", ["list", "--foo"]],
    ["no command", []],
    ["a file that is not there", ["put", "/no/such/file"]],
    ["a bad name", ["show", "a:b"]],
    ["what is no Redis URL", ["list", "--redis", "http://x"]],
  ])("are reported for %s with 2", async (_, args) => {
    expect(await cli(args)).toMatchObject({ code: 2, stdout: "" });
  });

  it("are reported for a missing REDIS_URL", async () => {
    const { code, stderr } = await carillon(["list"]);
    expect(code).toBe(2);
    expect(stderr).toContain("REDIS_URL");
  });

  it("are reported for an unreachable Redis with 4, within seconds, and for bad input with 2", async () => {
    const env = { REDIS_URL: "redis://127.0.0.1:1" };
    const down = await carillonProcess(["list", "--json"], { env });
    expect(down.code).toBe(4);
    expect(JSON.parse(down.stderr).error.code).toBe("REDIS_UNAVAILABLE");
    expect(await carillonProcess(["put"], { env, input: task("a:b") })).toMatchObject({ code: 2 });
  });

  it("are reported for a missing password with 4", async () => {
    const locked = await startRedis({ config: { requirepass: "secret" } });
    const { code, stderr } = await carillon(["list", "--json", "--redis", locked.url]);
    await locked.stop();
    expect(code).toBe(4);
    expect(JSON.parse(stderr).error.code).toBe("REDIS_AUTH");
  });
});

it("nodes lists each node's state, with the reason if it is not ready", async () => {
  const client = new Redis(stage.redis.url);
  const [seconds = 0] = await client.time();
  const beat = async (id: string, more: object) => {
    const text = JSON.stringify(nodeInfo(id, { beat: Number(seconds) * 1000, ...more }));
    await client.hset(`{${stage.namespace}}:nodes`, id, text);
  };
  await beat("n1", {});
  const columns = async () => {
    const [head = "", ...rows] = (await cli(["nodes"])).stdout.trimEnd().split("\n");
    return [
      head
        .trimEnd()
        .split(/\s{2,}/)
        .at(-1),
      ...rows.map((row) => row.split(/\s+/).slice(0, 2).join(" ")),
    ];
  };
  expect(await columns()).toEqual(["LAST BEAT", "n1 ready"]);
  await beat("n2", { beat: (Number(seconds) - 1_000) * 1000 });
  expect(await columns()).toEqual(["WHY", "n1 ready", "n2 dead"]);
  expect((await cli(["nodes"])).stdout).toMatch(/ no beat for 10\d\d s\n/);
  client.disconnect();
});

it("a task that is not UTF-8 is refused", async () => {
  const text = '{"id":"a","type":"noop","queue":"bar","schedule":{"every":"1h"},"payload":"caf\u00e9"}';
  const { code, stderr } = await cli(["put", "--json"], [Buffer.from(text, "latin1")]);
  expect([code, JSON.parse(stderr).error.code]).toEqual([2, "INVALID_OPTION"]);
  expect(stderr).toContain("standard input is not UTF-8");
  expect((await json(["list"])).tasks).toEqual([]);
});

it.runIf(existsSync("/dev/full"))("a failure to write the answer is one line", async () => {
  const refusal = /^carillon: standard output cannot be written: ENOSPC.* \[INTERNAL\]\n$/;
  const { env } = stage;
  for (const args of [["list"], ["list", "--all"], ["next", "10s"]]) {
    const stdout = createWriteStream("/dev/full");
    const { code, stderr } = await carillonOn({ stdin: Readable.from([]), stdout }, args, env);
    expect([code, stderr]).toEqual([1, expect.stringMatching(refusal)]);
  }
  const full = openSync("/dev/full", "w");
  const { status, stderr } = spawnSync(process.execPath, [MAIN, "next", "10s"], {
    stdio: ["ignore", full, "pipe"],
    encoding: "utf8",
  });
  expect([status, stderr]).toEqual([1, expect.stringMatching(refusal)]);
  closeSync(full);
});

it("a terminal gets colours, and input is not awaited", async () => {
  const env = { ...stage.env, NO_COLOR: "", TERM: "xterm" };
  const terminal = { stdin: Object.assign(new Readable(), { isTTY: true }), stdout: new Sink() };
  const { code, stderr } = await carillonOn(terminal, ["put"], env);
  expect([code, stderr]).toEqual([2, expect.stringContaining("FILE: missing.")]);
  const stdout = Object.assign(new Sink(), { isTTY: true });
  await carillonOn({ ...terminal, stdout }, ["next", "10s"], env);
  expect(stdout.text).toContain("\u001b[1m");
});

it.each([[["--json"]], [["calendars", "--json"]]])(
  "the unknown command %j is refused as JSON",
  async (args) => {
    const { code, stdout, stderr } = await cli(args);
    expect([code, stdout, JSON.parse(stderr).error.code]).toEqual([2, "", "INVALID_OPTION"]);
  },
);
