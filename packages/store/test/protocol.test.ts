import { occurrenceKey, shardOf } from "@carillon/core/internal";
import type { Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import type { VirtualClock } from "@carillon/testing";
import type { Queue } from "bullmq";
import { beforeEach, expect, it } from "vitest";
import { attempt, onEveryEngine } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "./bench.js";

onEveryEngine("the claim protocol", (connection) => {
  const bench = Bench.use(connection);
  let store: Store;
  let clock: VirtualClock;
  let bull: Queue;

  beforeEach(async () => {
    ({ store, clock } = bench);
    bull = bench.queue();
  });

  const name = (id: string) => bench.name(id);

  it("derives the same occurrence key in the script as `occurrenceKey`", async () => {
    for (const id of ["0", "a.b", "-_-", "A".repeat(128)]) {
      await bench.put({ id });
      await clock.advance(10_000);
      await bench.claim(id, "tok");
      const { definition } = await bench.stored(id);
      const [job] = (await bench.jobs()).filter(({ data }) => data.occurrence.task === id);
      expect(job?.data.occurrence.key).toBe(occurrenceKey(definition, job?.data.occurrence.nominal));
      await store.tasks.delete(name(id));
    }
  });

  it("turns a due occurrence into one job with the public contract", async () => {
    await bench.put({ id: "t", payload: { a: [1, "ü"] }, subject: "s", group: "g" });
    await clock.set(START + 10_000);
    expect(await bench.claim("t", "tok1")).toEqual(["OK"]);

    const [job, ...others] = await bench.jobs();
    expect(others).toEqual([]);
    const task = await bench.stored("t");
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

  it("puts missed times and odd texts into the job unchanged", async () => {
    const text = '"},"occurrence":{"key":"x\\ \u{1F514}';
    await bench.put({ id: "t", payload: { [text]: text }, subject: text, submitter: text, group: text });
    await clock.set(START + 30_000);
    expect(await bench.claim("t", "tok1")).toEqual(["OK"]);
    const [job] = await bench.jobs();
    expect(job?.data).toMatchObject({
      payload: { [text]: text },
      occurrence: {
        key: `bells/system/t@${START + 30_000}`,
        trigger: "catch-up",
        missed: { from: START + 10_000, to: START + 20_000 },
        subject: text,
        submitter: text,
        group: text,
      },
    });
  });

  it("answers DONE to the same token and STALE to another one", async () => {
    await bench.put({ id: "t" });
    await clock.advance(10_000);
    const half = await bench.read("t");
    const other = await bench.read("t");
    expect(await bench.commit(half, "a")).toEqual(["OK"]);
    expect(await bench.commit(half, "a")).toEqual(["DONE"]);
    expect(await bench.commit(other, "b")).toEqual(["STALE"]);
    expect(await bench.jobs()).toHaveLength(1);
  });

  it.each([
    ["the run is over and forgotten", (run: string) => internalsOf(store).keys.queue(QUEUE).run(run)],
    ["the job is gone", (run: string) => internalsOf(store).keys.queue(QUEUE).job(run)],
  ])("answers DONE to the same token even if %s", async (_what, keyOf) => {
    await bench.put({ id: "t" });
    await clock.advance(10_000);
    const half = await bench.read("t");
    await bench.commit(half, "a");
    const [run] = await store.runs.open(name("t"));
    await internalsOf(store).link.ask((client) => client.del(keyOf(run as string)));
    expect(await bench.commit(half, "a")).toEqual(["DONE"]);
  });

  it.each([
    ["a changed definition", () => bench.put({ id: "t", priority: 3 }).then(() => {})],
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
          .then(() => bench.put({ id: "t" }))
          .then(() => {}),
    ],
  ])("is STALE after %s", async (_what, change) => {
    await bench.put({ id: "t", overlap: "allow" });
    await clock.advance(10_000);
    const half = await bench.read("t");
    const before = (await bench.jobs()).length;
    const generation = BigInt((await bench.stored("t")).generation);
    await clock.advance(1);
    await change();
    const after = (await bench.jobs()).length;
    expect(BigInt((await bench.stored("t")).generation)).toBeGreaterThan(generation);
    expect(await bench.commit(half, "a")).toEqual(["STALE"]);
    expect((await bench.jobs()).length).toBe(after);
    expect(after - before).toBeLessThanOrEqual(1);
  });

  it("answers STALE to a retry once the next time of the schedule is due", async () => {
    await bench.put({ id: "t", rerun: { delay: "3s", jitter: 0 } });
    await clock.set(START + 10_000);
    await bench.claim("t", "a");
    const [run] = await store.runs.list(name("t"), 1);
    const by = attempt();
    const started = await store.runs.start(name("t"), run?.id as string, by);
    const fence = started.word === "OK" ? started.fence : 0;
    await store.runs.settle(name("t"), run?.id as string, { fence, outcome: "failed" });
    const [job] = await bull.getJobs(["wait"]);
    await job?.remove();

    await clock.set(START + 13_000);
    const half = await bench.read("t");
    expect(half.items).toMatchObject([{ decision: { enqueue: { trigger: "retry" } } }]);
    await clock.set(START + 12_999);
    expect(await bench.commit(half, "early")).toEqual(["EARLY"]);
    await clock.set(START + 20_000);
    expect(await bench.commit(half, "b")).toEqual(["STALE"]);
    expect(await bench.claim("t", "c")).toEqual(["OK"]);
    const runs = await store.runs.list(name("t"), 10);
    expect(runs.map(({ trigger, nominal }) => [trigger, nominal - START])).toEqual([
      ["schedule", 20_000],
      ["schedule", 10_000],
    ]);
    expect(await store.runs.ledger(name("t"))).toMatchObject([{ reason: "retry-superseded" }]);
    expect((await bench.stored("t")).pending).toEqual([]);
  });

  it("answers EARLY when Redis time went back, and claims when it is due again", async () => {
    await bench.put({ id: "t" });
    await clock.advance(10_000);
    const half = await bench.read("t");
    await clock.advance(-1);
    expect(await bench.commit(half, "a")).toEqual(["EARLY"]);
    expect(await bench.jobs()).toEqual([]);
    await clock.advance(1);
    expect(await bench.claim("t", "b")).toEqual(["OK"]);
  });

  it("skips while a job is live, records why, and enqueues the next one when it is over", async () => {
    await bench.put({ id: "t" });
    await clock.advance(10_000);
    await bench.claim("t", "a");
    await clock.advance(10_000);
    const half = await bench.read("t");
    expect(await bench.commit(half, "b")).toEqual(["OK"]);
    expect(await bench.commit(half, "b")).toEqual(["DONE"]);
    await clock.advance(10_000);
    await bench.claim("t", "c");
    expect(await bench.jobs()).toHaveLength(1);
    expect(await store.runs.ledger(name("t"))).toEqual([
      {
        reason: "behind",
        from: START + 20_000,
        to: START + 30_000,
        decisions: 2,
        at: START + 30_000,
        by: "test",
        run: expect.stringMatching(/^t@/),
      },
    ]);

    await bench.workAll();
    await clock.advance(10_000);
    expect(await bench.claim("t", "d")).toEqual(["OK"]);
    expect(await bench.jobs()).toHaveLength(2);
  });

  it("answers OVERLAP when a run started between read and commit", async () => {
    await bench.put({ id: "t" });
    await clock.advance(10_000);
    const half = await bench.read("t");
    // A trigger would increase the generation; a retry in Bull Board does not. So the test settles one run, and retries
    // it during the claim.
    await bench.commit(half, "a");
    await bench.workAll();
    await clock.advance(10_000);
    const next = await bench.read("t");
    expect(next.items[0]?.entry.over).toHaveLength(1);
    const [job] = await bench.jobs();
    await job?.retry("completed");
    expect(await bench.commit(next, "b")).toEqual(["OVERLAP"]);
  });

  it("answers OVERLAP by the pending occurrence's policy, whatever the task's", async () => {
    await bench.put({ id: "t", overlap: "allow" });
    const trigger = (token: string) =>
      store.claims.trigger(name("t"), { key: token, token, node: "x" }, "queue-one");
    await trigger("a");
    expect(await trigger("b")).toMatchObject({ outcome: "queued" });
    await bench.workAll();
    await clock.advance(10_000);
    await store.runs.reconcile(QUEUE);
    const half = await bench.read("t");
    expect(half.items).toMatchObject([{ decision: { enqueue: { key: "b" } } }]);
    await (await bench.jobs())[0]?.retry("completed");
    expect(await bench.commit(half, "c")).toEqual(["OVERLAP"]);
  });

  it("answers OVERLAP when an ended run that the decision did not see started again", async () => {
    await bench.put({ id: "t" });
    for (const token of ["a", "b", "c", "d", "e", "f"]) {
      await clock.advance(10_000);
      await bench.claim("t", token);
      await bench.workAll();
      await store.runs.reconcile(QUEUE);
      await clock.advance(10_000);
      await store.runs.reconcile(QUEUE);
    }
    const oldest = (await store.runs.list(name("t"), 10)).at(-1)?.id as string;
    const half = await bench.read("t");
    await (await bull.getJob(oldest))?.retry("completed");
    const by = attempt({ attempt: 2, made: 1 });
    expect(await store.runs.start(name("t"), oldest, by)).toMatchObject({ word: "OK" });
    expect(await bench.commit(half, "g")).toEqual(["OVERLAP"]);
  });

  it.each([
    ["completed", 0],
    ["failed", 0],
    ["completed", 5],
    ["failed", 50],
  ] as const)(
    "answers OVERLAP when the job of a run that had %s was retried outside among %i others, and finds it when it reads the task again",
    async (end, others) => {
      await bench.put({ id: "t", retry: { attempts: 1 } });
      for (const token of ["a", "b", "c"]) {
        await clock.advance(10_000);
        await bench.claim("t", token);
        await bench.workAll(async () => {
          if (end === "failed") throw new Error("no");
        });
        await store.runs.reconcile(QUEUE);
        await clock.advance(10_000);
        await store.runs.reconcile(QUEUE);
      }
      const [, older] = await store.runs.list(name("t"), 2);
      await (await bull.getJob(older?.id as string))?.retry(end);
      await bull.addBulk(Array.from({ length: others }, (_, n) => ({ name: "other", data: n })));
      expect(await bench.commit(await bench.read("t"), "d")).toEqual(["OVERLAP"]);
      const again = await bench.read("t", "system", true);
      expect(again.items[0]?.entry.running).toMatchObject({ run: older?.id, open: false });
      expect(await bench.commit(again, "e")).toEqual(["OK"]);
      expect((await store.runs.list(name("t"), 9)).length).toBe(3);
    },
  );

  it("enqueues with overlap: allow while a job is live", async () => {
    await bench.put({ id: "t", overlap: "allow" });
    for (const token of ["a", "b", "c"]) {
      await clock.advance(10_000);
      expect(await bench.claim("t", token)).toEqual(["OK"]);
    }
    expect(await bench.jobs()).toHaveLength(3);
  });

  it("adds prioritized jobs with their priority", async () => {
    await bench.put({ id: "late", priority: 9 });
    await bench.put({ id: "soon", priority: 1 });
    await clock.advance(10_000);
    await bench.claim("late", "a");
    await bench.claim("soon", "b");
    const found = await bench.jobs();
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
    await bench.put({ id: plain });
    await bench.put({ id: low, priority: 9 });
    await bench.put({ id: high, priority: 1 });
    await bench.put({ id: again, retry: { attempts: 4, backoff: "fixed", delay: "1s" } });
    await clock.advance(10_000);
    expect(await bench.claim(plain, "a")).toEqual(["OK", "OK", "OK", "OK"]);
    const found = await bench.jobs();
    const of = (id: string) => found.find(({ data }) => data.occurrence.task === id)?.opts;
    expect([of(plain)?.priority, of(low)?.priority, of(high)?.priority]).toEqual([undefined, 9, 1]);
    expect([of(plain)?.attempts, of(again)?.attempts]).toEqual([0, 4]);
    expect(await store.runs.list(name(again), 1)).toMatchObject([{ maxAttempts: 4 }]);
  });

  it("finishes a single time and never fires it again", async () => {
    await bench.put({ id: "t", schedule: { at: START + 5_000 } });
    await clock.advance(5_000);
    expect(await bench.claim("t", "a")).toEqual(["OK"]);
    expect(await bench.stored("t")).toMatchObject({ state: "finished", nominal: undefined, due: undefined });
    await clock.advance(86_400_000);
    expect((await bench.read("t")).items).toEqual([]);
  });

  it("leaves no key behind once every task is deleted, but those that expire", async () => {
    await bench.put({ id: "a", tags: ["x", "y"] });
    await bench.put({ id: "b", overlap: "allow", owner: "acme", priority: 2 });
    await bench.put({ id: "over", schedule: { at: START - 1 } });
    await store.backfills.put({
      id: "bf",
      task: name("over"),
      from: START,
      to: START,
      at: START - 1,
      total: 1,
      every: 0,
      overlap: undefined,
      by: "me",
    });
    const { alerts, next } = internalsOf(store).keys.queue(QUEUE);
    const alert = JSON.stringify({ kind: "failed", task: "system/a", at: START });
    await internalsOf(store).link.ask((client) => client.rpush(alerts, alert));
    await internalsOf(store).link.ask((client) => client.zadd(next, START, "a"));
    await clock.advance(10_000);
    await bench.claim("a", "1");
    await clock.advance(10_000);
    await bench.claim("a", "2");
    await store.claims.trigger({ queue: QUEUE, owner: "acme", id: "b" }, { key: "k", token: "m", node: "x" });
    expect(await store.registry.queues()).toEqual([QUEUE]);
    await store.tasks.delete(name("a"));
    await store.tasks.delete({ queue: QUEUE, owner: "acme", id: "b" });
    await store.tasks.delete(name("over"));
    expect(await store.registry.queues()).toEqual([]);
    const { keys } = internalsOf(store);
    const { asked, marks, deleted, deletedOf, revisions } = keys.queue(QUEUE);
    const left = (await carillonKeys()).filter((key) => !key.endsWith("~clock"));
    const definitions = ["acme/b", "system/a", "system/over"].map(revisions);
    const owners = ["acme", "system"].map(deletedOf);
    expect(left).toEqual([keys.pastQueues, asked("k"), marks, deleted, ...owners, ...definitions].sort());
    for (const key of left) expect(await internalsOf(store).link.client.pttl(key)).toBeGreaterThan(0);
    expect(await bench.jobs()).toEqual([]);
  });

  async function carillonKeys(): Promise<string[]> {
    const { client } = internalsOf(store).link;
    const masters = "nodes" in client ? client.nodes("master") : [client];
    const all = await Promise.all(masters.map((master) => master.keys(`*${store.namespace}*`)));
    return all
      .flat()
      .filter((key) => !key.startsWith(internalsOf(store).keys.queue(QUEUE).bull))
      .sort();
  }
});
