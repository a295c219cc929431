import { parseTask } from "@carillon/core";
import { type RetentionOptions, Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { UnrecoverableError } from "bullmq";
import { expect, it } from "vitest";
import { onEveryEngine } from "../../../test/helpers.js";
import { Bench, ENTERED, QUEUE, START } from "./bench.js";

const RETENTION = { successes: 3, failures: 3, completedJobs: { for: 60_000 }, failedJobs: { for: 600_000 } };

onEveryEngine("the reconciler", (connection) => {
  const bench = Bench.use(connection, { retention: RETENTION });

  const reconcile = () => bench.reconcile();
  const runs = () => bench.store.runs.list(bench.name("t"), 100);

  async function fire(id = "t", token = "a"): Promise<string> {
    await bench.clock.advance(10_000);
    expect(await bench.claim(id, token)).toEqual(["OK"]);
    const [run] = await bench.store.runs.list(bench.name(id), 1);
    return run?.id as string;
  }

  it("removes the oldest jobs once a tenth more have ended than stay", async () => {
    const few = await Bench.open(connection(), {
      retention: { completedJobs: { for: "1d", most: 10 } },
    });
    try {
      await few.put({ id: "t", overlap: "allow" });
      for (let i = 0; i < 12; i++) {
        await few.clock.advance(1);
        await few.trigger("t", `k${i}`);
      }
      await few.workAll();
      const foreign = await few.queue().add("not-ours", {});
      await few.workAll();
      await few.clock.advance(10_000);
      const ids = (await few.store.runs.open(few.name("t"))).sort();
      expect(await few.reconcile()).toEqual(ids.map((id) => [id, "succeeded"]));
      // Twelve and a foreign one: three too many, at once.
      expect((await few.store.claims.next(QUEUE)).get("r")).toBeLessThanOrEqual(few.clock.now);
      expect(await few.reconcile()).toEqual(ids.slice(0, 3).map((id) => [id, "removed"]));
      expect((await few.store.claims.next(QUEUE)).get("r")).toBeGreaterThan(few.clock.now);
      expect(await few.jobs()).toHaveLength(10);
      expect(await foreign.getState()).toBe("completed");
      expect(await few.store.runs.list(few.name("t"), 100)).toHaveLength(12);
    } finally {
      await few.close();
    }
  });

  it("settles jobs that a plain worker completed, and removes them after a grace", async () => {
    await bench.put({ id: "t" });
    const run = await fire();
    await bench.workAll();
    // The first check is ten seconds after the claim.
    expect(await reconcile()).toEqual([]);
    await bench.clock.advance(10_000);
    expect(await reconcile()).toEqual([[run, "succeeded"]]);
    expect(await runs()).toEqual([
      {
        id: run,
        task: bench.name("t"),
        type: "noop",
        state: "final",
        outcome: "succeeded",
        key: `bells/system/t@${START + 10_000}`,
        nominal: START + 10_000,
        due: START + 10_000,
        enqueued: START + 10_000,
        trigger: "schedule",
        node: "test",
        started: expect.any(Number),
        finished: START + 20_000,
        attempts: 1,
        lateMs: 0,
        waitMs: expect.any(Number),
      },
    ]);
    // An attempt that never began cannot have crashed.
    expect(await bench.store.runs.stats(bench.name("t"))).not.toHaveProperty("crashes");
    expect(await bench.jobs()).toHaveLength(1);
    await bench.clock.advance(RETENTION.completedJobs.for - 1);
    expect(await reconcile()).toEqual([]);
    await bench.clock.advance(1);
    expect(await reconcile()).toEqual([[run, "removed"]]);
    expect(await bench.jobs()).toEqual([]);
    // The history outlives the job.
    expect(await runs()).toMatchObject([{ id: run, outcome: "succeeded" }]);
    // The run is checked once more when the retention of its record ends.
    await bench.clock.advance(7 * 86_400_000);
    expect(await reconcile()).toEqual([]);
    expect(await runs()).toEqual([]);
    expect((await bench.store.claims.next(QUEUE)).has("r")).toBe(false);
  });

  it("settles all jobs that plain workers completed in the same step, with each task's statistics", async () => {
    const ids = Array.from({ length: 30 }, (_, i) => `t${i}`);
    for (const id of ids) await bench.put({ id });
    await bench.clock.advance(10_000);
    for (const id of ids) await bench.trigger(id, id);
    await bench.workAll();
    await bench.clock.advance(10_000);
    const { link } = internalsOf(bench.store);
    const send = link.run.bind(link);
    const sent: string[] = [];
    link.run = (script, ...rest) => {
      sent.push(script.name);
      return send(script, ...rest);
    };
    const { seen } = await bench.store.runs.reconcile(QUEUE);
    expect(sent).toEqual(["reconcile"]);
    expect(seen.map(([, what]) => what)).toEqual(ids.map(() => "succeeded"));
    for (const id of ids) {
      expect(await bench.store.runs.stats(bench.name(id))).toMatchObject({
        succeeded: "1",
        consecutiveFailures: "0",
        lastOutcome: "succeeded",
        lastSuccess: String(bench.clock.now),
      });
      expect(await bench.store.runs.open(bench.name(id))).toEqual([]);
    }
    const all = { from: 0, to: bench.clock.now };
    expect(await bench.store.runs.journal(QUEUE, all, 100, 0)).toHaveLength(30);
    expect(await bench.store.runs.outcomes(QUEUE)).toMatchObject({ succeeded: 30, failed: 0, lost: 0 });
  });

  it("settles the runs of one task in order, failed or not", async () => {
    await bench.put({ id: "t", overlap: "allow", pauseAfterFailures: 2 });
    for (const token of ["a", "b", "c", "d", "e", "f"]) await fire("t", token);
    let n = 0;
    await bench.workAll(async () => {
      if (n++ % 2 === 0) throw new UnrecoverableError("each second one");
    });
    await bench.clock.advance(60_000);
    await reconcile();
    expect(await bench.stored("t")).toMatchObject({ state: "scheduled" });
    const counted = { succeeded: "3", failed: "3", consecutiveFailures: "0", lastOutcome: "succeeded" };
    expect(await bench.store.runs.stats(bench.name("t"))).toMatchObject(counted);
  });

  it.each([
    [{ sucesses: 1 }, /^retention\.sucesses: .*Did you mean successes\?/],
    [{ successes: -1 }, /^retention\.successes: got -1/],
    [{ failuresFor: "soon" }, /^retention\.failuresFor: "soon" is not a duration/],
    [{ failedJobs: { for: -1 } }, /^retention\.failedJobs\.for: got "-1"/],
  ] as [RetentionOptions, RegExp][])("refuses %j as the retention of all tasks", (retention, message) => {
    expect(() => new Store({ connection: connection(), retention })).toThrow(message);
  });

  it("treats corrupt retention of a task as absent", async () => {
    await bench.put({ id: "t" });
    const run = await fire();
    const keys = internalsOf(bench.store).keys.queue(QUEUE);
    await internalsOf(bench.store).link.ask((client) =>
      client.hset(keys.task("system/t"), "keep", "forever"),
    );
    await bench.workAll();
    await bench.clock.advance(10_000);
    expect(await reconcile()).toEqual([[run, "succeeded"]]);
    await bench.clock.advance(RETENTION.completedJobs.for);
    expect(await reconcile()).toEqual([[run, "removed"]]);
    await bench.clock.advance(7 * 86_400_000);
    await reconcile();
    expect((await bench.ownKeys()).filter((key) => key.includes(":~r:"))).toEqual([]);
  });

  it("does not count an attempt as crashed whose job completed", async () => {
    await bench.put({ id: "t" });
    const run = await fire();
    expect(await bench.begin("t", run)).toMatchObject({ word: "OK" });
    expect(await bench.store.runs.stats(bench.name("t"))).toMatchObject({ crashes: "1" });
    await bench.workAll();
    await bench.clock.advance(10_000);
    expect(await reconcile()).toEqual([[run, "succeeded"]]);
    const after = { succeeded: "1", crashes: "0", consecutiveCrashes: "0" };
    expect(await bench.store.runs.stats(bench.name("t"))).toMatchObject(after);
  });

  it("prunes a bounded number of records in one script", async () => {
    const client = bench.connect();
    const keys = internalsOf(bench.store).keys.queue(QUEUE);
    const ids = ["a", "b", "c"];
    for (const id of ids) {
      await bench.put({ id, retention: { successes: 10 } });
      await bench.trigger(id, id);
      const old = Array.from({ length: 1_200 }, (_, i) => `${id}@old.${i}`);
      await client.zadd(keys.history(`system/${id}`), ...old.flatMap((run, i) => [START - 2_000 + i, run]));
    }
    await bench.workAll();
    await bench.clock.advance(10_000);
    const { link } = internalsOf(bench.store);
    const send = link.run.bind(link);
    const counts = () => Promise.all(ids.map((id) => client.zcard(keys.history(`system/${id}`))));
    const after: number[] = [];
    // One at a time, to see what each reads.
    let turn: Promise<unknown> = Promise.resolve();
    link.run = (script, ...rest) => {
      const answer = turn.then(() => send(script, ...rest));
      turn = answer.then(async () => after.push((await counts()).reduce((sum, count) => sum + count, 0)));
      return turn.then(() => answer);
    };
    expect((await reconcile()).map(([, what]) => what)).toEqual(ids.map(() => "succeeded"));
    expect(await counts()).toEqual([701, 701, 701]);
    expect(after.slice(0, 3)).toEqual([3_101, 2_602, 2_103]);
  });

  it("settles jobs that a plain worker failed, with the reason, and keeps them for longer", async () => {
    await bench.put({ id: "t" });
    const run = await fire();
    await bench.workAll(async () => {
      throw new UnrecoverableError("no paper");
    });
    await bench.clock.advance(10_000);
    expect(await reconcile()).toEqual([[run, "failed"]]);
    expect(await runs()).toMatchObject([{ state: "final", outcome: "failed", error: "no paper" }]);
    await bench.clock.advance(RETENTION.completedJobs.for);
    expect(await reconcile()).toEqual([]);
    await bench.clock.advance(RETENTION.failedJobs.for - RETENTION.completedJobs.for);
    expect(await reconcile()).toEqual([[run, "removed"]]);
  });

  it("settles a job whose plain worker died too often as crashed", async () => {
    await bench.put({ id: "t" });
    const run = await fire();
    await bench.workAll(async () => {
      // The error that BullMQ throws.
      throw new UnrecoverableError("job stalled more than allowable limit");
    });
    await bench.clock.advance(10_000);
    expect(await reconcile()).toEqual([[run, "crashed"]]);
  });

  it("keeps records of successes and failures by their retention, then deletes all of them", async () => {
    const retention = { successesFor: "1h", failuresFor: "3h" };
    await bench.put({ id: "t", schedule: { every: "10s", maxRuns: 2 }, overlap: "allow", retention });
    const good = await fire("t", "a");
    await bench.workAll();
    const bad = await fire("t", "b");
    await bench.workAll(async () => {
      throw new UnrecoverableError("no paper");
    });
    await bench.clock.advance(10_000);
    expect(await reconcile()).toEqual([
      [good, "succeeded"],
      [bad, "failed"],
    ]);
    const ended = bench.clock.now;
    for (const run of [good, bad]) await bench.store.runs.saveOutput(QUEUE, run, 1, "printed", false);
    await bench.clock.advance(RETENTION.failedJobs.for);
    await reconcile();
    const kept = async () => {
      const window = { from: START, to: bench.clock.now };
      const journal = await bench.store.runs.journal(QUEUE, window, 10, 0);
      const outputs = await Promise.all([good, bad].map((run) => bench.store.runs.output(QUEUE, run)));
      return {
        runs: (await runs()).map(({ id }) => id),
        journal: journal.map(({ id }) => id),
        outputs: outputs.flat().length,
      };
    };
    await bench.clock.set(ended + 3_600_000);
    await reconcile();
    expect(await kept()).toMatchObject({ runs: expect.arrayContaining([good, bad]), outputs: 2 });
    await bench.clock.advance(1);
    await reconcile();
    expect(await kept()).toEqual({ runs: [bad], journal: [bad], outputs: 1 });
    await bench.clock.set(ended + 3 * 3_600_000 + 1);
    await reconcile();
    expect((await bench.ownKeys()).filter((key) => /~(r|out|hist|fail|journal)\b/.test(key))).toEqual([]);
  });

  it("keeps a finished task for its time, even if the job of its last run is deleted", async () => {
    await bench.put({ id: "t", schedule: { at: START + 10_000 }, linger: "1h" });
    const run = await fire();
    await bench.workAll();
    await bench.clock.advance(10_000);
    await reconcile();
    await bench.clock.advance(RETENTION.completedJobs.for);
    expect(await reconcile()).toEqual([[run, "removed"]]);
    for (let i = 0; i < 5; i++) {
      await bench.clock.advance(10_000);
      await reconcile();
    }
    expect(await bench.stored("t")).toMatchObject({ state: "finished" });
    await bench.clock.advance(3_600_000);
    await reconcile();
    expect(await bench.stored("t")).toBeUndefined();
  });

  it("settles a job that was removed in BullMQ as lost, and the task continues", async () => {
    await bench.put({ id: "t" });
    const run = await fire();
    await (await bench.jobs())[0]?.remove();
    await bench.clock.advance(10_000);
    expect(await bench.claim("t", "b")).toEqual(["OK"]);
    expect(await reconcile()).toEqual([[run, "lost"]]);
    expect(await runs()).toMatchObject([
      { state: "queued", nominal: START + 20_000 },
      { id: run, state: "final", outcome: "lost", attempts: 0 },
    ]);
  });

  it("settles an old run whose job is in no list of BullMQ as lost, and no other", async () => {
    const { link, keys } = internalsOf(bench.store);
    await bench.put({ id: "t" });
    const run = await fire();
    await link.ask((client) => client.del(`${keys.queue(QUEUE).bull}wait`));
    await bench.put({ id: "listed" });
    await bench.trigger("listed", "b");
    await bench.put({ id: "urgent", priority: 3 });
    await bench.trigger("urgent", "c");
    await bench.clock.advance(20_000);
    expect(await reconcile()).toEqual([]);
    await bench.clock.advance(300_000);
    expect(await reconcile()).toEqual([[run, "lost"]]);
    expect(await runs()).toMatchObject([{ id: run, state: "final", outcome: "lost" }]);
    expect(await bench.jobs()).toHaveLength(2);
  });

  it("checks a waiting job less and less often, at last every five minutes", async () => {
    await bench.put({ id: "t" });
    const claimed = bench.clock.now + 10_000;
    await fire();
    const looks: number[] = [];
    for (let i = 0; i < 14; i++) {
      const next = (await bench.store.claims.next(QUEUE)).get("r") as number;
      looks.push(next - claimed);
      await bench.clock.set(next);
      await reconcile();
    }
    const gaps = looks.map((at, i) => at - (looks[i - 1] ?? 0));
    expect(gaps.slice(0, 4)).toEqual([10_000, 5_000, 7_500, 11_250]);
    expect(gaps).toEqual([...gaps.slice(0, 1), ...gaps.slice(1).sort((a, b) => a - b)]);
    expect(gaps.at(-1)).toBe(300_000);
  });

  it.each<[string, () => Promise<unknown>]>([
    [
      "its task has its next time from its end",
      () => bench.put({ id: "t", schedule: { every: "10s", anchor: "finish" } }).then(() => fire()),
    ],
    [
      "another one waits for it",
      async () => {
        await bench.put({ id: "t", overlap: "queue-one", schedule: { every: "1h" } });
        for (const token of ["a", "b"]) await bench.trigger("t", token);
      },
    ],
    [
      "it is to be cancelled",
      async () => {
        await bench.put({ id: "t", schedule: { every: "1h" } });
        await bench.trigger("t", "a");
        const [run = ""] = await bench.store.runs.open(bench.name("t"));
        await bench.begin("t", run);
        await bench.store.runs.cancel(bench.name("t"), run, "ann");
      },
    ],
  ])("checks every second if %s, however long it takes", async (_why, begin) => {
    await begin();
    for (let look = 0; look < 3; look++) {
      await bench.clock.advance(600_000);
      await reconcile();
      expect((await bench.store.claims.next(QUEUE)).get("r")).toBe(bench.clock.now + 1_000);
    }
  });

  it("leaves the end of a cancelled run to the plain worker that has it", async () => {
    await bench.put({ id: "t" });
    const run = await fire();
    await bench.workAll(async () => {
      await bench.store.runs.cancel(bench.name("t"), run, "ann");
      await reconcile();
    });
    await bench.clock.advance(10_000);
    expect(await reconcile()).toEqual([[run, "succeeded"]]);
  });

  it("is woken by a cancel, and removes at once a job that no worker has", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" } });
    await bench.trigger("t", "a");
    const [run = ""] = await bench.store.runs.open(bench.name("t"));
    const heard: string[] = [];
    const ears = bench.connect();
    await ears.subscribe(internalsOf(bench.store).keys.wake);
    ears.on("message", (_channel: string, text: string) => void heard.push(text));
    expect(await bench.store.runs.cancel(bench.name("t"), run, "ann b")).toBe("OK");
    const cancel = { at: bench.clock.now, by: "ann_b" };
    expect(await bench.store.runs.get(QUEUE, run)).toMatchObject({ cancel });
    expect((await bench.store.claims.next(QUEUE)).get("r")).toBe(bench.clock.now);
    await eventually(() => expect(heard).toContain(`${QUEUE} r ${bench.clock.now}`));
    expect(await reconcile()).toEqual([[run, "cancelled"]]);
    expect(await bench.jobs()).toEqual([]);
  });

  it("opens a final run again that was retried from outside", async () => {
    await bench.put({ id: "t" });
    const run = await fire();
    await bench.workAll(async () => {
      throw new UnrecoverableError("once");
    });
    await bench.clock.advance(10_000);
    await reconcile();
    await (await bench.jobs())[0]?.retry("failed");
    await bench.clock.advance(RETENTION.failedJobs.for);
    expect(await reconcile()).toEqual([[run, "reopened"]]);
    expect(await runs()).toMatchObject([{ id: run, state: "queued" }]);
    // The run blocks overlapping ones again.
    expect(await bench.claim("t", "b")).toEqual(["OK"]);
    expect((await bench.store.runs.ledger(bench.name("t"))).map(({ reason }) => reason)).toContain("behind");
    await bench.workAll();
    await bench.clock.advance(5_000);
    expect(await reconcile()).toEqual([[run, "succeeded"]]);
  });

  it("leaves runs alone that a Carillon worker settled", async () => {
    await bench.put({ id: "t" });
    const run = await fire();
    const { fence } = await bench.begun("t", run);
    const end = { result: { n: 1 } };
    expect(await bench.settle("t", run, fence, end)).toBe("OK");
    expect(await bench.settle("t", run, fence, { ...end, outcome: "failed" })).toBe("FINAL");
    await bench.workAll();
    await bench.clock.advance(10_000);
    expect(await reconcile()).toEqual([]);
    expect(await runs()).toMatchObject([{ id: run, outcome: "succeeded", result: { n: 1 } }]);
    await bench.clock.advance(RETENTION.completedJobs.for);
    expect(await reconcile()).toEqual([[run, "removed"]]);
  });

  it("keeps the newest runs of a task, and removes every job without a record", async () => {
    await bench.put({ id: "t" });
    const all: string[] = [];
    for (let i = 0; i < 5; i++) {
      all.push(await fire("t", `k${i}`));
      await bench.workAll();
      await bench.clock.advance(10_000);
      await reconcile();
      await bench.claim("t", `x${i}`);
      await bench.workAll();
      await bench.clock.advance(10_000);
      await reconcile();
    }
    expect(await runs()).toHaveLength(RETENTION.successes);
    await bench.clock.advance(RETENTION.completedJobs.for);
    await reconcile();
    expect(await bench.jobs()).toEqual([]);
    const records = (await bench.ownKeys()).filter((key) => key.includes(":~r:"));
    expect(records).toHaveLength(RETENTION.successes);
    await bench.store.tasks.delete(bench.name("t"));
    expect(await bench.ownKeys()).toEqual([]);
  });

  it("deletes a task of “enqueue” completely with its run", async () => {
    const { store, clock } = bench;
    const once = (id: string, at: number) =>
      parseTask({ id, type: "noop", queue: QUEUE, schedule: { at }, priority: 5, payload: { a: 1 } });
    const mark = await store.registry.enter(QUEUE);
    const by = { key: "k", token: "tok", node: "test" };
    const result = await store.claims.enqueueNow(once("now", START), by, ENTERED);
    await store.registry.leave(QUEUE, mark);
    expect(result).toMatchObject({ enqueued: START });
    const { generation } = await bench.stored("now");
    expect((await store.tasks.list({}, 10)).tasks).toHaveLength(1);
    expect(await store.tasks.audit(QUEUE)).toBe(0);
    const [job] = await bench.jobs();
    expect(job?.data.occurrence).toMatchObject({
      key: "k",
      trigger: "manual",
      generation: Number(generation),
    });
    await store.tasks.put(QUEUE, [once("later", START + 10_000)], { once: true });
    await clock.advance(10_000);
    expect(await bench.claim("later", "b")).toEqual(["OK"]);
    await bench.workAll();
    await clock.advance(10_000);
    expect((await reconcile()).map(([, what]) => what)).toEqual(["succeeded", "succeeded"]);
    await clock.advance(RETENTION.completedJobs.for);
    expect((await reconcile()).map(([, what]) => what)).toEqual(["removed", "removed"]);
    expect(await store.registry.queues()).toEqual([]);
    expect(await bench.ownKeys()).toEqual([]);
    expect(await bench.jobs()).toEqual([]);
  });

  it("“enqueue” never takes the name of an existing task", async () => {
    await bench.put({ id: "t" });
    const before = await bench.stored("t");
    const once = parseTask({ id: "t", type: "noop", queue: QUEUE, schedule: { at: START + 60_000 } });
    const taken = { code: "CONFLICT", field: "id", remedy: expect.any(String) };
    await expect(bench.store.tasks.put(QUEUE, [once], { once: true })).rejects.toMatchObject(taken);
    const by = { key: "k", token: "tok", node: "test" };
    await expect(bench.store.claims.enqueueNow(once, by, ENTERED)).rejects.toMatchObject(taken);
    expect(await bench.stored("t")).toEqual(before);
    expect(await bench.jobs()).toEqual([]);
  });

  it("reports when there is more to check", async () => {
    await bench.put({ id: "t", overlap: "allow", catchUp: "all", schedule: { every: "1s" } });
    await bench.clock.advance(150_000);
    for (let i = 0; i < 150; i++) await bench.claim("t", `k${i}`);
    await bench.workAll();
    await bench.clock.advance(10_000);
    const first = await bench.store.runs.reconcile(QUEUE);
    const second = await bench.store.runs.reconcile(QUEUE);
    expect([first.seen.length, first.more, second.seen.length, second.more]).toEqual([100, true, 50, false]);
  });

  it("clears the runs of very many deleted tasks in batches, between other due work", async () => {
    const keys = internalsOf(bench.store).keys.queue(QUEUE);
    await bench.put({ id: "t" });
    const run = await fire();
    await bench.workAll();
    await bench.clock.advance(10_000);
    await internalsOf(bench.store).link.ask((client) =>
      Promise.all(
        Array.from({ length: 300 }, (_, i) => [
          client.zadd(keys.runs, 1, `gone:${i % 30}.hist`),
          client.zadd(keys.gone(`gone:${i % 30}.hist`), 1, `old@${i}`),
          client.hset(keys.run(`old@${i}`), { state: "final", of: "system/old 1 n" }),
        ]).flat(),
      ),
    );
    const records = async () => (await bench.ownKeys()).filter((key) => key.includes(":~r:old@")).length;
    const steps: [left: number, more: boolean, seen: string[]][] = [];
    for (let more = true; more; ) {
      const step = await bench.store.runs.reconcile(QUEUE);
      more = step.more;
      steps.push([await records(), more, step.seen.map(([id]) => id)]);
      expect((await bench.store.claims.next(QUEUE)).get("r")).toBeLessThanOrEqual(
        more ? bench.clock.now : Number.POSITIVE_INFINITY,
      );
    }
    expect(steps).toEqual([
      [200, true, []],
      [100, true, []],
      [0, true, []],
      [0, false, [run]],
    ]);
    expect((await bench.ownKeys()).filter((key) => key.includes(":~gone:"))).toEqual([]);
  });

  it("alternates between a deleted task with very many runs and other due work", async () => {
    const keys = internalsOf(bench.store).keys.queue(QUEUE);
    await bench.put({ id: "t" });
    const run = await fire();
    await bench.workAll();
    await bench.clock.advance(10_000);
    const left = Array.from({ length: 500 }, (_, i) => `old@${i}`);
    await internalsOf(bench.store).link.ask((client) =>
      Promise.all([
        client.zadd(keys.runs, 1, "gone:a.hist"),
        client.zadd(keys.gone("gone:a.hist"), ...left.flatMap((id) => [1, id])),
      ]),
    );
    expect(await bench.store.runs.reconcile(QUEUE)).toMatchObject({
      seen: [[run, "succeeded"]],
      more: true,
      cleared: false,
    });
  });

  it("settles a run cancelled before its start as cancelled, even if the node dies with the message", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" }, rerun: { delay: "1m" } });
    await bench.clock.advance(3_600_000);
    expect(await bench.claim("t", "a")).toEqual(["OK"]);
    const [run] = await bench.store.runs.open(bench.name("t"));
    await bench.store.runs.cancel(bench.name("t"), run as string, "me");
    const { link } = internalsOf(bench.store);
    const { run: send } = link;
    link.run = async (script, ...rest) => {
      await send.call(link, script, ...rest);
      throw new Error("dead");
    };
    await expect(bench.store.runs.reconcile(QUEUE)).rejects.toThrow("dead");
    link.run = send;
    expect(await bench.jobs()).toEqual([]);
    await bench.clock.advance(5_000);
    expect(await reconcile()).toEqual([[run, "cancelled"]]);
    // The task does not retry it either.
    expect((await bench.stored("t")).pending).toEqual([]);
  });

  it("cuts the text of a failure before it is sent", async () => {
    await bench.put({ id: "t" });
    await fire();
    await bench.workAll(async () => {
      throw new UnrecoverableError("€".repeat(500_000));
    });
    await bench.clock.advance(10_000);
    const { link } = internalsOf(bench.store);
    const send = link.run.bind(link);
    let longest = 0;
    link.run = async (...sent) => {
      const answer = await send(...sent);
      longest = Math.max(longest, JSON.stringify(answer).length);
      return answer;
    };
    await reconcile();
    expect(longest).toBeLessThan(30_000);
    const [{ error } = {}] = await runs();
    expect(error).toBe("€".repeat(16 * 1024));
  });

  it("reads very long texts a few at a time", async () => {
    await bench.put({ id: "t", overlap: "allow" });
    for (const token of ["a", "b", "c", "d", "e"]) await fire("t", token);
    await bench.workAll(async () => {
      throw new UnrecoverableError("x".repeat(600_000));
    });
    await bench.clock.advance(60_000);
    const steps: [number, boolean][] = [];
    for (let more = true; more; ) {
      const step = await bench.store.runs.reconcile(QUEUE);
      more = step.more;
      steps.push([step.seen.length, more]);
    }
    expect(steps).toEqual([
      [2, true],
      [2, true],
      [1, false],
    ]);
  });
});
