import { operatorOf } from "@carillon/ops";
import { bullPrefix, Client } from "@carillon/sdk";
import { Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { freePort } from "@carillon/testing";
import { Queue } from "bullmq";
import { afterEach, beforeEach, expect, it } from "vitest";
import { nodeInfo, ownRedis, workerInfo } from "../../../../test/helpers.js";
import { statusOf } from "../../test/in-words.js";

const QUEUE = "bells";
const NODE = nodeInfo("n", { every: 600_000 });
const WORKER = workerInfo("w", { every: 600_000 });

const redis = ownRedis();
let store: Store;
let client: Client;
beforeEach(async () => {
  store = new Store({ connection: redis.url });
  client = new Client({ store });
  await beat({});
  await work("w", [QUEUE, "other", "carillon-alerts"], ["ring"]);
});
afterEach(async () => {
  const { client: admin } = internalsOf(store).link;
  await admin.call("CONFIG", "SET", "min-replicas-to-write", "0");
  await admin.call("FLUSHALL");
  await store.close();
});

const beat = async (more: object) =>
  store.registry.beat({ ...NODE, id: "n", beat: await store.serverTime(), ready: true, ...more });
const work = async (id: string, queues: string[], types: string[]) =>
  store.registry.beatWorker({ ...WORKER, id, queues, types, beat: await store.serverTime() });
const put = (id: string, more: object = {}) =>
  client.put({ id, type: "ring", queue: QUEUE, schedule: { every: "1d" }, ...more });
/** Makes each task of the queue overdue by `ago` ms. */
async function owe(ago: number, queue = QUEUE): Promise<void> {
  const { link, keys } = internalsOf(store);
  const at = (await store.serverTime()) - ago;
  for (const [shard, due] of keys.queue(queue).dues.entries()) {
    for (const local of await link.client.zrange(due, 0, "-1")) {
      await link.client.zadd(due, at, local);
      await link.client.hset(keys.queue(queue).task(local), "due", at);
      await link.client.zadd(keys.queue(queue).next, at, String(shard));
    }
  }
}
const codes = (reasons: readonly { code: string }[]) => reasons.map(({ code }) => code);

it("is `on time` while nodes are ready and nothing is late", async () => {
  expect(await statusOf(client)).toMatchObject({ state: "on-time", behind: 0, reasons: [], queues: [] });
  await put("t");
  expect(await statusOf(client)).toEqual({
    state: "on-time",
    behind: 0,
    reasons: [],
    notes: [],
    at: expect.any(Number),
    queues: [{ name: QUEUE, behind: 0, workers: 0, waiting: 0, active: 0, oldestWaitingMs: undefined }],
    nodes: { alive: 1, ready: 1 },
    workers: { alive: 1 },
  });
});

it("costs at most ten commands for each further queue that has nothing to do", async () => {
  const { client: admin } = internalsOf(store).link;
  const calls = async () => {
    const stats = String(await admin.call("INFO", "commandstats"));
    return Array.from(stats.matchAll(/:calls=(\d+)/g), ([, n]) => Number(n)).reduce((sum, n) => sum + n, 0);
  };
  const cost = async () => {
    const before = await calls();
    await statusOf(client);
    return (await calls()) - before;
  };
  await put("t");
  await statusOf(client);
  const one = await cost();
  for (let i = 0; i < 10; i++) await put("t", { queue: `q${i}` });
  expect((await cost()) - one).toBeLessThanOrEqual(100);
});

it("is `behind` by the age of the oldest due occurrence", async () => {
  await put("t");
  await owe(60_000);
  const { state, behind, since, at = 0, reasons } = await statusOf(client);
  expect([state, codes(reasons), reasons[0]?.queue]).toEqual(["behind", ["OVERDUE"], QUEUE]);
  expect(behind).toBeGreaterThanOrEqual(60_000);
  expect(since).toBe(at - behind);
});

it("names the owner with most of what is due, but not to other owners", async () => {
  for (const id of ["a", "b", "c"]) await put(id, { owner: "giant" });
  await put("d", { owner: "acme" });
  await owe(60_000);
  const { reasons } = await statusOf(client);
  expect(reasons).toMatchObject([{ code: "OVERDUE", most: { owner: "giant", tasks: 3, read: 4, due: 4 } }]);
  expect(reasons[0]?.message).toMatch(/no node has claimed: 3 of 4 are of owner giant\.$/);
  const [bound] = (await statusOf(new Client({ store, owner: "acme" }))).reasons;
  expect(bound?.message).not.toContain("giant");
  const { upcoming, overdue } = await operatorOf(client).occurrences.upcoming({ limit: 1 });
  expect(upcoming).toHaveLength(1);
  expect(overdue).toEqual([{ queue: QUEUE, owner: "giant", tasks: 3, read: 4, due: 4 }]);
  const own = await operatorOf(new Client({ store, owner: "acme" })).occurrences.upcoming();
  expect(own.overdue).toBeUndefined();
});

it("is `stopped` if Redis lost its data under a node, until a task is put", async () => {
  const at = await store.serverTime();
  await beat({ lost: { at } });
  const { state, reasons } = await statusOf(client);
  expect([state, codes(reasons)]).toEqual(["stopped", ["EMPTY"]]);
  expect(reasons[0]?.since).toBe(at);
  // Nodes put the watchdog themselves.
  await put("watchdog", { queue: "carillon-alerts" });
  expect(codes((await statusOf(client)).reasons)).toEqual(["EMPTY"]);
  await put("t");
  expect((await statusOf(client)).reasons).toEqual([]);
});

it("is `stopped` while the clock of Redis is behind the latest time that a node saw, with its end", async () => {
  await put("t");
  const now = await store.serverTime();
  await store.registry.countBeat(now + 4_000);
  expect((await statusOf(client)).reasons).toEqual([]);
  await store.registry.countBeat(now + 3_600_000);
  await store.registry.countBeat(now);
  const { state, reasons } = await statusOf(client);
  expect([state, codes(reasons)]).toEqual(["stopped", ["CLOCK_WENT_BACK"]]);
  expect(reasons[0]).toMatchObject({
    until: now + 3_600_000,
    message: expect.stringMatching(
      /^the clock of Redis went back by (1 h|59 min 5\d s): tasks that had run wait until .*Z\.$/,
    ),
  });
});

it("is `stopped` without a live or ready node, with the reason", async () => {
  const dead = (await store.serverTime()) - 4 * NODE.every;
  await beat({ beat: dead });
  const none = await statusOf(client);
  expect(none).toMatchObject({ state: "stopped", nodes: { alive: 0, ready: 0 } });
  expect(none.reasons).toMatchObject([{ code: "NO_NODE", since: dead }]);
  await beat({ ready: false, why: "this Redis is a read-only replica." });
  const held = await statusOf(client);
  expect(held).toMatchObject({ state: "stopped", nodes: { alive: 1, ready: 0 } });
  expect(held.reasons).toMatchObject([
    { code: "NODES_NOT_READY", message: "the node is not ready: this Redis is a read-only replica." },
  ]);
});

it("is `stopped` if Redis refuses writes, or does not answer", async () => {
  await put("t");
  await client.trigger("t");
  await store.registry.removeNode("n");
  await store.registry.removeWorker("w");
  await internalsOf(store).link.client.call("CONFIG", "SET", "min-replicas-to-write", "1");
  const { state, reasons } = await statusOf(client);
  // Nodes and workers cannot report during an outage, so none counts as missing.
  expect([state, codes(reasons)]).toEqual(["stopped", ["REDIS_UNAVAILABLE"]]);
  expect(reasons[0]).toMatchObject({
    message: "Redis accepts no writes: too few replicas are connected.",
    remedy: expect.stringContaining("min-replicas-to-write"),
  });
  const connection = `redis://127.0.0.1:${await freePort()}`;
  await using away = new Client({ connection, connectTimeout: 200 });
  expect(await statusOf(away)).toMatchObject({ state: "stopped", reasons: [{ code: "REDIS_UNAVAILABLE" }] });
});

it("tells a Redis that is reached and does not answer from one that is gone", async () => {
  redis.pause();
  try {
    await using slow = new Client({ connection: redis.url, connectTimeout: 500 });
    const { state, reasons } = await statusOf(slow);
    expect([state, codes(reasons)]).toEqual(["stopped", ["REDIS_UNAVAILABLE"]]);
    expect(reasons[0]).toMatchObject({
      message: "Redis is reached, and does not answer in time.",
      remedy: expect.stringContaining("SLOWLOG"),
    });
  } finally {
    redis.continue();
  }
});

it("is `stopped` while the queue of the alerts is paused, or a queue by nobody knows whom", async () => {
  await put("t");
  await put("alert", { queue: "carillon-alerts" });
  await store.queues.pause("carillon-alerts", "bob", "");
  expect(await statusOf(client)).toMatchObject({
    state: "stopped",
    reasons: [{ code: "QUEUE_PAUSED" }],
    notes: [],
  });
  await store.queues.resume("carillon-alerts");
  const plain = new Queue(QUEUE, { connection: { url: redis.url }, prefix: bullPrefix("carillon", QUEUE) });
  await plain.pause();
  await plain.close();
  expect(await statusOf(client)).toMatchObject({
    state: "stopped",
    notes: [],
    reasons: [{ code: "QUEUE_PAUSED", message: "the queue bells is paused." }],
  });
});

it("notes a pause of a queue with its author beside the state, whatever else is wrong", async () => {
  await put("t");
  await operatorOf(client).queues.pause({ queue: QUEUE, note: "deploy" }, { by: "ann" });
  expect(await statusOf(client)).toMatchObject({ state: "on-time", reasons: [] });
  await owe(60_000);
  const { state, behind, reasons, notes } = await statusOf(client);
  expect([state, codes(reasons), codes(notes)]).toEqual(["behind", ["OVERDUE"], ["QUEUE_PAUSED"]]);
  expect(behind).toBeGreaterThanOrEqual(60_000);
  expect(notes[0]).toMatchObject({ queue: QUEUE, since: expect.any(Number) });
  expect(notes[0]?.message).toBe("the queue bells is paused by ann: deploy.");
});

it("notes a silence of all alerts with its author, end and reason", async () => {
  const until = (await store.serverTime()) + 3_600_000;
  const put = (more: object) => operatorOf(client).silences.put({ until, ...more }, { by: "ann" });
  await put({ kind: "failed" });
  await put({ owner: "acme" });
  expect((await statusOf(client)).notes).toEqual([]);
  const { id, created } = await put({ all: true, note: "INC-43" });
  const { state, notes } = await statusOf(client);
  expect([state, codes(notes)]).toEqual(["on-time", ["SILENCED"]]);
  expect(notes[0]).toMatchObject({
    since: created,
    until,
    message: expect.stringMatching(/^all alerts are silenced by ann until \d{4}-.*Z: INC-43\.$/),
    remedy: `To end it now: carillon unsilence ${id}`,
  });
  expect(codes((await statusOf(new Client({ store, owner: "acme" }))).notes)).toEqual(["SILENCED"]);
  await operatorOf(client).silences.delete({ id });
  expect((await statusOf(client)).notes).toEqual([]);
});

it("notes settings of Redis that changed under the nodes, each once, and nodes with one id", async () => {
  const since = (await store.serverTime()) - 60_000;
  await beat({ unsafe: [{ code: "AOF_OFF", since }] });
  const eviction = { code: "EVICTION", policy: "allkeys-lru", since } as const;
  await beat({
    id: "m",
    instance: "a",
    host: "h1",
    unsafe: [{ code: "AOF_OFF", since: since + 1 }, eviction],
  });
  await beat({ id: "m", instance: "b", host: "h2", pid: 2 });
  const { state, notes, nodes } = await statusOf(client);
  expect([state, nodes.alive]).toEqual(["on-time", 3]);
  expect(notes).toMatchObject([
    { code: "AOF_OFF", since, message: "appendonly is off: a restart of Redis loses acknowledged writes." },
    { code: "EVICTION", since, message: "maxmemory-policy is allkeys-lru: Redis may drop tasks and jobs." },
    { code: "SAME_NODE_ID", message: "2 nodes have the id m: process 1 on h1, process 2 on h2." },
  ]);
  // One of them stops, and the other is started again after a crash.
  await store.registry.removeNode("m", "a");
  await beat({ id: "m", instance: "c", started: (await store.serverTime()) + 1 });
  expect((await statusOf(client)).notes.map(({ code }) => code)).toEqual(["AOF_OFF"]);
});

it("notes a freeze with its author and end, and still says that no node is alive", async () => {
  await operatorOf(client).freezes.put(
    { owner: "acme", note: "INC-43", until: Date.now() + 3_600_000 },
    { by: "ann" },
  );
  await operatorOf(client).freezes.put({ all: true, from: Date.now() + 3_600_000 });
  const { state, reasons, notes } = await statusOf(client);
  expect([state, codes(reasons), codes(notes)]).toEqual(["on-time", [], ["FROZEN"]]);
  expect(notes[0]).toMatchObject({
    owner: "acme",
    message: expect.stringMatching(/owner acme: frozen by ann until .*INC-43/),
  });
  // Ignores freezes of other owners.
  expect(codes((await statusOf(new Client({ store, owner: "other" }))).notes)).toEqual([]);
  expect(codes((await statusOf(new Client({ store, owner: "acme" }))).notes)).toEqual(["FROZEN"]);
  await store.registry.removeNode("n");
  expect(await statusOf(client)).toMatchObject({
    state: "stopped",
    reasons: [{ code: "NO_NODE" }],
    notes: [{ code: "FROZEN" }],
  });
});

it("is `stopped` if no worker takes waiting jobs, or none has the type of a due task", async () => {
  await put("t");
  await put("strange", { type: "unknown", queue: "other" });
  await put("idle", { type: "unknown", queue: "quiet" });
  await client.trigger("t");
  await store.registry.removeWorker("w");
  // A new client, because answers about workers are cached.
  await work("w", ["other"], ["ring"]);
  await owe(10, "other");
  const { state, reasons } = await statusOf(new Client({ store }));
  expect(state).toBe("stopped");
  expect(reasons).toMatchObject([
    {
      code: "NO_WORKER",
      queue: QUEUE,
      message: "no worker works the queue bells.",
      since: expect.any(Number),
    },
    { code: "NO_WORKER", queue: "other", type: "unknown" },
  ]);
});

it("is `stopped` while a worker fails runs whose type it lacks, also if another worker has it", async () => {
  await put("t");
  const at = await store.serverTime();
  const lacking = [{ queue: QUEUE, type: "ring", since: at - 60_000 }];
  await store.registry.beatWorker({
    ...WORKER,
    id: "old",
    queues: [QUEUE],
    types: ["other"],
    lacking,
    beat: at,
  });
  const { state, reasons } = await statusOf(client);
  expect(state).toBe("stopped");
  expect(reasons).toMatchObject([
    {
      code: "NO_WORKER",
      queue: QUEUE,
      type: "ring",
      since: at - 60_000,
      message: expect.stringMatching(/^the worker old /),
    },
  ]);
  // The type was a typing error, and its only task is deleted.
  await put("u", { type: "ring-ring" });
  await client.delete("t");
  expect(await statusOf(client)).toMatchObject({ state: "on-time", reasons: [] });
});

it("is `stopped` while the jobs of a dead worker are in a queue without workers, since its last heartbeat", async () => {
  await put("t", { queue: "lonely" });
  await client.trigger("t");
  const { link, keys } = internalsOf(store);
  const { bull } = keys.queue("lonely");
  await link.client.rpoplpush(`${bull}wait`, `${bull}active`);
  const beat = (await store.serverTime()) - 60_000;
  await store.registry.beatWorker({
    ...WORKER,
    id: "dead",
    queues: ["lonely"],
    types: ["ring"],
    beat,
    every: 5_000,
  });
  expect(await statusOf(client)).toMatchObject({
    state: "stopped",
    reasons: [{ code: "NO_WORKER", queue: "lonely", since: beat }],
  });
});

it("is `stopped` while alerts wait and no worker delivers them, also in a paused queue", async () => {
  await put("alert", { queue: "carillon-alerts" });
  await client.trigger("alert");
  expect((await statusOf(client)).reasons).toEqual([]);
  await store.registry.removeWorker("w");
  const fresh = new Client({ store });
  expect(codes((await statusOf(fresh)).reasons)).toEqual(["ALERTS_UNDELIVERED"]);
  await store.queues.pause("carillon-alerts", "", "");
  expect(codes((await statusOf(fresh)).reasons)).toEqual(["QUEUE_PAUSED", "ALERTS_UNDELIVERED"]);
});

/** Triggers `count` runs of the task, which workers hold or which wait; all enqueued `ago` ms before now. */
async function queueUp(id: string, count: number, ago: number): Promise<string[]> {
  const { link, keys } = internalsOf(store);
  const { bull, run } = keys.queue(QUEUE);
  const at = (await store.serverTime()) - ago;
  for (let i = 0; i < count; i++) await client.trigger(id);
  const runs = await link.client.lrange(`${bull}wait`, 0, -1);
  for (const one of runs) {
    const [local] = String(await link.client.hget(run(one), "of")).split(" ");
    if (local?.endsWith(`/${id}`)) await link.client.hset(run(one), "of", `${local} ${at} n`);
  }
  return runs;
}
/** A worker takes the oldest job of the queue, and started its run `ago` ms before now. */
async function hold(ago: number): Promise<void> {
  const { link, keys } = internalsOf(store);
  const { bull, run } = keys.queue(QUEUE);
  const id = (await link.client.rpoplpush(`${bull}wait`, `${bull}active`)) ?? "";
  await link.client.hset(run(id), { state: "running", started: (await store.serverTime()) - ago });
}

it("is `behind` while runs wait for busy workers for a minute, with the longest run under way", async () => {
  await put("t", { overlap: "allow" });
  await queueUp("t", 3, 61_000);
  await hold(65_000);
  const { state, behind, reasons } = await statusOf(client);
  expect([state, codes(reasons)]).toEqual(["behind", ["JOBS_WAIT"]]);
  expect(behind).toBeGreaterThanOrEqual(61_000);
  expect(reasons[0]).toMatchObject({
    queue: QUEUE,
    since: expect.any(Number),
    message: expect.stringMatching(
      /^the queue bells: 2 jobs wait, the oldest for 1 min \d+ s; its worker has 1 run under way for 1 min \d+ s\.$/,
    ),
    remedy: expect.stringContaining("carillon running"),
  });
});

it("says nothing about runs that wait for less, that were started before, or that are held back on purpose", async () => {
  const { link, keys } = internalsOf(store);
  const { run } = keys.queue(QUEUE);
  await put("t", { overlap: "allow" });
  await queueUp("t", 2, 50_000);
  await hold(65_000);
  expect((await statusOf(client)).reasons).toEqual([]);
  const [waiting = ""] = await queueUp("t", 0, 70_000);
  expect(codes((await statusOf(client)).reasons)).toEqual(["JOBS_WAIT"]);
  await operatorOf(client).queues.pause({ queue: QUEUE });
  expect((await statusOf(client)).reasons).toEqual([]);
  await operatorOf(client).queues.resume({ queue: QUEUE });
  await operatorOf(client).freezes.put({ queue: QUEUE });
  // A retry that waits: its run was started.
  await link.client.hset(run(waiting), "started", await store.serverTime());
  expect((await statusOf(client)).reasons).toEqual([]);
});

/** The task has had `runs` runs that took `ms` each. */
async function usually(id: string, runs: number, ms: number): Promise<void> {
  const { link, keys } = internalsOf(store);
  await link.client.hset(keys.queue(QUEUE).stats(`system/${id}`), "succeeded", `${runs} ${runs * ms}`);
}

it("notes jobs that a limit of BullMQ's holds, with the limit, how many and since when", async () => {
  const { link, keys } = internalsOf(store);
  const { bull } = keys.queue(QUEUE);
  await put("t", { overlap: "allow" });
  await usually("t", 4, 40_000);
  await queueUp("t", 35, 80_000);
  await hold(65_000);
  await link.client.hset(`${bull}meta`, "concurrency", 1);
  const { state, reasons, notes, behind, queues, at } = await statusOf(client);
  expect([state, behind, reasons]).toEqual(["on-time", 0, []]);
  expect(notes).toMatchObject([
    {
      code: "JOBS_LIMITED",
      queue: QUEUE,
      message: expect.stringMatching(
        /^the queue bells: 34 jobs wait, the oldest for 1 min 2\d s; BullMQ's own limit of 1 run at a time holds them\.$/,
      ),
      remedy: expect.stringContaining("setGlobalConcurrency"),
    },
  ]);
  expect((at ?? 0) - (notes[0]?.since ?? 0)).toBeGreaterThanOrEqual(80_000);
  expect(queues).toMatchObject([{ limit: { runs: 1, holds: "runs" } }]);
  // A bound client learns the limit, not how much others run.
  await put("mine", { owner: "acme" });
  const acme = new Client({ store, owner: "acme" });
  await acme.trigger({ id: "mine", owner: "acme" });
  const { run } = keys.queue(QUEUE);
  for (const id of await link.client.lrange(`${bull}wait`, 0, 0))
    await link.client.hset(run(id), "of", `acme/mine ${(at ?? 0) - 80_000} n`);
  expect((await statusOf(acme)).notes[0]?.message).toMatch(
    /^the queue bells: runs wait for a worker, the oldest for 1 min 2\d s; BullMQ's own limit of 1 run at a time holds them\.$/,
  );
});

it("notes that most of the newest runs fail, with what most of them have in common, until ten have succeeded", async () => {
  const { link, keys } = internalsOf(store);
  const now = await store.serverTime();
  /** Runs of a queue that have ended, one a second; the last one now. */
  const end = async (queue: string, ends: readonly (string | undefined)[]) => {
    await put(`t-${queue}`, { queue });
    const { journal, run } = keys.queue(queue);
    for (const [i, error] of ends.entries()) {
      const [id, at] = [`t-${queue}@${now + i}.x`, now - 1_000 * (ends.length - i)];
      const outcome = error === undefined ? "succeeded" : "failed";
      await link.client.hset(run(id), { of: `system/t-${queue} ${at} n`, outcome, error: error ?? "" });
      await link.client.zadd(journal, at, id);
    }
  };
  const refused = (i: number) => `Error: connect ECONNREFUSED 10.0.0.${i}:5432\n    at load (/app/db.js:1:2)`;
  await end("other", [undefined, refused(1), undefined, refused(2)]);
  expect((await statusOf(client)).notes).toEqual([]);
  await end(QUEUE, [undefined, refused(1), refused(2), refused(3), "Error: no paper"]);
  const { state, notes, at = 0 } = await statusOf(client);
  expect(state).toBe("on-time");
  expect(notes).toMatchObject([
    {
      code: "RUNS_FAIL",
      queues: [QUEUE],
      message:
        "4 of the newest 5 runs of the queue bells failed, 3 with: Error: connect ECONNREFUSED 10.0.0.3:5432.",
      remedy: expect.stringContaining("journal --failures --group"),
    },
  ]);
  expect(at - (notes[0]?.since ?? 0)).toBeGreaterThanOrEqual(4_000);
  // Another owner's runs are no reader's business.
  expect((await statusOf(new Client({ store, owner: "acme" }))).notes).toEqual([]);
  await link.client.del(keys.queue(QUEUE).journal);
  const healed = [...Array(20).fill(refused(1)), ...Array(9).fill(undefined)];
  await end(QUEUE, healed);
  expect(codes((await statusOf(client)).notes)).toEqual(["RUNS_FAIL"]);
  await link.client.del(keys.queue(QUEUE).journal);
  await end(QUEUE, [...healed, undefined]);
  expect((await statusOf(client)).notes).toEqual([]);
});

it("notes jobs that a rate holds, though their workers hold none", async () => {
  const { link, keys } = internalsOf(store);
  const { bull } = keys.queue(QUEUE);
  await put("t", { overlap: "allow" });
  await queueUp("t", 2, 80_000);
  expect(codes((await statusOf(client)).reasons)).toEqual(["JOBS_NOT_TAKEN"]);
  await link.client.set(`${bull}limiter`, 1, "PX", 600_000);
  const worker = await statusOf(client);
  expect([codes(worker.reasons), codes(worker.notes)]).toEqual([[], ["JOBS_LIMITED"]]);
  expect(worker.notes[0]?.message).toContain("BullMQ's own limit of runs per period holds them.");
  await link.client.hset(`${bull}meta`, { max: 100, duration: 60_000 });
  expect((await statusOf(client)).notes[0]?.message).toContain("limit of 100 runs per 1 min holds them.");
});

it("is `behind` while runs that hang fill a limit of BullMQ's", async () => {
  const { link, keys } = internalsOf(store);
  const { bull } = keys.queue(QUEUE);
  await put("t", { overlap: "allow" });
  await queueUp("t", 6, 90_000);
  for (let i = 0; i < 4; i++) await hold(30_000);
  await link.client.hset(`${bull}meta`, "concurrency", 4);
  expect(codes((await statusOf(client)).notes)).toEqual(["JOBS_LIMITED"]);
  // More than a minute, as long as the usual time is not known.
  const [oldest = ""] = await link.client.lrange(`${bull}active`, 0, 0);
  await link.client.hset(keys.queue(QUEUE).run(oldest), "started", (await store.serverTime()) - 61_000);
  const { state, reasons, notes } = await statusOf(client);
  expect([state, codes(reasons), notes]).toEqual(["behind", ["JOBS_WAIT"], []]);
  expect(reasons[0]?.message).toMatch(
    /^the queue bells: 2 jobs wait, .*has 4 runs under way, the longest for 1 min \d+ s; BullMQ's own limit of 4 runs at a time holds them\.$/,
  );
  await usually("t", 4, 40_000);
  expect(codes((await statusOf(client)).notes)).toEqual(["JOBS_LIMITED"]);
  await usually("t", 4, 30_000);
  expect(codes((await statusOf(client)).reasons)).toEqual(["JOBS_WAIT"]);
});

it("is `stopped` while a worker that holds nothing takes no job", async () => {
  await put("t", { overlap: "allow" });
  await queueUp("t", 1, 10_000);
  expect((await statusOf(client)).reasons).toEqual([]);
  await queueUp("t", 0, 16_000);
  const { state, reasons } = await statusOf(client);
  expect([state, codes(reasons)]).toEqual(["stopped", ["JOBS_NOT_TAKEN"]]);
  expect(reasons[0]?.message).toMatch(
    /^the queue bells: 1 job has waited for \d+ s, and its worker takes none\.$/,
  );
  // A run has just ended: the worker is between two jobs.
  const { link, keys } = internalsOf(store);
  await link.client.zadd(keys.queue(QUEUE).journal, await store.serverTime(), "other");
  expect((await statusOf(client)).reasons).toEqual([]);
});

it("finds a run that waits behind the items of a fan-out, and does not count the items", async () => {
  const { link, keys } = internalsOf(store);
  const { bull } = keys.queue(QUEUE);
  await put("t", { overlap: "allow" });
  const items = Array.from({ length: 200 }, (_, i) => `item${i}`);
  await link.client.rpush(`${bull}wait`, ...items);
  await link.client.lpush(`${bull}active`, "item");
  expect((await statusOf(client)).reasons).toEqual([]);
  await queueUp("t", 1, 61_000);
  expect(codes((await statusOf(client)).reasons)).toEqual(["JOBS_WAIT"]);
});

it("does not tell a bound client how many jobs others have", async () => {
  await put("t", { overlap: "allow", owner: "acme" });
  await client.trigger({ id: "t", owner: "acme" });
  await queueUp("t", 0, 61_000);
  await internalsOf(store).link.client.lpush(`${internalsOf(store).keys.queue(QUEUE).bull}active`, "other");
  const { reasons } = await statusOf(new Client({ store, owner: "acme" }));
  expect(reasons).toMatchObject([{ code: "JOBS_WAIT", owner: "acme" }]);
  expect(reasons[0]?.message).toMatch(
    /^the queue bells: runs wait for a worker, the oldest for 1 min \d+ s\.$/,
  );
  expect((await statusOf(new Client({ store, owner: "other" }))).reasons).toEqual([]);
});

it("covers only the owner's tasks for a bound client", async () => {
  await put("theirs");
  await put("other", { queue: "other" });
  await owe(60_000);
  await operatorOf(client).queues.pause({ queue: "other" });
  await put("mine", { owner: "acme" });
  const acme = new Client({ store, owner: "acme" });
  expect(await statusOf(acme)).toMatchObject({ state: "on-time", behind: 0 });
  expect((await statusOf(acme)).queues).toEqual([{ name: QUEUE, behind: 0, workers: 0 }]);
  await owe(30_000);
  const { state, behind, reasons } = await statusOf(acme);
  expect([state, codes(reasons), reasons[0]?.owner]).toEqual(["behind", ["OVERDUE"], "acme"]);
  expect(behind).toBeGreaterThanOrEqual(30_000);
});
