import { operatorOf } from "@carillon/ops";
import { Client, defineTask, Worker } from "@carillon/sdk";
import { bullPrefix } from "@carillon/store";
import { internalsOf, storeOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { Worker as BullWorker } from "bullmq";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { nodeInfo } from "../../../../test/helpers.js";
import { statusOf } from "../../../ops/test/in-words.js";
import { Bench, nothing, QUEUE } from "./bench.js";

const bench = Bench.use("heartbeat");
const store = () => storeOf(bench.client);
const list = () =>
  operatorOf(bench.client)
    .workers.list()
    .then(({ workers }) => workers);
/** Uses another client, because answers about workers are cached. */
const put = async (client: Client, type: string, queue = QUEUE) =>
  client.put({ id: `${type}-${queue}`, type, queue, schedule: { every: "1h" } });
const fresh = () => new Client({ store: store() });
const codes = async (type: string, queue?: string) =>
  (await put(fresh(), type, queue)).warnings.map(({ code }) => code);

/** Announces a node, so that puts warn only of workers. */
beforeEach(async () =>
  store().registry.beat(nodeInfo("n", { every: 600_000, beat: await store().serverTime() })),
);

const HOUR = 3_600_000;
const soon = { heartbeatEvery: 100 };

/** Releases the handlers of a test before its workers are stopped. */
let open: () => void;
let opened: Promise<void>;
beforeEach(() => {
  opened = new Promise((resolve) => {
    open = resolve;
  });
});
afterEach(() => open());

const waits = (name: string) => defineTask(name, { queue: QUEUE, payload: nothing, handler: () => opened });

it("a worker is listed with its runs, as stopping while it waits, and not after its end", async () => {
  const type = waits("ring");
  const worker = await bench.work([type], soon);
  expect(await list()).toMatchObject([
    {
      id: worker.id,
      pid: process.pid,
      queues: [QUEUE],
      types: ["ring"],
      running: 0,
      runs: [],
    },
  ]);
  const run = await bench.run("t", "ring");
  const busy = await eventually(async () => {
    const [one] = await list();
    return one?.running === 1 && one;
  });
  expect(busy.runs).toEqual([{ run, queue: QUEUE, task: "system/t" }]);
  const bound = operatorOf(new Client({ store: store(), owner: "acme" }));
  const [seen] = (await bound.workers.list()).workers;
  expect(seen).toMatchObject({ id: worker.id, runs: [] });
  expect(seen).not.toHaveProperty("running");

  const stopped = worker.stop();
  await eventually(async () => expect(await list()).toMatchObject([{ state: "stopping", running: 1 }]));
  expect(await codes("ring")).toEqual(["NO_WORKER"]);
  open();
  await stopped;
  expect(await list()).toEqual([]);
  expect((await bench.client.runs.get(run)).worker).toBe(worker.id);
});

it("a worker reports the types whose runs it fails because it lacks them, to a bound client too", async () => {
  const worker = await bench.work([waits("other")], soon);
  await bench.run("t", "ring");
  const lacking = [{ queue: QUEUE, type: "ring", since: expect.any(Number) }];
  await eventually(async () => expect(await list()).toMatchObject([{ id: worker.id, lacking }]));
  const { reasons } = await statusOf(fresh());
  expect(reasons).toMatchObject([{ code: "NO_WORKER", queue: QUEUE, type: "ring" }]);
});

it("a worker that misses beats is silent, then dead, and forgotten after an hour", async () => {
  const type = waits("ring");
  const rarely = { heartbeatEvery: "5m" } as const;
  const worker = await bench.work([type], rarely);
  const [{ alive: _, state: __, lacking: ___, ...info } = {} as never] = await list();
  const now = await store().serverTime();
  const ago = { silent: HOUR / 6, dead: HOUR / 3, ahead: -HOUR / 3, forgotten: 2 * HOUR };
  for (const [id, ms] of Object.entries(ago))
    await store().registry.beatWorker({ ...info, running: 0, id, beat: now - ms });
  const { keys } = internalsOf(store());
  for (const foreign of ["no JSON", "{}", '{"id":"x","beat":1,"every":1}'])
    await bench.admin.hset(keys.workers, `x${foreign.length}`, foreign);
  const states = async () => Object.fromEntries((await list()).map(({ id, state }) => [id, state]));
  expect(await states()).toEqual({
    [worker.id]: "ready",
    silent: "silent",
    dead: "dead",
    ahead: "dead",
    forgotten: "dead",
  });
  const other = await bench.work([type], rarely);
  expect(await states()).toEqual({
    [worker.id]: "ready",
    [other.id]: "ready",
    silent: "silent",
    dead: "dead",
    ahead: "dead",
  });
});

it("a worker names at most 20 of its runs", async () => {
  const type = waits("ring");
  const worker = await bench.work([type], { ...soon, concurrency: 30 });
  await bench.run("t", "ring");
  for (let i = 1; i < 30; i++) await bench.again("t");
  const busy = await eventually(async () => {
    const [one] = await list();
    return one?.running === 30 && one;
  });
  expect(busy.runs).toHaveLength(20);
  const running = await bench.client.runs.running();
  expect(running).toHaveLength(30);
  expect(running).toMatchObject(Array.from({ length: 30 }, () => ({ worker: worker.id, type: "ring" })));
  const times = running.map(({ started = 0 }) => started);
  expect(times).toEqual([...times].sort((a, b) => a - b));
  const { runs } = bench.client;
  const first = await runs.running({ limit: 5 });
  expect(first.map(({ id }) => id)).toEqual(running.slice(0, 5).map(({ id }) => id));
  expect(await runs.running({ task: "t" })).toHaveLength(30);
  expect(await runs.running({ queue: "other" })).toEqual([]);
  expect(await new Client({ store: store(), owner: "acme" }).runs.running()).toEqual([]);
  for (const [wrong, field] of [
    [{ limit: 0 }, "limit"],
    [{ offset: 1 }, "offset"],
  ] as const) {
    await expect(runs.running(wrong as never)).rejects.toMatchObject({ code: "INVALID_OPTION", field });
  }
});

it("a run counts as running while its items run, whatever the state of its job", async () => {
  const many = defineTask("many", {
    queue: QUEUE,
    payload: nothing,
    generate: () => [1, 2, 3],
    process: () => opened,
  });
  await bench.work([many], { ...soon, concurrency: 2 });
  const run = await bench.run("m", "many");
  const items = () => bench.queue().getActiveCount();
  await eventually(async () => expect(await items()).toBe(2));
  expect(await bench.client.runs.running()).toMatchObject([{ id: run }]);
  await eventually(async () => expect(await list()).toMatchObject([{ running: 1, runs: [{ run }] }]));
});

it("a put, a trigger and an enqueue warn of a queue without a worker, and of a type without one", async () => {
  const client = fresh();
  const { warnings } = await put(client, "ring");
  expect(warnings).toEqual([
    {
      code: "NO_WORKER",
      message: `No worker works the queue ${QUEUE}. Jobs of type ring wait there until one starts.`,
      remedy: `Start a worker that has the type ring and works the queue ${QUEUE}.`,
    },
  ]);
  const type = waits("ring");
  const toll = waits("toll");
  expect(await client.trigger(`ring-${QUEUE}`)).toMatchObject({ warnings });
  expect(await client.enqueue(type, {})).toMatchObject({ warnings });

  await bench.work([type]);
  const known = fresh();
  expect(await put(known, "ring")).toMatchObject({ warnings: [] });
  const [warning] = (await put(known, "toll")).warnings;
  expect(warning?.message).toBe(
    `No worker of the queue ${QUEUE} handles the type toll: its 1 worker does not have it.` +
      " A worker fails the runs whose type it does not have.",
  );
  expect(await known.enqueue(toll, {}, { delay: "1h" })).toMatchObject({ warnings: [{ code: "NO_WORKER" }] });
  // The task never runs, so no worker is needed.
  const past = { id: "p", type: "toll", queue: QUEUE, schedule: { at: "2020-01-01T00:00:00Z" } };
  expect(await known.put(past)).toMatchObject({ warnings: [{ code: "NO_NEXT" }] });
});

it("a put, a validation and a delayed enqueue warn that no node is alive; what is enqueued at once does not", async () => {
  await bench.work([waits("ring")]);
  const asked = async () => {
    const client = fresh();
    const task = { id: "t", type: "ring", queue: QUEUE, schedule: { every: "1h" } };
    const answers = [
      await client.put(task),
      ...(await client.putMany([task])),
      await client.validate(task),
      await client.enqueue(waits("ring"), {}, { delay: "1h" }),
      await client.enqueue(waits("ring"), {}),
      await client.trigger("t", { overlap: "allow" }),
    ];
    return answers.map((answer) => "warnings" in answer && answer.warnings.map(({ code }) => code));
  };
  expect(await asked()).toEqual([[], [], [], [], [], []]);
  const dead = (await store().serverTime()) - 4 * 600_000;
  await store().registry.beat(nodeInfo("n", { every: 600_000, beat: dead }));
  expect(await asked()).toEqual([["NO_NODE"], ["NO_NODE"], ["NO_NODE"], ["NO_NODE"], [], []]);
  await store().registry.removeNode("n");
  expect((await put(fresh(), "ring")).warnings).toEqual([
    {
      code: "NO_NODE",
      message: "No scheduler node is alive.",
      remedy: "Start one, for example carillon-scheduler: until then nothing is enqueued at its time.",
    },
  ]);
});

it("there is no warning for a queue with a plain BullMQ worker, or if Redis does not tell", async () => {
  await bench.work([waits("ring")]);
  const connection = store().connect("patient");
  const plain = new BullWorker("plain", async () => {}, {
    connection,
    prefix: bullPrefix(bench.namespace, "plain"),
  });
  try {
    await eventually(async () => expect((await store().queues.workers(["plain"]))?.get("plain")).toBe(1));
    expect(await codes("any", "plain")).toEqual([]);
    expect(await codes("any", "none")).toEqual(["NO_WORKER"]);
    // Our own workers do not count as plain ones.
    await eventually(async () => expect((await store().queues.workers([QUEUE]))?.get(QUEUE)).toBe(1));
    expect(await codes("any")).toEqual(["NO_WORKER"]);
    const { queues } = store();
    const told = vi.spyOn(queues, "connections").mockResolvedValue(undefined);
    expect(await codes("any", "none")).toEqual([]);
    told.mockRestore();
  } finally {
    await plain.close();
    connection.disconnect();
  }
});

it("the list of workers is read once for a thousand tasks, not for each put", async () => {
  await bench.work([waits("ring")]);
  const client = fresh();
  const workers = vi.spyOn(store().registry, "workers");
  const connections = vi.spyOn(store().queues, "connections");
  const schedule = { every: "1h" } as const;
  const tasks = Array.from({ length: 1_000 }, (_, i) => ({
    id: `t${i}`,
    type: "ring",
    queue: QUEUE,
    schedule,
  }));
  const puts = await client.putMany([...tasks, { id: "x", type: "toll", queue: QUEUE, schedule }]);
  expect(puts.filter(({ warnings }) => warnings.length > 0).map(({ task }) => task.id)).toEqual(["x"]);
  await Promise.all(tasks.slice(0, 50).map((task) => client.put(task)));
  // At most one read for every second, or every five, of the time that this takes on a busy machine.
  expect(workers.mock.calls.length).toBeLessThan(20);
  expect(connections.mock.calls.length).toBe(1);
  vi.restoreAllMocks();
});

it("a put succeeds if the list of workers cannot be read", async () => {
  const { keys } = internalsOf(store());
  await bench.admin.set(keys.workers, "no hash");
  expect(await put(fresh(), "ring")).toMatchObject({ outcome: "created", warnings: [] });
  const error = vi.fn();
  const worker = await bench.work([waits("ring")], {
    ...soon,
    logger: { debug() {}, info() {}, warn() {}, error },
  });
  expect(error.mock.calls.map(([, text]) => text)).toEqual(["the heartbeat failed"]);
  await bench.admin.del(keys.workers);
  await eventually(async () => expect(await list()).toMatchObject([{ id: worker.id }]));
});

it.each(["1h", 99, "often"])("%s is refused as the time between two beats", (heartbeatEvery) => {
  expect(() => new Worker({ connection: "redis://x", types: [waits("ring")], heartbeatEvery })).toThrow(
    expect.objectContaining({ code: "INVALID_OPTION", field: "heartbeatEvery" }),
  );
});
