import { decide, occurrenceKey, parseTask, ScheduleCache, shardOf, type TaskInput } from "@carillon/core";
import {
  bullPrefix,
  type ClaimItem,
  dueTask,
  isForeign,
  type RedisClient,
  type Store,
  type StoredTask,
} from "@carillon/store";
import { type VirtualClock, virtualStore } from "@carillon/testing";
import { Queue, Worker } from "bullmq";
import { afterEach, beforeEach, expect, it } from "vitest";
import { onEveryEngine } from "./engines.js";

const START = Date.parse("2026-01-01T00:00:00Z");
const QUEUE = "bells";
let serial = 0;

onEveryEngine("the claim protocol", (connection) => {
  let store: Store;
  let clock: VirtualClock;
  let bull: Queue;
  let bullConnection: RedisClient;

  beforeEach(async () => {
    serial += 1;
    ({ store, clock } = await virtualStore({
      connection: connection(),
      namespace: `n${serial}`,
      queues: [QUEUE],
      start: START,
    }));
    bullConnection = store.connect("patient");
    bull = new Queue(QUEUE, { connection: bullConnection, prefix: bullPrefix(store.namespace, QUEUE) });
  });
  afterEach(async () => {
    await bull.close();
    bullConnection.disconnect();
    await store.close();
  });

  const name = (id: string) => ({ queue: QUEUE, owner: "system", id });
  const put = async (input: Partial<TaskInput> & { id: string }) =>
    store.tasks.put(QUEUE, [parseTask({ type: "noop", queue: QUEUE, schedule: { every: "10s" }, ...input })]);
  const stored = async (id: string) => (await store.tasks.get(name(id))) as StoredTask;
  const schedules = new ScheduleCache();

  /** The two halves of a claim, apart, so that a test can do something between them. */
  async function read(id: string): Promise<{ items: ClaimItem[]; now: number; shard: number }> {
    const shard = shardOf(`system/${id}`);
    const { now, entries } = await store.claims.readDue(QUEUE, shard, 50);
    const items = entries.flatMap((entry): ClaimItem[] => {
      const { task } = entry;
      if (!task || isForeign(task)) return [];
      const item = { ...entry, task };
      return [{ entry: item, decision: decide(dueTask(item, schedules), now) }];
    });
    return { items, now, shard };
  }
  async function commit(half: Awaited<ReturnType<typeof read>>, token: string): Promise<string[]> {
    const by = { token, node: "test" };
    const { results } = await store.claims.commit(QUEUE, half.shard, half.items, by, half.now);
    return results.map(({ status }) => status);
  }
  const claim = async (id: string, token: string) => commit(await read(id), token);

  async function jobs() {
    return await bull.getJobs(
      ["wait", "prioritized", "active", "completed", "failed", "delayed"],
      0,
      -1,
      true,
    );
  }

  it("the script makes the same key of an occurrence as `occurrenceKey` does, which says when to leave it out", async () => {
    for (const id of ["0", "a.b", "-_-", "A".repeat(128)]) {
      await put({ id });
      await clock.advance(10_000);
      await claim(id, "tok");
      const { definition } = await stored(id);
      const [job] = (await jobs()).filter(({ data }) => data.occurrence.task === id);
      expect(job?.data.occurrence.key).toBe(occurrenceKey(definition, job?.data.occurrence.nominal));
      await store.tasks.delete(name(id));
    }
  });

  it("turns a due occurrence into one job with the public contract", async () => {
    await put({ id: "t", payload: { a: [1, "ü"] }, subject: "s", group: "g" });
    await clock.set(START + 10_000);
    expect(await claim("t", "tok1")).toEqual(["OK"]);

    const [job, ...others] = await jobs();
    expect(others).toEqual([]);
    const task = await stored("t");
    expect(job?.name).toBe("noop");
    expect(job?.data).toEqual({
      payload: { a: [1, "ü"] },
      occurrence: {
        key: `bells/system/t@${START + 10_000}`,
        task: "t",
        owner: "system",
        queue: QUEUE,
        nominal: START + 10_000,
        due: START + 10_000,
        enqueued: START + 10_000,
        generation: Number(task.generation),
        trigger: "schedule",
        run: job?.id,
        subject: "s",
        group: "g",
      },
    });
    expect(job?.opts).toMatchObject({ removeOnComplete: false, removeOnFail: false });
    expect(task).toMatchObject({ state: "scheduled", cursor: START + 10_000, nominal: START + 20_000 });
    expect(await store.claims.next(QUEUE)).toEqual(
      new Map([
        [String(shardOf("system/t")), START + 20_000],
        ["r", START + 20_000],
      ]),
    );
  });

  it("says in the job what was missed, and texts as they were put, whatever they look like", async () => {
    const text = '"},"occurrence":{"key":"x\\ \u{1F514}';
    await put({ id: "t", payload: { [text]: text }, subject: text, submitter: text, group: text });
    await clock.set(START + 30_000);
    expect(await claim("t", "tok1")).toEqual(["OK"]);
    const [job] = await jobs();
    expect(job?.data).toMatchObject({
      payload: { [text]: text },
      occurrence: {
        key: `bells/system/t@${START + 30_000}`,
        trigger: "catch-up",
        missed: { from: START + 10_000, to: START + 20_000 },
        ...{ subject: text, submitter: text, group: text },
      },
    });
  });

  it("answers DONE to the same token and STALE to another one", async () => {
    await put({ id: "t" });
    await clock.advance(10_000);
    const half = await read("t");
    const other = await read("t");
    expect(await commit(half, "a")).toEqual(["OK"]);
    expect(await commit(half, "a")).toEqual(["DONE"]);
    expect(await commit(other, "b")).toEqual(["STALE"]);
    expect(await jobs()).toHaveLength(1);
  });

  it.each([
    ["the run is over and forgotten", (run: string) => store.keys.queue(QUEUE).run(run)],
    ["the job is gone", (run: string) => store.keys.queue(QUEUE).job(run)],
  ])("answers DONE to the same token also where %s", async (_what, keyOf) => {
    await put({ id: "t" });
    await clock.advance(10_000);
    const half = await read("t");
    await commit(half, "a");
    const [run] = await store.runs.open(name("t"));
    await store.link.ask((client) => client.del(keyOf(run as string)));
    expect(await commit(half, "a")).toEqual(["DONE"]);
  });

  it.each([
    ["a changed definition", () => put({ id: "t", priority: 3 }).then(() => {})],
    ["a pause", () => store.tasks.pause(name("t")).then(() => {})],
    [
      "a manual trigger",
      () => store.claims.trigger(name("t"), { key: "k", token: "m", node: "x" }).then(() => {}),
    ],
    [
      "delete and put",
      () =>
        store.tasks
          .delete(name("t"))
          .then(() => put({ id: "t" }))
          .then(() => {}),
    ],
  ])("is STALE after %s", async (_what, change) => {
    await put({ id: "t", overlap: "allow" });
    await clock.advance(10_000);
    const half = await read("t");
    const before = (await jobs()).length;
    const generation = BigInt((await stored("t")).generation);
    await clock.advance(1);
    await change();
    const after = (await jobs()).length;
    expect(BigInt((await stored("t")).generation)).toBeGreaterThan(generation);
    expect(await commit(half, "a")).toEqual(["STALE"]);
    expect((await jobs()).length).toBe(after);
    expect(after - before).toBeLessThanOrEqual(1);
  });

  it("a retry that was read in time is STALE once the next time of the schedule is due", async () => {
    await put({ id: "t", backoff: { period: "3s", jitter: 0 } });
    await clock.set(START + 10_000);
    await claim("t", "a");
    const [run] = await store.runs.list(name("t"), 1);
    const by = { worker: "w", pid: 1, host: "h", attempt: 1, made: 0 };
    const started = await store.runs.start(name("t"), run?.id as string, by);
    const fence = started.word === "OK" ? started.fence : 0;
    await store.runs.settle(name("t"), run?.id as string, { fence, made: 0, outcome: "failed" });
    const [job] = await bull.getJobs(["wait"]);
    await job?.remove();

    await clock.set(START + 13_000);
    const half = await read("t");
    expect(half.items).toMatchObject([{ decision: { enqueue: { trigger: "retry" } } }]);
    await clock.set(START + 12_999);
    expect(await commit(half, "early")).toEqual(["EARLY"]);
    await clock.set(START + 20_000);
    expect(await commit(half, "b")).toEqual(["STALE"]);
    expect(await claim("t", "c")).toEqual(["OK"]);
    const runs = await store.runs.list(name("t"), 10);
    expect(runs.map(({ trigger, nominal }) => [trigger, nominal - START])).toEqual([
      ["schedule", 20_000],
      ["schedule", 10_000],
    ]);
    expect(await store.runs.ledger(name("t"))).toMatchObject([{ reason: "retry-superseded" }]);
    expect((await stored("t")).pending).toEqual([]);
  });

  it("is EARLY when Redis time went back, and works when it is due again", async () => {
    await put({ id: "t" });
    await clock.advance(10_000);
    const half = await read("t");
    await clock.advance(-1);
    expect(await commit(half, "a")).toEqual(["EARLY"]);
    expect(await jobs()).toEqual([]);
    await clock.advance(1);
    expect(await claim("t", "b")).toEqual(["OK"]);
  });

  it("skips beside a live job, records why, and lets the next one through when the job is over", async () => {
    await put({ id: "t" });
    await clock.advance(10_000);
    await claim("t", "a");
    await clock.advance(10_000);
    const half = await read("t");
    expect(await commit(half, "b")).toEqual(["OK"]);
    expect(await commit(half, "b")).toEqual(["DONE"]);
    await clock.advance(10_000);
    await claim("t", "c");
    expect(await jobs()).toHaveLength(1);
    expect(await store.runs.ledger(name("t"))).toEqual([
      {
        reason: "overlap",
        from: START + 20_000,
        to: START + 30_000,
        decisions: 2,
        at: START + 30_000,
        by: "test",
        run: expect.stringMatching(/^t@/),
      },
    ]);

    await workAll();
    await clock.advance(10_000);
    expect(await claim("t", "d")).toEqual(["OK"]);
    expect(await jobs()).toHaveLength(2);
  });

  it("is OVERLAP when a run came to life between read and commit", async () => {
    await put({ id: "t" });
    await clock.advance(10_000);
    const half = await read("t");
    // A trigger would bump the generation; a retry in Bull Board does not. So: settle one run, retry it under the claim.
    await commit(half, "a");
    await workAll();
    await clock.advance(10_000);
    const next = await read("t");
    expect(next.items[0]?.entry.over).toHaveLength(1);
    const [job] = await jobs();
    await job?.retry("completed");
    expect(await commit(next, "b")).toEqual(["OVERLAP"]);
  });

  it("is OVERLAP by the policy of what waits, whatever the task's", async () => {
    await put({ id: "t", overlap: "allow" });
    const trigger = (token: string) =>
      store.claims.trigger(name("t"), { key: token, token, node: "x" }, "queue-one");
    await trigger("a");
    expect(await trigger("b")).toEqual({ outcome: "queued" });
    await workAll();
    await clock.advance(10_000);
    await store.runs.reconcile(QUEUE);
    const half = await read("t");
    expect(half.items).toMatchObject([{ decision: { enqueue: { key: "b" } } }]);
    await (await jobs())[0]?.retry("completed");
    expect(await commit(half, "c")).toEqual(["OVERLAP"]);
  });

  it("is OVERLAP when one of the past that no decision reckons with began again", async () => {
    await put({ id: "t" });
    for (const token of ["a", "b", "c", "d", "e", "f"]) {
      await clock.advance(10_000);
      await claim("t", token);
      await workAll();
      await store.runs.reconcile(QUEUE);
      await clock.advance(10_000);
      await store.runs.reconcile(QUEUE);
    }
    const oldest = (await store.runs.list(name("t"), 10)).at(-1)?.id as string;
    const half = await read("t");
    await (await bull.getJob(oldest))?.retry("completed");
    const by = { worker: "w", pid: 1, host: "h", attempt: 2, made: 1 };
    expect(await store.runs.start(name("t"), oldest, by)).toMatchObject({ word: "OK" });
    expect(await commit(half, "g")).toEqual(["OVERLAP"]);
  });

  it("lets overlap: allow run beside a live job", async () => {
    await put({ id: "t", overlap: "allow" });
    for (const token of ["a", "b", "c"]) {
      await clock.advance(10_000);
      expect(await claim("t", token)).toEqual(["OK"]);
    }
    expect(await jobs()).toHaveLength(3);
  });

  it("adds prioritized jobs with their priority", async () => {
    await put({ id: "late", priority: 9 });
    await put({ id: "soon", priority: 1 });
    await clock.advance(10_000);
    await claim("late", "a");
    await claim("soon", "b");
    const found = await jobs();
    expect(found.map((job) => [job.data.occurrence.task, job.opts.priority])).toEqual([
      ["soon", 1],
      ["late", 9],
    ]);
  });

  it("gives each job of a batch its own task's priority and attempts", async () => {
    const shard = shardOf("system/t");
    const ids = Array.from({ length: 100 }, (_, i) => `t${i}`).filter(
      (id) => shardOf(`system/${id}`) === shard,
    );
    const [plain, low, high, again] = ids as [string, string, string, string];
    await put({ id: plain });
    await put({ id: low, priority: 9 });
    await put({ id: high, priority: 1 });
    await put({ id: again, retry: { attempts: 4, backoff: "fixed", delay: "1s" } });
    await clock.advance(10_000);
    expect(await claim(plain, "a")).toEqual(["OK", "OK", "OK", "OK"]);
    const found = await jobs();
    const of = (id: string) => found.find(({ data }) => data.occurrence.task === id)?.opts;
    expect([of(plain)?.priority, of(low)?.priority, of(high)?.priority]).toEqual([undefined, 9, 1]);
    expect([of(plain)?.attempts, of(again)?.attempts]).toEqual([0, 4]);
    expect(await store.runs.list(name(again), 1)).toMatchObject([{ maxAttempts: 4 }]);
  });

  it("finishes a one-off and never fires it again", async () => {
    await put({ id: "t", schedule: { at: START + 5_000 } });
    await clock.advance(5_000);
    expect(await claim("t", "a")).toEqual(["OK"]);
    expect(await stored("t")).toMatchObject({ state: "finished", nominal: undefined, due: undefined });
    await clock.advance(86_400_000);
    expect((await read("t")).items).toEqual([]);
  });

  it("leaves no key behind once every task is deleted", async () => {
    await put({ id: "a", tags: ["x", "y"] });
    await put({ id: "b", overlap: "allow", owner: "acme", priority: 2 });
    await put({ id: "over", schedule: { at: START - 1 } });
    await store.backfills.put({
      ...{ id: "bf", task: name("over"), from: START, to: START, at: START - 1, total: 1 },
      ...{ enqueued: 0, skipped: 0, every: 0, overlap: undefined, by: "me" },
    });
    const { alerts, next } = store.keys.queue(QUEUE);
    const alert = JSON.stringify({ kind: "failed", task: "system/a", at: START });
    await store.link.ask((client) => client.rpush(alerts, alert));
    await store.link.ask((client) => client.zadd(next, START, "a"));
    await clock.advance(10_000);
    await claim("a", "1");
    await clock.advance(10_000);
    await claim("a", "2");
    await store.claims.trigger({ queue: QUEUE, owner: "acme", id: "b" }, { key: "k", token: "m", node: "x" });
    expect(await store.registry.queues()).toEqual([QUEUE]);
    await store.tasks.delete(name("a"));
    await store.tasks.delete({ queue: QUEUE, owner: "acme", id: "b" });
    await store.tasks.delete(name("over"));
    expect(await store.registry.queues()).toEqual([]);
    expect((await carillonKeys()).filter((key) => !key.endsWith("~clock"))).toEqual([]);
    expect(await jobs()).toEqual([]);
  });

  async function carillonKeys(): Promise<string[]> {
    const masters = "nodes" in store.link.client ? store.link.client.nodes("master") : [store.link.client];
    const all = await Promise.all(masters.map((client) => client.keys(`*${store.namespace}*`)));
    return all
      .flat()
      .filter((key) => !key.startsWith(store.keys.queue(QUEUE).bull))
      .sort();
  }

  /** A plain BullMQ worker, none of ours, works all that waits. */
  async function workAll(): Promise<void> {
    const connection = store.connect("patient");
    const worker = new Worker(QUEUE, async () => null, {
      connection,
      prefix: bullPrefix(store.namespace, QUEUE),
    });
    await new Promise((resolve) => worker.once("drained", resolve as () => void));
    await worker.close();
    connection.disconnect();
  }
});
