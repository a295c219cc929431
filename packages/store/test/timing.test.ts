import { parseTask, type TaskInput } from "@carillon/core";
import { jitterOf, shardOf } from "@carillon/core/internal";
import type { StoredTask, Worked } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { UnrecoverableError } from "bullmq";
import { beforeEach, describe, expect, it } from "vitest";
import { onEveryEngine } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "./bench.js";

const SECOND = 1_000;
const MINUTE = 60_000;
const HOUR = 3_600_000;

type Input = Partial<TaskInput> & { id: string };

onEveryEngine("when a task is due", (connection) => {
  const bench = Bench.use(connection);

  const ledger = async (id: string) =>
    (await bench.store.runs.ledger(bench.name(id))).map(({ reason, from, to }) => [reason, from, to]);
  const runs = (id: string) => bench.store.runs.list(bench.name(id), 100);
  const occurrences = async () => (await bench.jobs()).map((job) => job.data.occurrence);
  const nominals = async () => (await occurrences()).map(({ nominal }) => nominal).sort((a, b) => a - b);
  /** A task's entry in the due index, and the time that `next` gives for its shard. */
  async function indexed(id: string): Promise<[due: number | undefined, next: number | undefined]> {
    const shard = shardOf(`system/${id}`);
    const score = await internalsOf(bench.store).link.ask((client) =>
      client.zscore(internalsOf(bench.store).keys.queue(QUEUE).due(shard), `system/${id}`),
    );
    const next = (await bench.store.claims.next(QUEUE)).get(String(shard));
    return [score === null ? undefined : Number(score), next];
  }
  const NOWHERE = [undefined, undefined];
  const pause = (id: string) => bench.store.tasks.pause(bench.name(id));
  const resume = (id: string, missed: "skip" | "catch-up") =>
    bench.store.tasks.resume(bench.name(id), missed);

  describe("jitter", () => {
    /** With this id the jitter of the first times is more than a second, and differs for each. */
    const ID = "spread";
    const schedule = { every: "10m", jitter: "5m" };
    const dueOf = (nominal: number, id = ID) => nominal + jitterOf("5m", id, nominal, nominal + 10 * MINUTE);
    const [FIRST, SECOND_TIME, THIRD] = [10, 20, 30].map((m) => START + m * MINUTE) as [
      number,
      number,
      number,
    ];
    const put = (rest: Partial<TaskInput> = {}) => bench.put({ id: ID, schedule, ...rest });

    it("is as large as these tests need", () => {
      const late = [FIRST, SECOND_TIME, THIRD].map((nominal) => dueOf(nominal) - nominal);
      expect(new Set(late).size).toBe(3);
      for (const ms of late) expect(ms).toBeGreaterThan(SECOND);
      for (const ms of late) expect(ms).toBeLessThan(5 * MINUTE);
    });

    it("moves the due time, not the nominal one: in the task, its index, the job and the run", async () => {
      const due = dueOf(FIRST);
      expect(await put()).toMatchObject({ state: "scheduled", due });
      expect(await bench.stored(ID)).toMatchObject({ nominal: FIRST, due });
      expect(await indexed(ID)).toEqual([due, due]);

      await bench.clock.set(due);
      expect(await bench.claim(ID, "a")).toEqual(["OK"]);
      expect(await occurrences()).toMatchObject([
        { key: `bells/system/${ID}@${FIRST}`, nominal: FIRST, due, enqueued: due, trigger: "schedule" },
      ]);
      expect(await runs(ID)).toMatchObject([{ nominal: FIRST, due, enqueued: due }]);
      const following = dueOf(SECOND_TIME);
      expect(await bench.stored(ID)).toMatchObject({ cursor: FIRST, nominal: SECOND_TIME, due: following });
      expect(await indexed(ID)).toEqual([following, following]);
    });

    it("lets nothing be claimed between the nominal and the due time", async () => {
      await put();
      const due = dueOf(FIRST);
      for (const time of [FIRST, due - 1]) {
        await bench.clock.set(time);
        expect((await bench.read(ID)).items).toEqual([]);
      }
      await bench.clock.set(due);
      const half = await bench.read(ID);
      expect(half.items).toHaveLength(1);
      await bench.clock.set(due - 1);
      expect(await bench.commit(half, "a")).toEqual(["EARLY"]);
      expect(await occurrences()).toEqual([]);
      await bench.clock.set(due);
      expect(await bench.commit(half, "a")).toEqual(["OK"]);
    });

    it("as a share of the gap stays before the next time, whatever the hash", async () => {
      const ids = Array.from({ length: 40 }, (_, i) => `p${i}`);
      await bench.putAll(
        QUEUE,
        ids.map((id) => ({ id, schedule: { every: "10m", jitter: "100%" } })),
      );
      const late = await Promise.all(
        ids.map(async (id) => {
          const { nominal, due } = await bench.stored(id);
          expect(nominal).toBe(FIRST);
          return (due as number) - FIRST;
        }),
      );
      expect(Math.min(...late)).toBeGreaterThanOrEqual(0);
      expect(Math.max(...late)).toBeLessThan(10 * MINUTE);
      // Spread widely.
      expect(new Set(late).size).toBeGreaterThan(35);
      expect(Math.max(...late) - Math.min(...late)).toBeGreaterThan(6 * MINUTE);
    });

    it("is the same from every node, and after delete and put", async () => {
      const { due } = await put();
      await bench.store.tasks.delete(bench.name(ID));
      const other = await Bench.open(connection(), { namespace: bench.store.namespace });
      await bench.clock.advance(MINUTE);
      expect(await other.put({ id: ID, schedule })).toMatchObject({ outcome: "created", due });
      await bench.clock.set(due as number);
      // Both nodes make the same decision.
      const [mine, theirs] = [await bench.read(ID), await other.read(ID)];
      expect(mine.items.map(({ decision }) => decision)).toEqual(
        theirs.items.map(({ decision }) => decision),
      );
      expect(await other.commit(theirs, "b")).toEqual(["OK"]);
      expect(await bench.commit(mine, "a")).toEqual(["STALE"]);
      await other.close();
    });

    it("is kept by an edit that leaves the schedule unchanged, also between the two times", async () => {
      await put();
      const due = dueOf(FIRST);
      await bench.clock.set(FIRST + 1);
      expect(await put({ priority: 3 })).toMatchObject({ outcome: "updated", due });
      expect(await put({ priority: 3 })).toMatchObject({ outcome: "unchanged", due });
      expect(await bench.stored(ID)).toMatchObject({ nominal: FIRST, due });
      expect(await ledger(ID)).toEqual([]);
    });

    it("drops a time at an edit that has passed and is not due yet", async () => {
      await put();
      await bench.clock.set(FIRST + 1);
      expect(await put({ schedule: { every: "10m" } })).toMatchObject({ due: SECOND_TIME });
      expect(await bench.stored(ID)).toMatchObject({ cursor: FIRST, nominal: SECOND_TIME, due: SECOND_TIME });
      expect(await ledger(ID)).toEqual([["superseded", FIRST, FIRST]]);
      // Changed back before its time: nothing is passed over.
      expect(await put()).toMatchObject({ due: dueOf(SECOND_TIME) });
      expect(await ledger(ID)).toHaveLength(1);
    });

    it("leaves no due time if no time is left, by an edit or by a claim", async () => {
      await put();
      await put({ schedule: { at: START - 1 } });
      expect(await bench.stored(ID)).toMatchObject({ state: "finished", nominal: undefined, due: undefined });
      await put({ schedule: { ...schedule, maxRuns: 1 } });
      await bench.clock.set(dueOf(FIRST));
      expect(await bench.claim(ID, "a")).toEqual(["OK"]);
      expect(await bench.stored(ID)).toMatchObject({ state: "finished", nominal: undefined, due: undefined });
    });

    it("that is removed makes the nominal time due", async () => {
      const small = (id: string, n: number) =>
        jitterOf("2ms", id, START + n * 10 * MINUTE, START + (n + 1) * 10 * MINUTE);
      const id = Array.from({ length: 99 }, (_, i) => `s${i}`).find(
        (one) => small(one, 1) > 0 && small(one, 2) === 0,
      );
      await bench.put({ id: id as string, schedule: { every: "10m", jitter: "2ms" } });
      await bench.clock.set(FIRST + 2);
      expect(await bench.claim(id as string, "a")).toEqual(["OK"]);
      expect(await bench.stored(id as string)).toMatchObject({ nominal: SECOND_TIME, due: SECOND_TIME });
    });

    it("does not keep a passed time from being skipped by a resume that skips", async () => {
      await put();
      await pause(ID);
      expect(await indexed(ID)).toEqual(NOWHERE);
      await bench.clock.set(FIRST - 1);
      expect(await resume(ID, "skip")).toBe("OK");
      expect(await bench.stored(ID)).toMatchObject({ nominal: FIRST, due: dueOf(FIRST) });
      expect(await ledger(ID)).toEqual([]);
      await pause(ID);
      await bench.clock.set(FIRST + 1);
      expect(await resume(ID, "skip")).toBe("OK");
      expect(await bench.stored(ID)).toMatchObject({
        cursor: FIRST,
        nominal: SECOND_TIME,
        due: dueOf(SECOND_TIME),
      });
      expect(await ledger(ID)).toEqual([["paused", FIRST, FIRST]]);
      expect(await indexed(ID)).toEqual([dueOf(SECOND_TIME), dueOf(SECOND_TIME)]);
    });

    it("keeps the due time in a resume with catch-up", async () => {
      await put();
      await pause(ID);
      await bench.clock.set(FIRST + 1);
      await resume(ID, "catch-up");
      expect(await indexed(ID)).toEqual([dueOf(FIRST), dueOf(FIRST)]);
      expect((await bench.read(ID)).items).toEqual([]);
      await bench.clock.set(dueOf(FIRST));
      expect(await bench.claim(ID, "a")).toEqual(["OK"]);
    });

    it("orders a backlog by due times", async () => {
      await put({ catchUp: "all", overlap: "allow" });
      await bench.clock.set(dueOf(THIRD) - 1);
      expect([await bench.claim(ID, "a"), await bench.claim(ID, "b")]).toEqual([["OK"], ["OK"]]);
      expect((await bench.read(ID)).items).toEqual([]);
      await bench.clock.set(dueOf(THIRD));
      expect(await bench.claim(ID, "c")).toEqual(["OK"]);
      const found = (await occurrences()).sort((a, b) => a.nominal - b.nominal);
      expect(found.map(({ nominal, due, trigger }) => [nominal, due, trigger])).toEqual([
        [FIRST, dueOf(FIRST), "catch-up"],
        [SECOND_TIME, dueOf(SECOND_TIME), "schedule"],
        [THIRD, dueOf(THIRD), "schedule"],
      ]);
    });
  });

  it("a relative time limit of a manual run counts from the next two times", async () => {
    await bench.put({ id: "t", schedule: { every: "1m" }, timeLimit: "50%", timeLimitGrace: "7s" });
    await bench.clock.advance(59 * SECOND);
    const started = await bench.begun("t", await bench.run("t"));
    expect(started).toMatchObject({ limit: 30 * SECOND, grace: 7 * SECOND });
  });

  it("a task that waits for a run is not checked before that run's end", async () => {
    await bench.put({ id: "t", overlap: "queue-all" });
    for (const token of ["a", "b", "c"]) {
      await bench.clock.advance(10 * SECOND);
      await bench.claim("t", token);
      expect(await indexed("t")).toEqual([bench.clock.now + 10 * SECOND, bench.clock.now + 10 * SECOND]);
    }
    const end = async () => {
      await bench.workAll();
      await bench.store.runs.reconcile(QUEUE);
      await bench.clock.advance(1);
    };
    await end();
    // One begins, and the other waits for its end.
    await bench.claim("t", "d");
    expect((await bench.stored("t")).pending).toHaveLength(1);
    expect((await indexed("t"))[0]).toBe(START + 40 * SECOND);
  });

  it("a task that waits for a run retried from outside is checked each second", async () => {
    await bench.put({ id: "t", overlap: "queue-one" });
    await bench.clock.advance(10 * SECOND);
    await bench.claim("t", "a");
    await bench.workAll();
    await bench.clock.advance(10 * SECOND);
    await bench.store.runs.reconcile(QUEUE);
    await (await bench.jobs())[0]?.retry("completed");
    await bench.claim("t", "b");
    expect((await bench.stored("t")).pending).toHaveLength(1);
    expect((await indexed("t"))[0]).toBe(bench.clock.now + SECOND);
  });

  it("an occurrence does not wait for a run that ends meanwhile", async () => {
    await bench.put({ id: "t", schedule: { every: "1h" }, overlap: "queue-one" });
    await bench.run("t");
    await bench.clock.advance(HOUR);
    const half = await bench.read("t");
    expect(half.items).toMatchObject([{ decision: { pending: [{ trigger: "schedule" }] } }]);
    await bench.workAll();
    await bench.store.runs.reconcile(QUEUE);
    expect(await bench.commit(half, "a")).toEqual(["STALE"]);
    expect(await bench.claim("t", "b")).toEqual(["OK"]);
    expect((await runs("t")).map(({ trigger }) => trigger)).toEqual(["schedule", "manual"]);
  });

  it.each([
    ["", async () => {}, async () => {}],
    [", paused and resumed", () => pause("t"), () => resume("t", "skip")],
    [", given another past time", () => bench.put({ id: "t", schedule: { at: START } }), async () => {}],
  ])("a pending occurrence of a finished task is enqueued after its run%s", async (_what, first, last) => {
    await bench.put({ id: "t", schedule: { at: START + SECOND } });
    await bench.clock.advance(SECOND);
    await bench.claim("t", "a");
    expect(await bench.stored("t")).toMatchObject({ state: "finished" });
    expect(await bench.trigger("t", "m", "queue-one")).toMatchObject({ outcome: "queued" });
    await first();
    await bench.workAll();
    await bench.clock.advance(10 * SECOND);
    await bench.store.runs.reconcile(QUEUE);
    await last();
    expect(await bench.claim("t", "b")).toEqual(["OK"]);
    expect((await runs("t")).map(({ trigger }) => trigger)).toEqual(["manual", "schedule"]);
    expect(await bench.stored("t")).toMatchObject({ state: "finished", pending: [] });
  });

  it("an edit keeps the own time of a pending occurrence", async () => {
    const retried = (rest = {}) =>
      bench.put({ id: "t", schedule: { every: "1h" }, rerun: { delay: "3s", jitter: 0 }, ...rest });
    await retried();
    await bench.clock.advance(HOUR);
    await bench.claim("t", "a");
    await bench.workAll(async () => {
      throw new UnrecoverableError("no");
    });
    await bench.clock.advance(10 * SECOND);
    await bench.store.runs.reconcile(QUEUE);
    expect(await bench.stored("t")).toMatchObject({ pending: [{ trigger: "retry" }] });
    await retried({ priority: 1 });
    // A claim before the time postpones the check until then.
    await bench.claim("t", "b");
    await bench.clock.advance(3 * SECOND);
    await bench.claim("t", "c");
    expect((await runs("t")).map(({ trigger }) => trigger)).toEqual(["retry", "schedule"]);
  });

  it("an edit supersedes a time of the old schedule that passes meanwhile", async () => {
    await bench.put({ id: "t" });
    await bench.clock.advance(9 * SECOND);
    // The first script of the put reads the task; a time passes before the second one writes it.
    bench.before("put", async () => bench.before("put", () => bench.clock.advance(2 * SECOND)));
    expect(await bench.put({ id: "t", schedule: { every: "2s" } })).toMatchObject({
      due: START + 12 * SECOND,
    });
    expect(await ledger("t")).toEqual([["superseded", START + 10 * SECOND, START + 10 * SECOND]]);
  });

  describe("maxRuns", () => {
    const limited = (maxRuns: number, rest: Partial<TaskInput> = {}): Input => ({
      id: "t",
      schedule: { every: "10s", maxRuns },
      overlap: "allow",
      ...rest,
    });
    const fire = async (token: string) => {
      await bench.clock.advance(10 * SECOND);
      return bench.claim("t", token);
    };
    const FINISHED = { state: "finished", nominal: undefined, due: undefined };

    it("finishes the task after that number of occurrences", async () => {
      await bench.put(limited(3));
      expect(await bench.stored("t")).toMatchObject({ fired: 0 });
      for (const [i, token] of ["a", "b", "c"].entries()) {
        expect(await fire(token)).toEqual(["OK"]);
        expect(await bench.stored("t")).toMatchObject({ fired: i + 1, cursor: bench.clock.now });
      }
      expect(await bench.stored("t")).toMatchObject({ ...FINISHED, cursor: START + 30 * SECOND });
      expect(await indexed("t")).toEqual(NOWHERE);
      await bench.clock.advance(HOUR);
      expect((await bench.read("t")).items).toEqual([]);
      expect(await nominals()).toHaveLength(3);
      expect(await bench.put(limited(3))).toMatchObject({ outcome: "unchanged", state: "finished" });
    });

    it("counts enqueued occurrences of the schedule, not skips or manual triggers", async () => {
      await bench.put(limited(2, { overlap: "skip" }));
      await bench.trigger("t", "m1");
      expect(await fire("a")).toEqual(["OK"]); // 10: skipped, because the trigger's run is open
      expect(await bench.stored("t")).toMatchObject({ fired: 0 });
      await bench.workAll();
      expect(await fire("b")).toEqual(["OK"]); // 20: the first
      await bench.trigger("t", "m2", "allow");
      expect(await fire("c")).toEqual(["OK"]); // 30: skipped
      expect(await bench.stored("t")).toMatchObject({ fired: 1, state: "scheduled" });
      await bench.workAll();
      expect(await fire("d")).toEqual(["OK"]); // 40: the second
      expect(await bench.stored("t")).toMatchObject({ ...FINISHED, fired: 2 });
      await bench.workAll();
      // A finished task can still be triggered.
      expect(await bench.trigger("t", "m3")).toMatchObject({ outcome: "enqueued" });
      expect(await bench.stored("t")).toMatchObject({ ...FINISHED, fired: 2 });
      expect((await occurrences()).filter(({ trigger }) => trigger === "schedule")).toHaveLength(2);
    });

    it("allows another after a trigger that supersedes the pending last one", async () => {
      await bench.put(limited(2, { overlap: "cancel-running" }));
      expect(await fire("a")).toEqual(["OK"]);
      expect(await fire("b")).toEqual(["OK"]);
      expect(await bench.stored("t")).toMatchObject({ nominal: undefined, pending: [{}] });
      await bench.trigger("t", "m");
      expect(await bench.stored("t")).toMatchObject({ fired: 1, nominal: START + 30 * SECOND });
      await bench.workAll();
      expect(await fire("c")).toEqual(["OK"]); // the trigger's
      await bench.workAll();
      expect(await fire("d")).toEqual(["OK"]);
      expect(await bench.stored("t")).toMatchObject({ ...FINISHED, fired: 2 });
    });

    it("counts a claim once whose answer was lost", async () => {
      await bench.put(limited(2));
      await bench.clock.advance(10 * SECOND);
      const half = await bench.read("t");
      expect(await bench.commit(half, "a")).toEqual(["OK"]);
      expect(await bench.commit(half, "a")).toEqual(["DONE"]);
      expect(await bench.stored("t")).toMatchObject({ fired: 1, state: "scheduled" });
      await bench.clock.advance(10 * SECOND);
      const last = await bench.read("t");
      expect(await bench.commit(last, "b")).toEqual(["OK"]);
      expect(await bench.commit(last, "b")).toEqual(["DONE"]);
      expect(await bench.commit(last, "c")).toEqual(["STALE"]);
      expect(await bench.stored("t")).toMatchObject({ ...FINISHED, fired: 2 });
      expect(await nominals()).toHaveLength(2);
    });

    it("finishes at once if lowered below the count, and continues from now if raised", async () => {
      await bench.put(limited(5));
      for (const token of ["a", "b", "c"]) await fire(token);
      await bench.clock.advance(5 * SECOND);
      expect(await bench.put(limited(3))).toMatchObject({ outcome: "updated", state: "finished" });
      expect(await bench.stored("t")).toMatchObject({ ...FINISHED, fired: 3 });
      expect(await indexed("t")).toEqual(NOWHERE);
      await bench.clock.advance(HOUR);
      const next = bench.clock.now + 5 * SECOND;
      expect(await bench.put(limited(4))).toMatchObject({ state: "scheduled", due: next });
      // While the task was finished there was nothing to pass over.
      expect(await ledger("t")).toEqual([]);
      await bench.clock.set(next);
      expect(await bench.claim("t", "d")).toEqual(["OK"]);
      expect(await bench.stored("t")).toMatchObject({ ...FINISHED, fired: 4 });
      expect(await bench.put({ ...limited(4), schedule: { every: "10s" } })).toMatchObject({
        state: "scheduled",
      });
      expect(await bench.stored("t")).toMatchObject({ fired: 4 });
    });

    it("gives up an owed time if it is lowered", async () => {
      await bench.put(limited(5));
      await fire("a");
      await bench.clock.advance(25 * SECOND);
      expect(await bench.put(limited(1))).toMatchObject({ state: "finished" });
      expect(await ledger("t")).toEqual([["superseded", START + 20 * SECOND, START + 30 * SECOND]]);
      expect(await bench.stored("t")).toMatchObject({ ...FINISHED, cursor: START + 30 * SECOND });
    });

    it.each(["skip", "catch-up"] as const)("is kept over a pause, resumed %s", async (from) => {
      await bench.put(limited(2));
      await fire("a");
      await pause("t");
      await bench.clock.advance(25 * SECOND);
      expect(await bench.stored("t")).toMatchObject({ state: "paused", fired: 1 });
      expect(await resume("t", from)).toBe("OK");
      await bench.clock.advance(10 * SECOND);
      expect(await bench.claim("t", "b")).toEqual(["OK"]);
      expect(await bench.stored("t")).toMatchObject({ ...FINISHED, fired: 2 });
      expect(await nominals()).toHaveLength(2);
    });

    it.each(["skip", "catch-up"] as const)(
      "lowered in a pause keeps the task paused, and finishes it when resumed %s",
      async (from) => {
        await bench.put(limited(2));
        await fire("a");
        await pause("t");
        expect(await bench.put(limited(1))).toMatchObject({ state: "paused" });
        await bench.clock.advance(HOUR);
        expect(await resume("t", from)).toBe("OK");
        expect(await bench.stored("t")).toMatchObject(FINISHED);
        expect(await indexed("t")).toEqual(NOWHERE);
      },
    );

    it("counts from zero for a task that was deleted and put", async () => {
      await bench.put(limited(1));
      await fire("a");
      await bench.store.tasks.delete(bench.name("t"));
      await bench.put(limited(1));
      expect(await bench.stored("t")).toMatchObject({ state: "scheduled", fired: 0 });
      expect(await fire("b")).toEqual(["OK"]);
    });
  });

  describe("a delay after the finish of each run", () => {
    const schedule = { every: "1m", anchor: "finish" } as const;
    const put = (rest: Partial<TaskInput> = {}) => bench.put({ id: "t", schedule, ...rest });
    const WAITING = { state: "scheduled", nominal: undefined, due: undefined };

    /** The task has fired and waits for the end of its run, whose id is returned. */
    async function fired(rest: Partial<TaskInput> = {}): Promise<string> {
      await put(rest);
      return fireAgain("first");
    }
    async function fireAgain(token: string): Promise<string> {
      const { due } = await bench.stored("t");
      await bench.clock.set(due as number);
      expect(await bench.claim("t", token)).toEqual(["OK"]);
      const { waiting } = await bench.stored("t");
      return waiting?.run as string;
    }
    const start = async (run: string, by?: Partial<Worked>) => (await bench.begun("t", run, by)).fence;
    /** `again`: this attempt failed and another one is left. */
    const settle = (run: string, fence: number, end: "succeeded" | "failed" | "again" = "succeeded") =>
      bench.settle("t", run, fence, { outcome: end === "again" ? undefined : end });
    /** Ends a run as our worker does. */
    const finish = (run: string) => bench.work("t", run);
    const reconcile = async () => (await bench.store.runs.reconcile(QUEUE)).seen;
    async function expectDue(due: number): Promise<void> {
      expect(await bench.stored("t")).toMatchObject({
        state: "scheduled",
        nominal: due,
        due,
        waiting: undefined,
      } satisfies Partial<StoredTask>);
      expect(await indexed("t")).toEqual([due, due]);
    }
    async function expectWaiting(run: string): Promise<void> {
      expect(await bench.stored("t")).toMatchObject({ ...WAITING, waiting: { run, delay: MINUTE } });
      expect(await indexed("t")).toEqual(NOWHERE);
    }

    it("first counts from the put", async () => {
      await bench.clock.advance(7);
      expect(await put()).toMatchObject({ state: "scheduled", due: START + 7 + MINUTE });
      await expectDue(START + 7 + MINUTE);
      await bench.clock.advance(MINUTE - 1);
      expect((await bench.read("t")).items).toEqual([]);
    });

    it("first is due strictly after the put, however long that takes", async () => {
      bench.before("put", () => bench.clock.advance(HOUR));
      expect(await put()).toMatchObject({ due: START + HOUR + MINUTE });
    });

    it("gives no time while the run is open, and the task is checked every second", async () => {
      const run = await fired();
      await expectWaiting(run);
      expect(await bench.store.claims.next(QUEUE)).toEqual(new Map([["r", START + MINUTE + SECOND]]));
      for (let i = 0; i < 5; i++) {
        await bench.clock.advance(SECOND);
        expect(await reconcile()).toEqual([]);
        expect((await bench.store.claims.next(QUEUE)).get("r")).toBe(bench.clock.now + SECOND);
      }
      const fence = await start(run);
      await expectWaiting(run);
      await bench.clock.advance(HOUR);
      expect(await reconcile()).toEqual([]);
      await expectWaiting(run);
      expect(await settle(run, fence)).toBe("OK");
      await expectDue(bench.clock.now + MINUTE);
    });

    it("counts from our worker's settle, every time", async () => {
      let run = await fired();
      for (const [i, took] of [7 * SECOND, 0, HOUR, 1].entries()) {
        const fence = await start(run);
        await bench.clock.advance(took);
        expect(await settle(run, fence, i === 1 ? "failed" : "succeeded")).toBe("OK");
        const due = bench.clock.now + MINUTE;
        await expectDue(due);
        await bench.workAll();
        await bench.clock.set(due - 1);
        expect((await bench.read("t")).items).toEqual([]);
        run = await fireAgain(`k${i}`);
      }
      expect(await runs("t")).toHaveLength(5);
      expect(await ledger("t")).toEqual([]);
      expect((await occurrences()).map(({ trigger }) => trigger)).toEqual(Array(5).fill("schedule"));
    });

    it("announces the new time to nodes", async () => {
      const run = await fired();
      const heard: string[] = [];
      const listener = bench.connect();
      listener.on("message", (_channel: string, text: string) => heard.push(text));
      await listener.subscribe(internalsOf(bench.store).keys.wake);
      await finish(run);
      const due = bench.clock.now + MINUTE;
      await eventually(() => expect(heard).toContain(`${QUEUE} ${shardOf("system/t")} ${due}`));
    });

    it("does not start while another attempt is left", async () => {
      const run = await fired();
      expect(await settle(run, await start(run), "again")).toBe("OK");
      await expectWaiting(run);
      await bench.clock.advance(5 * SECOND);
      await finish(run);
      await expectDue(bench.clock.now + MINUTE);
    });

    it("ignores the settle of an attempt that was taken over", async () => {
      const run = await fired();
      const old = await start(run);
      const next = { worker: "w2", attempt: 2 };
      await bench.begin("t", run, next);
      // The wait after a crash is over.
      await bench.clock.advance(HOUR);
      const fence = await start(run, next);
      expect(await settle(run, old)).toBe("FENCED");
      await expectWaiting(run);
      await bench.clock.advance(SECOND);
      expect(await settle(run, fence)).toBe("OK");
      const due = bench.clock.now + MINUTE;
      await bench.clock.advance(SECOND);
      expect(await settle(run, old)).toBe("FINAL");
      await expectDue(due);
    });

    it("is not moved by a repeated or later settle", async () => {
      const run = await fired();
      const fence = await start(run);
      expect(await settle(run, fence)).toBe("OK");
      const due = bench.clock.now + MINUTE;
      await bench.clock.advance(30 * SECOND);
      expect(await settle(run, fence)).toBe("OK");
      expect(await settle(run, fence, "failed")).toBe("FINAL");
      await expectDue(due);
    });

    it.each([
      ["completed", async () => null],
      [
        "failed",
        async () => {
          throw new UnrecoverableError("no");
        },
      ],
    ])("counts from the reconciler's settle if a plain worker %s it", async (_what, handler) => {
      const run = await fired();
      await bench.workAll(handler);
      await bench.clock.advance(SECOND);
      expect(await reconcile()).toEqual([[run, expect.stringMatching(/succeeded|failed/)]]);
      await expectDue(START + MINUTE + SECOND + MINUTE);
      await fireAgain("b");
    });

    it("counts from when its job was found removed", async () => {
      const run = await fired();
      await (await bench.jobs())[0]?.remove();
      await bench.clock.advance(SECOND);
      expect(await reconcile()).toEqual([[run, "lost"]]);
      await expectDue(START + MINUTE + SECOND + MINUTE);
    });

    it("is not moved by a job that is retried from outside, nor by its second end", async () => {
      const run = await fired();
      await bench.workAll(async () => {
        throw new UnrecoverableError("no");
      });
      await bench.clock.advance(SECOND);
      await reconcile();
      const due = bench.clock.now + MINUTE;
      await (await bench.jobs())[0]?.retry("failed");
      const fence = await start(run, { made: 1 });
      await expectDue(due);
      await bench.clock.advance(SECOND);
      expect(await settle(run, fence)).toBe("OK");
      await expectDue(due);
    });

    it("skips its time while a manual run is open, and is due one delay later", async () => {
      const run = await fired();
      await finish(run);
      await bench.workAll();
      const due = bench.clock.now + MINUTE;
      await bench.trigger("t", "m");
      await expectDue(due);
      await bench.clock.set(due);
      expect(await bench.claim("t", "b")).toEqual(["OK"]);
      expect(await ledger("t")).toEqual([["behind", due, due]]);
      await expectDue(due + MINUTE);
      await bench.workAll();
      await fireAgain("c");
    });

    it("is independent of a manual run in between", async () => {
      const run = await fired();
      expect(await bench.trigger("t", "no")).toMatchObject({ outcome: "skipped" });
      const manual = await bench.run("t", "m", "allow");
      await expectWaiting(run);
      await bench.clock.advance(SECOND);
      await finish(manual);
      await expectWaiting(run);
      await bench.clock.advance(SECOND);
      await finish(run);
      await expectDue(bench.clock.now + MINUTE);
      expect(await bench.stored("t")).toMatchObject({ fired: 1 });
    });

    it.each([
      ["the task's own policy", "cancel-running", undefined],
      ["the trigger's", "queue-one", "cancel-running"],
    ] as const)(
      "continues after a trigger that supersedes it while pending: by %s",
      async (_, overlap, own) => {
        await put({ overlap });
        const manual = await bench.run("t", "m1");
        const fence = await start(manual);
        const due = bench.clock.now + MINUTE;
        await bench.clock.set(due);
        expect(await bench.claim("t", "a")).toEqual(["OK"]);
        expect(await bench.stored("t")).toMatchObject({ ...WAITING, pending: [{ nominal: due }] });
        await bench.clock.advance(SECOND);
        const by = { key: "m2", token: "m2", node: "test" };
        await bench.store.claims.trigger(bench.name("t"), by, own);
        expect(await ledger("t")).toEqual([["superseded", due, due]]);
        const next = bench.clock.now + MINUTE;
        await settle(manual, fence);
        await bench.workAll();
        expect(await bench.claim("t", "b")).toEqual(["OK"]);
        await bench.workAll();
        await expectDue(next);
        await fireAgain("c");
      },
    );

    it("keeps the task waiting after an edit of other fields", async () => {
      const run = await fired();
      expect(await put({ priority: 2 })).toMatchObject({
        outcome: "updated",
        state: "scheduled",
        due: undefined,
      });
      await expectWaiting(run);
      expect(await put({ priority: 2 })).toMatchObject({ outcome: "unchanged", state: "scheduled" });
      await finish(run);
      await expectDue(bench.clock.now + MINUTE);
    });

    it.each<[string, TaskInput["schedule"], number]>([
      ["another kind of schedule", { every: "10s" }, 10 * SECOND],
      ["another delay", { every: "5m", anchor: "finish" }, 5 * MINUTE],
    ])(
      "edited to %s while it waits, it is due from now, and the old run's end is nothing",
      async (_what, other, after) => {
        const run = await fired();
        await bench.clock.advance(20 * SECOND);
        const due = bench.clock.now + after;
        expect(await put({ schedule: other })).toMatchObject({ outcome: "updated", due });
        await expectDue(due);
        await bench.clock.advance(SECOND);
        await finish(run);
        await expectDue(due);
      },
    );

    it("waits for the next run if the schedule is edited to a delay", async () => {
      await bench.put({ id: "t" });
      await bench.clock.advance(10 * SECOND);
      await bench.claim("t", "a");
      const [old] = await runs("t");
      await bench.clock.advance(SECOND);
      await put();
      const due = bench.clock.now + MINUTE;
      await expectDue(due);
      await finish(old?.id as string);
      await expectDue(due);
      await bench.workAll();
      const run = await fireAgain("b");
      await finish(run);
      await expectDue(bench.clock.now + MINUTE);
    });

    describe("of a task that is paused while it waits", () => {
      let run: string;
      beforeEach(async () => {
        run = await fired();
        await bench.clock.advance(SECOND);
        expect(await pause("t")).toBe("OK");
        expect(await bench.stored("t")).toMatchObject({ state: "paused", waiting: { run } });
      });
      const paused = (nominal: number) => ({ state: "paused", nominal, due: nominal, waiting: undefined });

      it("gets its time, stays out of the index, and owes it after a resume with catch-up", async () => {
        await finish(run);
        await bench.workAll();
        const due = bench.clock.now + MINUTE;
        expect(await bench.stored("t")).toMatchObject(paused(due));
        expect(await indexed("t")).toEqual(NOWHERE);
        await bench.clock.advance(HOUR);
        expect((await bench.read("t")).items).toEqual([]);
        expect(await resume("t", "catch-up")).toBe("OK");
        await expectDue(due);
        expect(await bench.claim("t", "b")).toEqual(["OK"]);
        expect(await nominals()).toEqual([START + MINUTE, due]);
        expect(await ledger("t")).toEqual([]);
      });

      it("skips owed times after a resume that skips", async () => {
        await finish(run);
        const due = bench.clock.now + MINUTE;
        await bench.clock.advance(HOUR);
        expect(await resume("t", "skip")).toBe("OK");
        await expectDue(bench.clock.now + MINUTE);
        expect(await ledger("t")).toEqual([["paused", due, due]]);
        expect(await bench.stored("t")).toMatchObject({ cursor: due });
      });

      it.each(["skip", "catch-up"] as const)(
        "keeps waiting if resumed %s while the run is open",
        async (from) => {
          await bench.clock.advance(HOUR);
          expect(await resume("t", from)).toBe("OK");
          await expectWaiting(run);
          expect(await ledger("t")).toEqual([]);
          await finish(run);
          await expectDue(bench.clock.now + MINUTE);
        },
      );

      it("stays paused after an edit of the schedule, and ignores the run's end", async () => {
        expect(await put({ schedule: { every: "1h" } })).toMatchObject({ state: "paused" });
        await finish(run);
        expect(await bench.stored("t")).toMatchObject(paused(START + HOUR));
        expect(await indexed("t")).toEqual(NOWHERE);
      });
    });

    it("leaves nothing if it is deleted while it waits", async () => {
      const run = await fired();
      const fence = await start(run);
      await bench.store.tasks.delete(bench.name("t"));
      expect(await settle(run, fence)).toBe("GONE");
      await bench.clock.advance(SECOND);
      await reconcile();
      expect(await bench.jobs()).toEqual([]);
      expect(await bench.ownKeys()).toEqual([]);
    });

    it("does not reach a task that was deleted and put while it waited", async () => {
      const run = await fired();
      const fence = await start(run);
      await bench.store.tasks.delete(bench.name("t"));
      await bench.clock.advance(SECOND);
      await put();
      const due = bench.clock.now + MINUTE;
      await bench.clock.advance(SECOND);
      expect(await settle(run, fence)).toBe("GONE");
      await expectDue(due);
    });

    it("obeys the start and the end of the schedule", async () => {
      const [from, to] = [START + HOUR, START + HOUR + 90 * SECOND];
      const bounded = { ...schedule, start: new Date(from).toISOString(), end: new Date(to).toISOString() };
      expect(await put({ schedule: bounded })).toMatchObject({ due: from });
      const first = await fireAgain("a");
      await bench.clock.advance(10 * SECOND);
      await finish(first);
      await bench.workAll();
      await expectDue(from + 70 * SECOND);
      const second = await fireAgain("b");
      await finish(second);
      await bench.workAll();
      // The delay after this end is beyond the schedule's end.
      await bench.clock.advance(HOUR);
      for (const token of ["c", "d"]) await bench.claim("t", token);
      expect(await bench.stored("t")).toMatchObject({ state: "finished", due: undefined });
      expect(await indexed("t")).toEqual(NOWHERE);
      expect(await nominals()).toEqual([from, from + 70 * SECOND]);
      expect(await ledger("t")).toEqual([]);
    });

    it("moves on by whole delays from an excluded time", async () => {
      const except = [{ calendar: "*-*-* 00:02..04:*" }];
      const run = await fired({ schedule: { ...schedule, except } });
      await bench.clock.advance(30 * SECOND);
      await finish(run); // at 00:01:30
      await bench.workAll();
      const excluded = START + 150 * SECOND;
      await bench.clock.set(excluded);
      expect(await bench.claim("t", "b")).toEqual(["OK"]);
      expect(await ledger("t")).toEqual([["excluded", excluded, excluded]]);
      await expectDue(START + 330 * SECOND); // 00:05:30
      await fireAgain("c");
      expect(await nominals()).toEqual([START + MINUTE, START + 330 * SECOND]);
    });

    it("without catch-up misses a late time, and is due one delay from now", async () => {
      await put({ catchUp: "skip" });
      const due = START + MINUTE;
      await bench.clock.set(due + MINUTE + 1);
      expect(await bench.claim("t", "a")).toEqual(["OK"]);
      expect(await ledger("t")).toEqual([["missed", due, due]]);
      await expectDue(bench.clock.now + MINUTE);
      await bench.clock.advance(2 * MINUTE);
      expect(await bench.claim("t", "b")).toEqual(["OK"]);
      expect(await nominals()).toEqual([due + 2 * MINUTE + 1]);
    });

    it("gives no time after the last of maxRuns", async () => {
      const run = await fired({ schedule: { ...schedule, maxRuns: 2 } });
      await finish(run);
      await bench.workAll();
      const { due } = await bench.stored("t");
      await bench.clock.set(due as number);
      expect(await bench.claim("t", "b")).toEqual(["OK"]);
      const over = { state: "finished", nominal: undefined, due: undefined, waiting: undefined, fired: 2 };
      expect(await bench.stored("t")).toMatchObject(over);
      const last = (await runs("t")).find(({ state }) => state === "queued");
      await finish(last?.id as string);
      expect(await bench.stored("t")).toMatchObject(over);
      expect(await indexed("t")).toEqual(NOWHERE);
    });

    it("waits for the same run after a claim whose answer was lost", async () => {
      await put();
      await bench.clock.advance(MINUTE);
      const half = await bench.read("t");
      expect(await bench.commit(half, "a")).toEqual(["OK"]);
      const waiting = await bench.stored("t");
      expect(await bench.commit(half, "a")).toEqual(["DONE"]);
      expect(await bench.stored("t")).toEqual(waiting);
      // The same if the run ended before the put was sent again.
      await finish(waiting.waiting?.run as string);
      expect(await bench.commit(half, "a")).toEqual(["DONE"]);
      await expectDue(bench.clock.now + MINUTE);
    });

    /** The run ends between a writer's read of the task and its write, which must not undo the end. */
    describe("whose run ends while the task is", () => {
      it("changed", async () => {
        const run = await fired();
        // The first script of the put reads the task, the second one writes it.
        bench.before("put", async () => bench.before("put", () => finish(run)));
        await put({ priority: 2 });
        expect(await bench.stored("t")).toMatchObject({ definition: { priority: 2 } });
        await expectDue(bench.clock.now + MINUTE);
      });

      it.each(["skip", "catch-up"] as const)("resumed %s", async (from) => {
        const run = await fired();
        await pause("t");
        bench.before("resume", () => finish(run));
        expect(await resume("t", from)).toBe("OK");
        await expectDue(bench.clock.now + MINUTE);
      });

      it("paused", async () => {
        const run = await fired();
        bench.before("pause", () => finish(run));
        expect(await pause("t")).toBe("OK");
        expect(await bench.stored("t")).toMatchObject({ state: "paused", due: bench.clock.now + MINUTE });
        expect(await indexed("t")).toEqual(NOWHERE);
      });
    });
  });

  describe("when a run blocks the next occurrence", () => {
    beforeEach(async () => {
      await bench.put({ id: "t", schedule: { every: "1s" } });
      await bench.clock.advance(SECOND);
      expect(await bench.claim("t", "a")).toEqual(["OK"]);
    });
    const at = (seconds: number) => START + seconds * SECOND;
    const begin = async (run: string) => {
      const { fence } = await bench.begun("t", run);
      return () => bench.settle("t", run, fence);
    };
    const first = async () => (await runs("t"))[0]?.id as string;

    it("that no worker has begun: one occurrence starts late, the others are `behind`", async () => {
      for (const token of ["b", "c", "d"]) {
        await bench.clock.advance(SECOND);
        expect(await bench.claim("t", token)).toEqual(["OK"]);
      }
      expect(await nominals()).toEqual([at(1)]);
      expect(await ledger("t")).toEqual([["behind", at(3), at(4)]]);
      const end = await begin(await first());
      await bench.workAll();
      await end();
      expect(await bench.claim("t", "e")).toEqual(["OK"]);
      expect(await nominals()).toEqual([at(1), at(2)]);
      // Two runs are never open at once.
      expect(await bench.store.runs.open(bench.name("t"))).toHaveLength(1);
    });

    it.each([
      ["late: the next one waits, and a node soon sees its end", 600, [], [at(2)]],
      ["in time: the next one overlaps", 100, [["overlap", at(2), at(2)]], []],
    ])("that a plain worker began %s", async (_, after, skipped, waiting) => {
      const { now } = Date;
      try {
        Date.now = () => at(1) + after;
        await bench.workAll(async () => {
          await bench.clock.advance(SECOND);
          expect(await bench.claim("t", "b")).toEqual(["OK"]);
        });
      } finally {
        Date.now = now;
      }
      expect(await ledger("t")).toEqual(skipped);
      expect((await bench.stored("t")).pending.map(({ nominal }) => nominal)).toEqual(waiting);
      // The pending occurrence is claimed once a node has seen the end.
      await bench.clock.advance(9 * SECOND);
      await bench.reconcile();
      await bench.claim("t", "c");
      expect((await nominals())[1]).toBe(waiting[0] ?? at(11));
    });

    it("that began in time and takes long: it is skipped as `overlap`", async () => {
      await begin(await first());
      await bench.clock.advance(SECOND);
      expect(await bench.claim("t", "b")).toEqual(["OK"]);
      expect(await ledger("t")).toEqual([["overlap", at(2), at(2)]]);
      expect(await bench.stored("t")).toMatchObject({ pending: [] });
    });
  });

  it("reads the first of what is due, or nothing if all is wanted and more is due", async () => {
    const ids: string[] = [];
    for (let i = 0; ids.length < 260; i++) {
      if (shardOf(`system/p${i}`) === shardOf("system/t")) ids.push(`p${i}`);
    }
    const tasks = ids.map((id, n) => {
      const schedule = { at: START + 1 + n };
      return parseTask({ id, type: "noop", queue: QUEUE, schedule, priority: n === 15 ? 3 : 0 });
    });
    await bench.store.tasks.put(QUEUE, tasks);
    await bench.clock.advance(MINUTE);
    const { claims } = bench.store;
    const shard = shardOf("system/t");
    const read = async (limit: number, whole: boolean) => {
      const { entries, more } = await claims.readDue(QUEUE, shard, limit, { whole });
      return [entries.map(({ local }) => ids.indexOf(local.slice("system/".length))), more];
    };
    expect(await read(4, false)).toEqual([[0, 1, 2, 3], true]);
    expect(await read(259, true)).toEqual([[], true]);
    expect(await read(260, true)).toEqual([[...ids.keys()], false]);

    // Their names are read some at a time.
    const named = ids.map((id, n) => ({
      shard,
      local: `system/${id}`,
      at: START + 1 + n,
      priority: n === 15 ? 3 : 0,
    }));
    const by = bench.clock.now;
    const first = await claims.dueNames(QUEUE, [{ shard, by }]);
    expect(first).toEqual({ names: named.slice(0, 250), unread: [{ shard, by, pass: 250 }] });
    expect(await claims.dueNames(QUEUE, first.unread)).toEqual({ names: named.slice(250), unread: [] });
    const some = { shard, after: START + 10, by: START + 20 };
    expect(await claims.dueNames(QUEUE, [some])).toEqual({ names: named.slice(10, 20), unread: [] });
  });

  it("enqueues two jobs for tasks of two owners with one id, due at once in one shard", async () => {
    const shard = shardOf("system/t");
    const owner = Array.from({ length: 200 }, (_, i) => `o${i}`).find((o) => shardOf(`${o}/t`) === shard);
    await bench.put({ id: "t" });
    await bench.put({ id: "t", owner: owner as string });
    await bench.clock.advance(10 * SECOND);
    expect(await bench.claim("t", "a")).toEqual(["OK", "OK"]);
    expect((await occurrences()).map((one) => one.owner).sort()).toEqual([owner, "system"].sort());
  });
});
