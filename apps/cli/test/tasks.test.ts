import { spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { type RedisServer, startRedis } from "@carillon/testing";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { carillon, jsonLines, MAIN, type RunOptions } from "./helpers.js";

let redis: RedisServer;
let namespace = "";
let serial = 0;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  await redis.stop();
});
beforeEach(() => {
  serial += 1;
  namespace = `cli-${serial}`;
});

const cli = (args: string[], options: RunOptions = {}) =>
  carillon(args, { ...options, env: { REDIS_URL: redis.url, CARILLON_NAMESPACE: namespace } });

/** Runs it with --json, expects success, returns the document. */
async function json(args: string[], options: RunOptions = {}) {
  const { code, stdout, stderr } = await cli([...args, "--json"], options);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

async function refusal(args: string[], options: RunOptions = {}) {
  const { code, stdout, stderr } = await cli([...args, "--json"], options);
  expect(stdout).toBe("");
  return { exit: code, ...JSON.parse(stderr).error };
}

const task = (id: string, more: object = {}) =>
  JSON.stringify({ id, type: "noop", queue: "bar", schedule: { every: "1h" }, ...more });

describe("one task", () => {
  it("is put, changed, paused, resumed, triggered and deleted", async () => {
    const put = () => json(["put"], { input: task("a", { tags: ["x"] }) });
    expect(await put()).toMatchObject({
      outcome: "created",
      task: { queue: "bar", owner: "system", id: "a" },
    });
    expect(await put()).toMatchObject({ outcome: "unchanged" });

    expect(await json(["pause", "a", "--note", "broken", "--by", "eve"])).toMatchObject({ changed: true });
    const paused = await json(["show", "system/a", "--queue", "bar"]);
    expect(paused).toMatchObject({ state: "paused", paused: { by: "eve", note: "broken" }, ledger: [] });
    expect(paused.displayState).toBe("DISABLED");
    expect((await cli(["show", "a"])).stdout).toMatch(/\nstate +paused \(DISABLED\)\n(.*\n)*enqueued +0\n/);
    expect(await json(["list", "--state", "paused"])).toMatchObject({ tasks: [{ id: "a" }] });
    expect(await json(["resume", "a", "--from", "catch-up"])).toMatchObject({ changed: true });
    expect(await json(["resume", "a"])).toMatchObject({ changed: false });

    const { run } = await json(["trigger", "a"]);
    expect(await json(["runs", "a"])).toMatchObject([{ id: run, trigger: "manual", state: "queued" }]);
    const again = await cli(["trigger", "a", "--json"]);
    expect(again).toMatchObject({ code: 5, stdout: '{"outcome":"skipped","code":"SKIPPED_OVERLAP"}\n' });
    expect(await json(["trigger", "a", "--overlap", "allow"])).toMatchObject({ outcome: "enqueued" });

    await json(["rm", "a"]);
    expect(await refusal(["show", "a"])).toMatchObject({ exit: 3, code: "TASK_NOT_FOUND" });
  });

  it("is put on a condition: as it was shown, or not there yet", async () => {
    const on = (revision: string) => ["put", "--if-revision", revision];
    const a = (priority: number) => ({ input: task("a", { priority }) });
    expect(await json(on("absent"), a(1))).toMatchObject({ outcome: "created" });
    const { revision } = await json(["show", "a"]);
    expect(await json(on(revision), a(2))).toMatchObject({ outcome: "updated" });
    const conflict = { exit: 5, code: "CONFLICT", field: "ifRevision" };
    expect(await refusal(on(revision), a(3))).toMatchObject(conflict);
    expect(await refusal(on("absent"), a(3))).toMatchObject(conflict);
    // As one in 64 revisions begins.
    expect(await refusal(on(`-${revision.slice(1)}`), a(3))).toMatchObject(conflict);
    const misuse = { exit: 2, field: "--if-revision" };
    expect(await refusal(on(revision), { input: `[${task("a")}]` })).toMatchObject(misuse);
    expect(await refusal([...on(revision), "--batch"], a(3))).toMatchObject(misuse);
    expect(await json(["show", "a"])).toMatchObject({ priority: 2 });
  });

  it("is exported as the docs say: what is left can be put again", async () => {
    const docs = readFileSync(new URL("../../../docs/deployment.md", import.meta.url), "utf8");
    const computed: string[] = docs.match(/del\(([^)]*)\)/)?.[1]?.match(/\w+/g) ?? [];
    await json(["put"], { input: task("a", { tags: ["x"], retry: { attempts: 2 } }) });
    await json(["pause", "a"]);
    const exported = await json(["list", "--all"]);
    const left = Object.entries(exported).filter(([field]) => !computed.includes(field));
    expect(await json(["put"], { input: JSON.stringify(Object.fromEntries(left)) })).toMatchObject({
      outcome: "unchanged",
    });
  });

  it("is shown to people as aligned text, control characters made visible", async () => {
    expect(await refusal(["put"], { input: task("a", { description: "red \u001b[31m" }) })).toMatchObject({
      ...{ exit: 2, code: "INVALID_TASK", field: "description" },
    });
    await json(["put"], { input: task("a") });
    // Someone else has written it.
    const admin = new Redis(redis.url);
    await admin.hset(`{${namespace}:bar}:~t:system/a`, "description", "red \u001b[31m");
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
  it("asks for the queue when an id is in several", async () => {
    await json(["put"], { input: `[${task("a")},${task("a", { queue: "foo" })}]` });
    expect(await refusal(["show", "a"])).toMatchObject({ exit: 3, code: "AMBIGUOUS_TASK", field: "queue" });
    expect(await json(["show", "a", "-q", "foo"])).toMatchObject({ queue: "foo" });
  });

  it("binds everything to --owner", async () => {
    await json(["put", "--owner", "acme"], { input: task("a") });
    await json(["put"], { input: task("b") });
    const { tasks } = await json(["list", "--owner", "acme"]);
    expect(tasks).toMatchObject([{ owner: "acme", id: "a" }]);
    expect(await refusal(["show", "b", "--owner", "acme"])).toMatchObject({ exit: 3 });
    expect(await refusal(["show", "system/b", "--owner", "acme"])).toMatchObject({ exit: 3 });
    const foreign = await refusal(["put", "--owner", "acme"], { input: task("c", { owner: "other" }) });
    expect(foreign).toMatchObject({ exit: 2, code: "FORBIDDEN", field: "owner" });
  });
});

describe("list", () => {
  it("pages, and goes through all pages", async () => {
    await json(["put"], { input: `[${Array.from({ length: 7 }, (_, i) => task(`t${i}`)).join(",")}]` });
    const first = await json(["list", "--limit", "4"]);
    const second = await json(["list", "--limit", "4", "--cursor", first.cursor]);
    const ids = (tasks: { id: string }[]) => tasks.map(({ id }) => id);
    expect([...ids(first.tasks), ...ids(second.tasks)]).toEqual(["t0", "t1", "t2", "t3", "t4", "t5", "t6"]);
    const all = await cli(["list", "--all", "--limit", "3", "--json"]);
    expect(ids(jsonLines<{ id: string }>(all.stdout))).toEqual(ids([...first.tasks, ...second.tasks]));
    // One header, however many pages.
    const people = await cli(["list", "--all", "--limit", "3"]);
    expect(people.stdout.match(/QUEUE/g)).toHaveLength(1);
  });
});

describe("what goes wrong", () => {
  it.each([
    ["an id with a colon", task("a:b"), "INVALID_NAME", "id"],
    ["a zero interval", task("a", { schedule: { every: "0s" } }), undefined, undefined],
    ["an own __proto__", `{"__proto__":{},${task("a").slice(1)}`, "INVALID_TASK", undefined],
    [
      "__proto__ in the payload",
      `{"payload":{"__proto__":1},${task("a").slice(1)}`,
      "INVALID_PAYLOAD",
      "payload",
    ],
    ["half a document", '{"id":', "INVALID_TASK", undefined],
    ["no document", "", "INVALID_TASK", undefined],
    ["a number", "5", "INVALID_TASK", undefined],
  ])("refuses %s with 2", async (_, input, code, field) => {
    const found = await refusal(["put"], { input });
    expect(found).toMatchObject({ exit: 2, ...(code ? { code } : {}), ...(field ? { field } : {}) });
    expect(await json(["list"])).toEqual({ tasks: [] });
  });

  it("checks all of an array before it writes the first", async () => {
    const found = await refusal(["put"], { input: `[${task("a")},${task("b", { queue: "x y" })}]` });
    expect(found).toMatchObject({ exit: 2, code: "INVALID_NAME", field: "[1].queue" });
    expect(await json(["list"])).toEqual({ tasks: [] });
  });

  it.each([
    ["an unknown command", ["lst"]],
    ["an unknown option", ["list", "--foo"]],
    ["no command", []],
    ["a file that is not there", ["put", "/no/such/file"]],
    ["a limit of 0", ["list", "--limit", "0"]],
    ["a broken cursor", ["list", "--cursor", "?"]],
    ["a bad name", ["show", "a:b"]],
    ["what is no Redis URL", ["list", "--redis", "http://x"]],
  ])("answers %s with 2", async (_, args) => {
    expect(await cli(args)).toMatchObject({ code: 2, stdout: "" });
  });

  it("says that REDIS_URL is missing", async () => {
    const { code, stderr } = await carillon(["list"]);
    expect(code).toBe(2);
    expect(stderr).toContain("REDIS_URL");
  });

  it("answers an unreachable Redis with 4, in seconds, and bad input all the same with 2", async () => {
    const env = { REDIS_URL: "redis://127.0.0.1:1" };
    const down = await carillon(["list", "--json"], { env });
    expect(down.code).toBe(4);
    expect(JSON.parse(down.stderr).error.code).toBe("REDIS_UNAVAILABLE");
    expect(await carillon(["put"], { env, input: task("a:b") })).toMatchObject({ code: 2 });
  });

  it("answers a missing password with 4", async () => {
    const locked = await startRedis({ config: { requirepass: "secret" } });
    const { code, stderr } = await carillon(["list", "--json", "--redis", locked.url]);
    await locked.stop();
    expect(code).toBe(4);
    expect(JSON.parse(stderr).error.code).toBe("REDIS_AUTH");
  });
});

it("lists the queues: how many tasks each has and how its runs ended; of one owner the tasks only", async () => {
  expect((await cli(["queues"])).stdout).toBe("No queues.\n");
  await cli(["put"], { input: task("a") });
  await cli(["put", "--owner", "acme"], { input: task("b") });
  const client = new Redis(redis.url);
  await client.hset(`{${namespace}:bar}:~outcomes`, "succeeded", 3, "timed-out", 1);
  client.disconnect();
  expect((await cli(["queues"])).stdout).toBe("QUEUE  TASKS  RUNS\nbar        2  3 succeeded, 1 timed-out\n");
  expect(await json(["queues"])).toMatchObject([
    { name: "bar", tasks: 2, outcomes: { succeeded: 3, lost: 0 } },
  ]);
  expect(await json(["queues", "--owner", "acme"])).toEqual([{ name: "bar", tasks: 1 }]);
});

it("lists no nodes where there are none", async () => {
  expect(await json(["nodes"])).toEqual([]);
});

it("refuses a task that is no UTF-8, rather than store something else", async () => {
  const text = '{"id":"a","type":"noop","queue":"bar","schedule":{"every":"1h"},"payload":"caf\u00e9"}';
  const { code, stderr } = await cli(["put", "--json"], { input: [Buffer.from(text, "latin1")] });
  expect([code, JSON.parse(stderr).error.code]).toEqual([2, "INVALID_OPTION"]);
  expect(stderr).toContain("standard input is not UTF-8");
  expect((await json(["list"])).tasks).toEqual([]);
});

it.runIf(existsSync("/dev/full"))("says in one line that its answer cannot be written", async () => {
  const full = openSync("/dev/full", "w");
  const env = { ...process.env, REDIS_URL: redis.url, CARILLON_NAMESPACE: namespace };
  for (const args of [["list"], ["list", "--all"], ["next", "10s"]]) {
    const { status, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
      env,
      stdio: ["ignore", full, "pipe"],
      encoding: "utf8",
    });
    expect(stderr).toMatch(/^carillon: standard output cannot be written: ENOSPC.* \[INTERNAL\]\n$/);
    expect(status).toBe(1);
  }
  closeSync(full);
});

it.each([[["--json"]], [["calendars", "--json"]]])("%j, no command, is refused as JSON", async (args) => {
  const { code, stdout, stderr } = await cli(args);
  expect([code, stdout, JSON.parse(stderr).error.code]).toEqual([2, "", "INVALID_OPTION"]);
});
