import { OUTCOMES, type Outcome, parseTask, type TaskInput } from "@carillon/core";
import type { Worked } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import type { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { onEveryEngine } from "../../../test/helpers.js";
import { Bench, ENTERED, QUEUE, START } from "./bench.js";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

onEveryEngine("the end of a run", (connection) => {
  const bench = Bench.use(connection);

  const put = (more: Partial<TaskInput> = {}) =>
    bench.put({ id: "t", schedule: { every: "1h" }, overlap: "allow", ...more });
  const name = () => bench.name("t");
  const client = () => internalsOf(bench.store).link.client as Redis;
  const keys = () => internalsOf(bench.store).keys.queue(QUEUE);
  const open = () => bench.store.runs.open(name());
  const stateOf = async (run: string) => (await bench.store.runs.get(QUEUE, run))?.state;

  /** The run of the next occurrence, which is due. */
  async function claimed(token: string): Promise<string> {
    const before = await open();
    expect(await bench.claim("t", token)).toEqual(["OK"]);
    return (await open()).find((run) => !before.includes(run)) as string;
  }

  const start = async (run: string, by?: Partial<Worked>) => (await bench.begun("t", run, by)).fence;

  const settle = (run: string, fence: number, outcome: Outcome) =>
    bench.settle("t", run, fence, { outcome, error: "no" });

  /** Ends a job as BullMQ does after its last failure. */
  async function failJob(run: string, reason = "no"): Promise<void> {
    await client().lrem(`${keys().bull}wait`, 0, run);
    await client().hset(
      keys().job(run),
      "processedOn",
      String(bench.clock.now + 1),
      "finishedOn",
      String(bench.clock.now),
      "failedReason",
      reason,
      "stacktrace",
      '["Error: no"]',
      "atm",
      1,
    );
    await client().zadd(`${keys().bull}failed`, bench.clock.now, run);
  }

  const retry = async (run: string, options = {}) =>
    (await bench.queue().getJob(run))?.retry("failed", options);

  it("prunes a bounded number of records if fewer are kept than before", async () => {
    await bench.put({ id: "t", overlap: "allow", retention: { successes: 10 } });
    const old = Array.from({ length: 1_200 }, (_, i) => `t@old.${i}`);
    await client().zadd(keys().history("system/t"), ...old.flatMap((id, i) => [START - 2_000 + i, id]));
    const left: number[] = [];
    for (const token of ["a", "b", "c"]) {
      const run = await bench.run("t", token);
      await settle(run, await start(run), "succeeded");
      left.push(await client().zcard(keys().history("system/t")));
    }
    expect(left).toEqual([701, 202, 10]);
  });

  it("prunes successes and failures that are too old or too many", async () => {
    const retention = { successes: 2, failures: 1, successesFor: "2h", failuresFor: "1h" };
    await put({ retention });
    const ids: Record<string, string> = {};
    async function ends(token: string, outcome: "succeeded" | "failed"): Promise<void> {
      const run = await bench.run("t", token);
      ids[run] = token;
      await settle(run, await start(run), outcome);
      await bench.store.runs.saveOutput(QUEUE, run, 1, "printed", false);
      await bench.clock.advance(1);
    }
    async function kept(): Promise<string[]> {
      const all = Object.keys(ids);
      const window = { from: START, to: bench.clock.now };
      const sorts = [
        (await bench.store.runs.list(name(), 100)).map(({ id }) => id),
        (await bench.store.runs.many(QUEUE, all)).map(({ id }) => id),
        (await bench.store.runs.journal(QUEUE, window, 100, 0)).map(({ id }) => id),
        (
          await Promise.all(
            all.map(async (id) => ((await bench.store.runs.output(QUEUE, id)).length > 0 ? [id] : [])),
          )
        ).flat(),
      ].map((some) => some.map((id) => ids[id]).sort());
      for (const some of sorts) expect(some).toEqual(sorts[0]);
      return sorts[0] as string[];
    }
    for (const n of [1, 2, 3]) {
      await ends(`s${n}`, "succeeded");
      await ends(`f${n}`, "failed");
    }
    expect(await kept()).toEqual(["f3", "s2", "s3"]);
    await bench.clock.advance(HOUR);
    await ends("s4", "succeeded");
    expect(await kept()).toEqual(["s3", "s4"]);
    await bench.clock.advance(HOUR);
    await ends("f4", "failed");
    expect(await kept()).toEqual(["f4", "s4"]);
    await bench.store.tasks.delete(name());
    expect(await kept()).toEqual([]);
  });

  it("is not undone if its worker died before it reported to BullMQ", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" } });
    await bench.clock.advance(HOUR);
    await bench.claim("t", "c");
    const [run = ""] = await open();
    expect(await settle(run, await start(run), "succeeded")).toBe("OK");
    await bench.clock.advance(601_000);
    expect(await bench.reconcile()).toEqual([]);
    expect(await stateOf(run)).toBe("final");
    expect((await bench.store.claims.next(QUEUE)).get("r")).toBeGreaterThan(bench.clock.now);
    const again = await bench.begin(name(), run, { worker: "w2", attempt: 2 });
    expect(again).toMatchObject({ word: "FINAL", outcome: "succeeded" });
  });

  it.each([
    ["a worker finds it first", false],
    ["a node finds it first", true],
  ])("as cancelled is followed by a run if it is retried in BullMQ (%s)", async (_who, node) => {
    await put();
    const run = await bench.run("t");
    const fence = await start(run);
    await bench.store.runs.cancel(name(), run, "ann");
    await settle(run, fence, "cancelled");
    await failJob(run);
    await bench.clock.advance(HOUR);
    await retry(run);
    if (node) {
      await bench.clock.advance(DAY);
      expect(await bench.reconcile()).toEqual([[run, "reopened"]]);
      await bench.clock.advance(6_000);
      expect(await bench.reconcile()).toEqual([]);
      expect(await stateOf(run)).toBe("queued");
    }
    await start(run, { attempt: 2, made: 1 });
  });

  it.each([
    ["a worker finds it first", false],
    ["a node finds it first", true],
  ])("as failed is followed by a run if it is retried with its attempts reset (%s)", async (_who, node) => {
    await put();
    const run = await bench.run("t");
    await settle(run, await start(run), "failed");
    await failJob(run);
    await retry(run, { resetAttemptsMade: true });
    if (node) {
      await bench.clock.advance(DAY);
      expect(await bench.reconcile()).toEqual([[run, "reopened"]]);
      expect(await stateOf(run)).toBe("queued");
    }
    // The worker dies between settling the run and reporting to BullMQ: the end is not undone, this time either.
    const fence = await start(run, { worker: "w2" });
    expect((await bench.store.runs.list(name(), 10)).map(({ id, error }) => [id, error])).toEqual([
      [run, undefined],
    ]);
    await settle(run, fence, "succeeded");
    await bench.clock.advance(2 * DAY);
    expect(await bench.reconcile()).toEqual([]);
    const again = await bench.begin(name(), run, { worker: "w3", attempt: 2 });
    expect(again).toMatchObject({ word: "FINAL", outcome: "succeeded" });
    expect(await bench.store.runs.stats(name())).toMatchObject({ failed: "0", succeeded: "1" });
  });

  it.each(["lost", "crashed"])(
    "as %s with its job keeps the crash counted of a worker that had died",
    async (how) => {
      await put();
      const run = await bench.run("t");
      await start(run);
      if (how === "crashed") await failJob(run, "job stalled more than allowable limit");
      else await (await bench.queue().getJob(run))?.remove();
      await bench.clock.advance(HOUR);
      expect(await bench.reconcile()).toEqual([[run, how]]);
      expect(await bench.store.runs.stats(name())).toMatchObject({
        attempts: "1",
        crashes: "1",
        consecutiveCrashes: "1",
        [how]: "1",
      });
    },
  );

  it("that precedes the worker's own report keeps the start that the worker reports", async () => {
    await put();
    const run = await bench.run("t");
    await start(run);
    await failJob(run);
    await bench.clock.advance(HOUR);
    expect(await bench.reconcile()).toEqual([[run, "failed"]]);
    expect(await bench.store.runs.get(QUEUE, run)).toMatchObject({ started: START, attempts: 1 });
  });

  it("keeps what the run saved before, and nothing later", async () => {
    await put({ crash: { delay: "1s", attempts: 9 } });
    const run = await bench.run("t");
    const { cancel, checkpoint, saveOutput, terminating } = bench.store.runs;
    const save = (fence: number, n: number) => checkpoint.call(bench.store.runs, name(), run, fence, { n });
    const ends = (fence: number) => terminating.call(bench.store.runs, name(), run, fence);
    const first = await start(run);
    expect(await save(first, 1)).toBe("OK");
    // The worker counts as dead.
    const successor = { worker: "w2", attempt: 2 };
    expect(await bench.begin(name(), run, successor)).toMatchObject({ word: "WAIT" });
    await bench.clock.advance(1_000);
    const second = await start(run, successor);
    expect(await save(first, 2)).toBe("FENCED");
    await ends(first);
    expect(await bench.store.runs.get(QUEUE, run)).toMatchObject({ state: "running", checkpoint: { n: 1 } });
    await ends(second);
    expect(await save(second, 3)).toBe("OK");
    expect(await bench.store.runs.get(QUEUE, run)).toMatchObject({
      state: "terminating",
      checkpoint: { n: 3 },
    });
    expect(await settle(run, first, "succeeded")).toBe("FENCED");
    expect(await settle(run, second, "failed")).toBe("OK");

    expect(await save(second, 4)).toBe("FINAL");
    await ends(second);
    expect(await cancel.call(bench.store.runs, name(), run, "ann")).toBe("FINAL");
    expect(await bench.store.runs.get(QUEUE, run)).toMatchObject({ state: "final", checkpoint: { n: 3 } });
    const next = await bench.begin(name(), await bench.run("t", "b"));
    expect(next).toMatchObject({ word: "OK", checkpoint: { n: 3 } });

    await bench.store.tasks.delete(name());
    expect(await save(second, 5)).toBe("GONE");
    expect(await cancel.call(bench.store.runs, name(), run, "ann")).toBe("GONE");
    await saveOutput.call(bench.store.runs, QUEUE, run, 1, "late", false);
    expect((await bench.ownKeys()).filter((key) => /~(t|s|r|out):/.test(key))).toEqual([]);
  });

  it("as crashed is followed by a run if it is retried in BullMQ", async () => {
    await put({ crash: { delay: "1s", attempts: 1 } });
    const run = await bench.run("t");
    await start(run);
    const dead = await bench.begin(name(), run, { worker: "w2", attempt: 2 });
    expect(dead).toMatchObject({ word: "CRASHED" });
    await failJob(run);
    await bench.clock.advance(HOUR);
    await retry(run);
    await bench.clock.advance(DAY);
    expect(await bench.reconcile()).toEqual([[run, "reopened"]]);
    await start(run, { worker: "w3", attempt: 3, made: 1 });
  });

  it("that a retry in BullMQ takes back no longer counts its time either", async () => {
    await put();
    const run = await bench.run("t");
    const fence = await start(run);
    await bench.clock.advance(600_000);
    await settle(run, fence, "failed");
    expect(await bench.store.runs.stats(name())).toMatchObject({ failed: "1", failureMs: "600000" });
    await failJob(run);
    await bench.clock.advance(DAY);
    await retry(run);
    const again = await start(run, { attempt: 2, made: 1 });
    expect(await bench.store.runs.stats(name())).toMatchObject({ failed: "0", failureMs: "0" });
    await bench.clock.advance(1_000);
    await settle(run, again, "succeeded");
    const taken = { succeeded: "1", successMs: "1000", failureMs: "0" };
    expect(await bench.store.runs.stats(name())).toMatchObject(taken);
  });

  it("as crashed is not undone if its worker died before it reported to BullMQ", async () => {
    await put({ crash: { delay: "1s", attempts: 1 } });
    const run = await bench.run("t");
    await client().hset(keys().job(run), "atm", 2);
    await start(run, { made: 2 });
    const by = { made: 2 };
    const dead = await bench.begin(name(), run, { ...by, worker: "w2", attempt: 2 });
    expect(dead).toMatchObject({ word: "CRASHED" });
    const told = (await bench.store.alerts.waiting(QUEUE)).map(({ alert: { kind, error } }) => [kind, error]);
    expect(told).toEqual([["crashed", "The workers of this run died."]]);
    await bench.clock.advance(HOUR);
    expect(await bench.reconcile()).toEqual([]);
    const again = await bench.begin(name(), run, { ...by, worker: "w3", attempt: 3 });
    expect(again).toEqual({ word: "FINAL", outcome: "crashed" });
  });

  it("after a cancel is cancelled, not crashed, if its worker died", async () => {
    await put({ crash: { delay: "1s", attempts: 1 } });
    const run = await bench.run("t");
    await start(run);
    await bench.store.runs.cancel(name(), run, "ann");
    const next = await bench.begin(name(), run, { worker: "w2", attempt: 2 });
    expect(next).toEqual({ word: "CANCELLED" });
    // The end is not undone if this worker dies before it can report to BullMQ.
    const after = await bench.begin(name(), run, { worker: "w3", attempt: 3 });
    expect(after).toEqual({ word: "FINAL", outcome: "cancelled" });
    expect(await bench.store.runs.get(QUEUE, run)).toMatchObject({ outcome: "cancelled", crashes: 1 });
    expect(await bench.store.runs.stats(name())).toMatchObject({ cancelled: "1" });
    expect(await bench.store.runs.stats(name())).toMatchObject({ consecutiveFailures: "0" });
  });

  it.each(["failed", "succeeded"] as const)(
    "%s after a cancel that its worker had not received is cancelled, without a retry",
    async (outcome) => {
      await put({ rerun: { delay: "1m" } });
      await bench.clock.advance(HOUR);
      await bench.claim("t", "c");
      const [run = ""] = await open();
      const fence = await start(run);
      await bench.store.runs.cancel(name(), run, "ann");
      const end = { fence, outcome, error: "no", result: 7 };
      expect(await bench.store.runs.settle(name(), run, end)).toBe("CANCELLED");
      // Sends the end again, as after an answer that was lost for longer than the connection resends.
      expect(await bench.store.runs.settle(name(), run, end)).toBe("CANCELLED");
      expect(await bench.store.runs.settle(name(), run, { ...end, fence: fence + 1 })).toBe("FINAL");
      expect(await bench.store.runs.get(QUEUE, run)).toMatchObject({ outcome: "cancelled", error: "no" });
      expect(await bench.store.runs.get(QUEUE, run)).not.toHaveProperty("result");
      expect(await bench.store.runs.stats(name())).toMatchObject({ cancelled: "1", crashes: "0" });
      expect(await bench.store.runs.stats(name())).not.toHaveProperty("successMs");
      expect((await bench.stored("t")).pending).toEqual([]);
    },
  );

  it.each(["failed", "removed"])(
    "is cancelled, without a retry, if its job %s after the cancel and its worker could not report it",
    async (how) => {
      await put({ rerun: { delay: "1m" } });
      await bench.clock.advance(HOUR);
      await bench.claim("t", "c");
      const [run = ""] = await open();
      await start(run);
      await bench.store.runs.cancel(name(), run, "ann");
      if (how === "failed") await failJob(run);
      else await (await bench.queue().getJob(run))?.remove();
      expect(await bench.reconcile()).toEqual([[run, "cancelled"]]);
      expect(await bench.store.runs.get(QUEUE, run)).toMatchObject({ state: "final", outcome: "cancelled" });
      expect(await bench.store.runs.stats(name())).toMatchObject({ cancelled: "1", crashes: "0" });
      expect((await bench.stored("t")).pending).toEqual([]);
    },
  );

  it("is recorded for each of 40 runs of one task at once", async () => {
    await put({ rerun: { delay: "1m" } });
    for (let i = 1; i <= 40; i++) {
      await bench.clock.advance(HOUR);
      await bench.claim("t", `c${i}`);
    }
    const runs = await open();
    expect(runs).toHaveLength(40);
    const fences = await Promise.all(runs.map((run) => start(run)));
    const words = await Promise.all(runs.map((run, i) => settle(run, fences[i] as number, "failed")));
    expect(words).toEqual(runs.map(() => "OK"));
    expect(await bench.store.runs.stats(name())).toMatchObject({ failed: "40", consecutiveFailures: "40" });
  });

  /** Acts after the first step of the decision that follows. */
  function meanwhile(act: () => Promise<unknown>): void {
    const { link } = internalsOf(bench.store);
    const { run: send } = link;
    link.run = async (...sent) => {
      link.run = send;
      const answer = await link.run(...sent);
      await act();
      return answer;
    };
  }

  it("that a node detected does not count if the job is retried in BullMQ meanwhile", async () => {
    await put();
    const run = await bench.run("t");
    await failJob(run);
    await bench.clock.advance(HOUR);
    meanwhile(() => retry(run));
    expect(await bench.reconcile()).toEqual([]);
    expect(await stateOf(run)).toBe("queued");
    await start(run, { made: 1 });
  });

  it("because of dead workers does not count if the run was retried since", async () => {
    await put({ crash: { delay: "1s", attempts: 1 } });
    const run = await bench.run("t");
    await start(run);
    const again = (n: number) => ({ worker: `w${n}`, attempt: n });
    meanwhile(async () => {
      expect(await bench.begin(name(), run, again(3))).toMatchObject({ word: "CRASHED" });
      await failJob(run);
      await retry(run);
      await start(run, { ...again(4), made: 1 });
    });
    await bench.begin(name(), run, again(2));
    expect(await stateOf(run)).toBe("running");
    expect(await bench.store.runs.stats(name())).toMatchObject({ crashed: "0" });
  });

  describe("as failed, while", () => {
    /** Starts runs of the schedule; returns each with its fence. */
    async function started(count: number): Promise<[run: string, fence: number][]> {
      for (let n = 1; n <= count; n++) {
        await bench.clock.advance(HOUR);
        await bench.claim("t", `c${n}`);
      }
      const runs = await open();
      return Promise.all(runs.map(async (run): Promise<[string, number]> => [run, await start(run)]));
    }
    type Started = Awaited<ReturnType<typeof started>>[number];

    it("another run succeeds, is the first of a new series of failures", async () => {
      await put({ pauseAfterFailures: 2 });
      const [first, second, third] = (await started(3)) as [Started, Started, Started];
      await settle(...first, "failed");
      meanwhile(() => settle(...third, "succeeded"));
      expect(await settle(...second, "failed")).toBe("OK");
      expect(await bench.store.runs.stats(name())).toMatchObject({ failed: "2", consecutiveFailures: "1" });
      expect(await bench.stored("t")).toMatchObject({ state: "scheduled" });
    });

    it("another occurrence is triggered, leaves both it and the retry pending", async () => {
      await bench.put({ id: "t", schedule: { every: "1h" }, rerun: { delay: "1m" } });
      const [run] = (await started(1)) as [Started];
      meanwhile(async () =>
        expect(await bench.trigger("t", "m", "queue-one")).toMatchObject({ outcome: "queued" }),
      );
      expect(await settle(...run, "failed")).toBe("OK");
      expect((await bench.stored("t")).pending.map(({ trigger }) => trigger)).toEqual(["manual", "retry"]);
    });

    it("a node decides about pending occurrences, makes it decide again, and both run", async () => {
      await put({ rerun: { delay: "1m" } });
      const [first, second] = (await started(2)) as [Started, Started];
      await settle(...first, "failed");
      await bench.clock.advance(90_000);
      const half = await bench.read("t");
      await settle(...second, "failed");
      expect(await bench.commit(half, "early")).toEqual(["STALE"]);
      expect(await bench.claim("t", "d")).toEqual(["OK"]);
      await bench.clock.advance(300_000);
      expect(await bench.claim("t", "e")).toEqual(["OK"]);
      const retried = await bench.store.runs.many(QUEUE, await open());
      expect(retried.map(({ trigger, nominal }) => [trigger, nominal - START])).toEqual([
        ["retry", HOUR],
        ["retry", 2 * HOUR],
      ]);
    });

    it("its task is deleted, leaves nothing of either", async () => {
      await bench.put({ id: "t", schedule: { every: "1h" }, rerun: { delay: "1m" } });
      const [run] = (await started(1)) as [Started];
      await bench.store.runs.saveOutput(QUEUE, run[0], 1, "printed", false);
      meanwhile(async () => {
        // Acts between two steps of the delete, which then dies.
        await bench.cutOff("clear-runs", () => bench.store.tasks.delete(name()));
        expect(await bench.store.runs.checkpoint(name(), ...run, { n: 1 })).toBe("GONE");
        const again = await bench.begin(name(), run[0], { worker: "w2" });
        expect(again).toEqual({ word: "GONE" });
      });
      expect(await settle(...run, "failed")).toBe("OK");
      expect(
        (await bench.ownKeys()).filter((key) => /~(t|s|r|out|hist|fail|journal|alerts)\b/.test(key)),
      ).toEqual([]);
      await failJob(run[0]);
      await bench.clock.advance(10_000);
      await bench.reconcile();
      expect(await bench.store.registry.forgetIfEmpty(QUEUE)).toBe(true);
      expect(await bench.ownKeys()).toEqual([]);
      expect(await bench.jobs()).toEqual([]);
    });
  });

  it("as failed during a pause, after the next time, holds its retry", async () => {
    await bench.put({ id: "t", schedule: { every: "10m" }, rerun: { delay: "1m" } });
    await bench.clock.advance(600_000);
    await bench.claim("t", "c");
    const [run = ""] = await open();
    const fence = await start(run);
    await bench.store.tasks.pause(name());
    await bench.clock.advance(700_000);
    await settle(run, fence, "failed");
    expect((await bench.stored("t")).pending).toMatchObject([{ trigger: "retry" }]);
    expect(await bench.store.runs.ledger(name())).toEqual([]);
  });

  it("as dropped is not undone, and does not drop a further attempt", async () => {
    await bench.put({ id: "t", overlap: "allow", minGap: "1m" });
    const first = await bench.run("t", "a");
    const end = { fence: await start(first), outcome: undefined, error: "no" };
    expect(await bench.store.runs.settle(name(), first, end)).toBe("OK");
    await bench.clock.advance(1_000);
    await start(first, { attempt: 2, made: 1 });
    expect(await bench.store.runs.get(QUEUE, first)).toMatchObject({ started: START, attempts: 2 });
    await bench.clock.advance(58_999);
    const second = await claimed("b");
    expect(await bench.begin(name(), second)).toEqual({ word: "DROPPED" });
    const error = "started 59999 ms after the run before";
    expect(await bench.store.runs.get(QUEUE, second)).toMatchObject({ outcome: "dropped", error });
    // The worker died before it could report to BullMQ.
    const again = await bench.begin(name(), second, { worker: "w2", attempt: 2 });
    expect(again).toEqual({ word: "FINAL", outcome: "dropped" });
    // Not judged.
    await start(await bench.run("t", "c"));
    await bench.clock.advance(60_000);
    await start(await claimed("d"));
  });

  it("is counted for its queue by outcome", async () => {
    const schedule = { every: "1h" };
    await bench.put({ id: "t", overlap: "allow", minGap: "1m" });
    const outcomes = () => bench.store.runs.outcomes(QUEUE);
    const none = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0]));
    expect(await outcomes()).toEqual(none);
    const run = await bench.run("t", "a");
    const fence = await start(run);
    await settle(run, fence, "failed");
    // Sends the end again, as after a lost answer.
    await settle(run, fence, "failed");
    expect(await outcomes()).toEqual({ ...none, failed: 1 });
    await bench.clock.advance(10_000);
    const dropped = await claimed("b");
    expect(await bench.begin(name(), dropped)).toEqual({ word: "DROPPED" });
    const cancelled = await bench.run("t", "c");
    await bench.store.runs.cancel(name(), cancelled, "me");
    expect(await bench.begin(name(), cancelled)).toEqual({ word: "CANCELLED" });
    expect(await outcomes()).toEqual({ ...none, failed: 1, dropped: 1, cancelled: 1 });
    await failJob(run);
    await retry(run);
    await settle(run, await start(run, { attempt: 2, made: 1 }), "succeeded");
    await bench.put({ id: "other", schedule });
    await bench.store.tasks.delete(name());
    expect(await outcomes()).toEqual({ ...none, failed: 1, dropped: 1, cancelled: 1, succeeded: 1 });
    await bench.store.tasks.delete(bench.name("other"));
    expect(await outcomes()).toEqual(none);
  });

  it("is recorded even if it cannot be counted", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" } });
    await client().set(keys().outcomes, "in the way");
    const run = await bench.run("t");
    expect(await settle(run, await start(run), "succeeded")).toBe("OK");
    expect(await stateOf(run)).toBe("final");
  });

  it("with nothing to do keeps the start of another run in the same millisecond", async () => {
    await put();
    const [looked, worked] = [await bench.run("t", "a"), await bench.run("t", "b")];
    const fences = [await start(looked), await start(worked)] as const;
    await bench.clock.advance(1_000);
    await settle(looked, fences[0], "nothing-to-do");
    expect(await bench.store.runs.stats(name())).not.toHaveProperty("lastSuccess");
    await settle(worked, fences[1], "succeeded");
    expect(await bench.store.runs.stats(name())).toMatchObject({ lastStart: String(START), lastRun: worked });
  });

  it("as failed pauses its task after the given number in a row, with the reason and an alert", async () => {
    await put({ pauseAfterFailures: 2 });
    for (const token of ["a", "b"]) {
      expect(await bench.stored("t")).toMatchObject({ state: "scheduled" });
      await bench.clock.advance(HOUR);
      await bench.claim("t", token);
      const [run = ""] = await open();
      await settle(run, await start(run), "failed");
    }
    const note = "paused after 2 failures in a row";
    const paused = { at: bench.clock.now, by: "carillon", note };
    expect(await bench.stored("t")).toMatchObject({ state: "paused", paused });
    const told = (await bench.store.alerts.waiting(QUEUE)).map(({ alert: { kind, error } }) => [kind, error]);
    expect(told).toEqual([
      ["failed", "no"],
      ["paused", note],
    ]);
    expect([...(await bench.store.claims.next(QUEUE)).keys()].sort()).toEqual(["a", "r"]);
  });

  it("as failed of a manual run causes neither a retry nor a pause", async () => {
    const policies = { rerun: { delay: "1m" }, pauseAfterFailures: 1 };
    await put(policies);
    const run = await bench.run("t");
    await settle(run, await start(run), "failed");
    expect(await bench.stored("t")).toMatchObject({ state: "scheduled", pending: [] });
  });

  it("as failed passes the missed times that it stands for to its retry", async () => {
    await put({ rerun: { delay: "1m" } });
    await bench.clock.advance(3 * HOUR);
    await bench.claim("t", "a");
    const [run = ""] = await open();
    const missed = { from: START + HOUR, to: START + 2 * HOUR };
    expect(await bench.store.runs.get(QUEUE, run)).toMatchObject({ trigger: "catch-up", missed });
    await settle(run, await start(run), "failed");
    await bench.clock.advance(90_000);
    await bench.claim("t", "b");
    expect(await bench.store.runs.many(QUEUE, await open())).toMatchObject([{ trigger: "retry", missed }]);
  });

  it("leaves a list with the same pages: open runs, then others, newest first", async () => {
    await put();
    const runs: string[] = [];
    for (const token of ["a", "b", "c", "d", "e", "f"]) {
      runs.push(await bench.run("t", token));
      await bench.clock.advance(1);
    }
    const [a, b, c, d, e, f] = runs as [string, string, string, string, string, string];
    for (const [run, outcome] of [
      [b, "succeeded"],
      [f, "failed"],
      [a, "succeeded"],
      [d, "succeeded"],
    ] as const) {
      await settle(run, await start(run), outcome);
      await bench.clock.advance(1);
    }
    const page = async (offset: number) =>
      (await bench.store.runs.list(name(), 2, offset)).map(({ id }) => id);
    expect([await page(0), await page(2), await page(4), await page(6)]).toEqual([
      [e, c],
      [d, a],
      [f, b],
      [],
    ]);
  });

  it("as failed of a finished task is followed by a retry", async () => {
    await bench.put({
      id: "t",
      schedule: { at: START + 1_000 },
      overlap: "allow",
      linger: "30s",
      rerun: { delay: "1m" },
    });
    await bench.clock.advance(1_000);
    await bench.claim("t", "a");
    const [run = ""] = await open();
    expect(await bench.stored("t")).toMatchObject({ state: "finished" });
    await settle(run, await start(run), "failed");
    // The task does not linger meanwhile, and no check for that is scheduled.
    await bench.clock.advance(45_000);
    await bench.reconcile();
    expect((await bench.store.claims.next(QUEUE)).get("r")).toBeGreaterThan(bench.clock.now);
    await bench.clock.advance(45_000);
    expect(await bench.claim("t", "b")).toEqual(["OK"]);
    expect(await bench.store.runs.many(QUEUE, await open())).toMatchObject([
      { trigger: "retry", nominal: START + 1_000 },
    ]);
    expect(await bench.stored("t")).toMatchObject({ state: "finished", pending: [] });
  });

  it("as failed with a wait beyond the next time gives way to it, with one ledger entry for several", async () => {
    const rerun = { delay: "2h" };
    await put({ rerun });
    for (const token of ["a", "b"]) {
      await bench.clock.advance(HOUR);
      expect(await bench.claim("t", token)).toEqual(["OK"]);
      const [run = ""] = await open();
      await settle(run, await start(run), "failed");
    }
    expect((await bench.stored("t")).pending).toEqual([]);
    expect(await bench.store.runs.ledger(name())).toMatchObject([
      { reason: "retry-superseded", from: START + HOUR, to: START + 2 * HOUR, decisions: 2 },
    ]);
  });

  it("as failed of a finished task does not pause it", async () => {
    const linger = { pauseAfterFailures: 1, linger: "1m" };
    await bench.put({ id: "t", schedule: { at: START + 1_000 }, ...linger });
    await bench.clock.advance(1_000);
    await bench.claim("t", "c");
    const [run = ""] = await open();
    await settle(run, await start(run), "failed");
    expect(await bench.stored("t")).toMatchObject({ state: "finished" });
    await failJob(run);
    for (let i = 0; i < 3; i++) {
      await bench.clock.advance(DAY);
      await bench.reconcile();
    }
    expect(await bench.stored("t")).toBeUndefined();
  });

  it("does not delete a finished task that is put again just before", async () => {
    await bench.put({ id: "t", schedule: { at: START + 1_000 }, linger: "1m" });
    await bench.clock.advance(1_000);
    await bench.claim("t", "c");
    const [run = ""] = await open();
    await settle(run, await start(run), "succeeded");
    await bench.clock.advance(HOUR);
    const { lingered } = await bench.store.runs.reconcile(QUEUE);
    expect(lingered).toEqual([name()]);
    await bench.put({ id: "t", schedule: { every: "10s" } });
    expect(await bench.store.tasks.delete(name(), "finished")).toBe(false);
    expect(await bench.stored("t")).toMatchObject({ state: "scheduled" });
  });

  it("does not delete a finished task whose run is open, however long", async () => {
    await bench.put({ id: "t", schedule: { at: START + 1_000 }, linger: "1m" });
    await bench.clock.advance(1_000);
    await bench.claim("t", "c");
    await bench.clock.advance(HOUR);
    expect(await bench.stored("t")).toMatchObject({ state: "finished" });
    expect(await bench.store.tasks.delete(name(), "finished")).toBe(false);
    expect(await bench.stored("t")).toBeDefined();
  });

  describe("in a task that is finished without a run", () => {
    const once = (linger: string | undefined, at = START + 1_000) =>
      bench.put({ id: "t", schedule: { at }, ...(linger === undefined ? {} : { linger }) });
    it.each<[string, (linger: string | undefined) => Promise<unknown>]>([
      ["put with its time past", (linger) => once(linger, START - 1)],
      [
        "resumed when its time is past",
        async (linger) => {
          await once(linger);
          await bench.store.tasks.pause(name());
          await bench.clock.advance(1_000);
          await bench.store.tasks.resume(name(), "skip");
        },
      ],
      [
        "planned anew by a calendar that leaves it no time",
        async (linger) => {
          const { calendars } = bench.store;
          await calendars.put("holidays", [], "me");
          const schedule = { every: "1h", end: "2026-01-01T23:30:00Z", except: [{ named: "holidays" }] };
          await bench.put({ id: "t", schedule, ...(linger === undefined ? {} : { linger }) });
          await calendars.put("holidays", ["2026-01-01"], "me");
          await calendars.refresh();
          await calendars.replanStale(QUEUE);
        },
      ],
    ])("%s: the task lingers, and is deleted", async (_what, finish) => {
      for (const [linger, ms] of [["1h", HOUR] as const, [undefined, 30 * DAY] as const]) {
        await finish(linger);
        expect(await bench.stored("t")).toMatchObject({ state: "finished" });
        const over = bench.clock.now + ms;
        expect((await bench.store.claims.next(QUEUE)).get("r")).toBe(over);
        await bench.clock.set(over - 1);
        await bench.reconcile();
        expect(await bench.stored("t")).toBeDefined();
        await bench.clock.set(over);
        await bench.reconcile();
        expect(await bench.stored("t")).toBeUndefined();
        await bench.clock.set(START);
      }
    });
  });

  it("keeps a task that was put and has finished again for its full time", async () => {
    const at = (time: number) =>
      bench.put({ id: "t", schedule: { at: time }, linger: "1h", overlap: "allow" });
    await at(START + 1_000);
    await bench.clock.advance(1_000);
    await bench.claim("t", "c");
    for (const run of await open()) await settle(run, await start(run), "succeeded");
    await bench.clock.advance(HOUR);
    expect((await bench.store.runs.reconcile(QUEUE)).lingered).toEqual([name()]);
    // The node with this answer freezes here.
    await at(bench.clock.now + 1_000);
    await bench.clock.advance(1_000);
    await bench.claim("t", "d");
    for (const run of await open()) await settle(run, await start(run), "succeeded");
    expect(await bench.stored("t")).toMatchObject({ state: "finished" });
    expect(await bench.store.tasks.delete(name(), "finished")).toBe(false);
    await bench.clock.advance(HOUR);
    expect((await bench.store.runs.reconcile(QUEUE)).lingered).toEqual([name()]);
    expect(await bench.store.tasks.delete(name(), "finished")).toBe(true);
  });

  it("as succeeded is undone completely by a retry in BullMQ", async () => {
    await put();
    const run = await bench.run("t");
    const end = { fence: await start(run), outcome: "succeeded", result: 7 } as const;
    expect(await bench.store.runs.settle(name(), run, end)).toBe("OK");
    await client().lrem(`${keys().bull}wait`, 0, run);
    const done = { finishedOn: String(bench.clock.now), returnvalue: "7", atm: 1 };
    await client().hset(keys().job(run), done);
    await client().zadd(`${keys().bull}completed`, bench.clock.now, run);
    await (await bench.queue().getJob(run))?.retry("completed");
    await start(run, { worker: "w2", made: 1 });
    const [listed, ...others] = await bench.store.runs.list(name(), 10);
    expect(listed).toMatchObject({ id: run, state: "running", attempts: 2 });
    for (const field of ["outcome", "finished", "result"]) expect(listed).not.toHaveProperty(field);
    expect(others).toEqual([]);
    expect(await open()).toEqual([run]);
    const window = { from: START, to: bench.clock.now };
    expect(await bench.store.runs.journal(QUEUE, window, 10, 0)).toEqual([]);
  });

  describe("without a record that is kept", () => {
    it("keeps a finished task for its time", async () => {
      const small = await Bench.open(connection(), {
        retention: { successes: 0, completedJobs: { for: 1_000 } },
      });
      try {
        await small.put({ id: "t", schedule: { at: START + 1_000 }, linger: "10d" });
        await small.clock.advance(1_000);
        await small.claim("t", "a");
        const [run = ""] = await small.store.runs.open(small.name("t"));
        const { fence } = await small.begun("t", run);
        await small.clock.advance(1_000);
        await small.settle("t", run, fence);
        expect(await small.store.runs.stats(small.name("t"))).toMatchObject({ successMs: "1000" });
        await (await small.queue().getJob(run))?.remove();
        for (let i = 0; i < 3; i++) {
          await small.clock.advance(DAY);
          await small.reconcile();
        }
        expect(await small.stored("t")).toMatchObject({ state: "finished" });
      } finally {
        await small.close();
      }
    });

    it.each([
      ["succeeded", { successes: 0, completedJobs: { for: 1_000 } }],
      ["failed", { failures: 0, failedJobs: { for: 1_000 } }],
    ] as const)("deletes a task that ran once (%s)", async (outcome, retention) => {
      const small = await Bench.open(connection(), { retention });
      try {
        const parsed = parseTask({ id: "t", type: "noop", queue: QUEUE, schedule: { at: START } });
        const by = { key: "k", token: "x", node: "n" };
        const { run = "" } = (await small.store.claims.enqueueNow(parsed, by, ENTERED)) ?? {};
        await small.work("t", run, { outcome, error: "no" });
        await (await small.queue().getJob(run))?.remove();
        for (let i = 0; i < 3; i++) {
          await small.clock.advance(DAY);
          await small.reconcile();
        }
        expect(await small.stored("t")).toBeUndefined();
        expect(await small.ownKeys()).not.toContainEqual(expect.stringMatching(/~(tasks|runs|t:|s:)/));
      } finally {
        await small.close();
      }
    });
  });

  it("under “allow” keeps an occurrence pending with another policy, while the schedule continues", async () => {
    await bench.put({ id: "t", schedule: { every: "10s" }, overlap: "allow" });
    await bench.clock.advance(10_000);
    expect(await bench.claim("t", "c1")).toEqual(["OK"]);
    expect(await bench.trigger("t", "tr", "queue-one")).toMatchObject({ outcome: "queued" });
    for (let i = 2; i <= 4; i++) {
      await bench.clock.set(START + i * 10_000);
      expect(await bench.claim("t", `c${i}`)).toEqual(["OK"]);
    }
    expect(await open()).toHaveLength(4);
    expect((await bench.stored("t")).pending).toHaveLength(1);
  });
});
