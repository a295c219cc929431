import { CarillonError, type OverlapPolicy } from "@carillon/core";
import { FORMAT_VERSION } from "@carillon/core/internal";
import type { Backfill, DueBackfill } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { SILENT, sharedRedis } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "../../store/test/bench.js";
import { checked } from "../src/options.js";
import { Backfiller } from "../src/upkeep/backfiller.js";

const MINUTE = 60_000;

describe("the backfiller", () => {
  const redis = sharedRedis();
  const bench = Bench.use(() => redis.url);
  let backfiller: Backfiller;
  let logged: object[];
  beforeEach(async () => {
    logged = [];
    const logger = { ...SILENT, error: (details: object) => void logged.push(details) };
    backfiller = new Backfiller(bench.store, checked({ store: bench.store, nodeId: "n1", logger }));
  });

  const put = (id: string, rest: Parameters<Bench["put"]>[0] | object = {}) =>
    bench.put({ id, schedule: { every: "1m" }, ...rest });
  /** A backfill of the first three minutes. */
  const backfill = (id: string, task: string, rest: Partial<Backfill> = {}) =>
    bench.store.backfills.put({
      id,
      task: bench.name(task),
      from: START + MINUTE,
      to: START + 3 * MINUTE,
      at: START,
      total: 3,
      enqueued: 0,
      skipped: 0,
      every: 0,
      overlap: "allow",
      by: "test",
      ...rest,
    });
  const stateOf = (id: string) => bench.store.backfills.get(QUEUE, id);
  const work = () => backfiller.work(QUEUE, () => true);
  const setField = (task: string, field: string, value: string) =>
    internalsOf(bench.store).link.ask((client) =>
      client.hset(internalsOf(bench.store).keys.queue(QUEUE).task(`system/${task}`), field, value),
    );

  it("under cancel-running cancels the open run, and continues when it has ended", async () => {
    await put("t");
    await bench.clock.set(START + 10 * MINUTE);
    const run = await bench.run("t");
    const { fence } = await bench.begun("t", run);
    await backfill("b", "t", { overlap: "cancel-running" });
    await work();
    expect(await stateOf("b")).toMatchObject({ state: "running", at: START, enqueued: 0, skipped: 0 });
    expect(await bench.store.runs.get(QUEUE, run)).toMatchObject({ cancel: { by: "n1" } });
    await bench.settle("t", run, fence, { outcome: "cancelled" });
    await bench.workAll();
    await bench.clock.advance(1_000);
    await work();
    expect(await stateOf("b")).toMatchObject({ at: START + MINUTE, enqueued: 1 });
    expect(logged).toEqual([]);
  });

  it("alternates between long backfills", async () => {
    await put("t");
    await bench.clock.set(START + 10 * MINUTE);
    for (const id of ["a", "b"]) {
      await backfill(id, "t");
      await bench.clock.advance(1);
    }
    for (let turn = 0; turn < 4; turn++) {
      expect(await backfiller.work(QUEUE, () => false)).toBe(false);
      await bench.clock.advance(1);
    }
    expect(await stateOf("a")).toMatchObject({ enqueued: 2 });
    expect(await stateOf("b")).toMatchObject({ enqueued: 2 });
  });

  it("postpones a backfill that fails, and continues with the others", async () => {
    await put("broken");
    await put("t");
    await bench.clock.set(START + 10 * MINUTE);
    await backfill("a", "broken");
    await setField("broken", "policies", JSON.stringify({ unheardOf: 1 }));
    await bench.clock.advance(1);
    await backfill("b", "t");
    await work();
    expect(await stateOf("a")).toMatchObject({ state: "running", at: START });
    expect(await stateOf("b")).toMatchObject({ state: "done", enqueued: 3 });
    expect(logged).toEqual([expect.objectContaining({ backfill: "a", task: "system/broken" })]);
    // Not reported in every turn.
    await work();
    expect(logged).toHaveLength(1);
    await setField("broken", "policies", "{}");
    await bench.clock.advance(10_000);
    await work();
    expect(await stateOf("a")).toMatchObject({ state: "done", enqueued: 3 });
  });

  it("postpones a backfill whose step Redis refuses", async () => {
    await put("t");
    await bench.clock.set(START + 10 * MINUTE);
    await backfill("a", "t");
    const { claims } = bench.store;
    const { commitStep } = claims;
    claims.commitStep = async () => "ERROR for once";
    let turns = 0;
    await backfiller.work(QUEUE, () => ++turns < 10);
    claims.commitStep = commitStep;
    expect(logged).toEqual([
      expect.objectContaining({ backfill: "a", error: expect.stringContaining("for once") }),
    ]);
    await work();
    expect(await stateOf("a")).toMatchObject({ state: "running", at: START });
    await bench.clock.advance(10_000);
    await work();
    expect(await stateOf("a")).toMatchObject({ state: "done", enqueued: 3 });
  });

  it("uses the calendars that its task was planned with, even if another process changed them", async () => {
    const other = await Bench.open(redis.url, { namespace: bench.store.namespace });
    const holidays = (minute: string) =>
      other.store.calendars.put("holidays", [`*-*-* 00:${minute}:00`], "me");
    await holidays("01");
    await bench.store.calendars.refresh();
    await holidays("02");
    await other.store.calendars.refresh();
    await other.put({ id: "t", schedule: { every: "1m", except: [{ named: "holidays" }] } });
    await bench.clock.set(START + 10 * MINUTE);
    await backfill("a", "t");
    await work();
    const nominals = (await bench.jobs()).map(({ data }) => data.occurrence.nominal - START);
    expect(nominals.sort((a, b) => a - b)).toEqual([MINUTE, 3 * MINUTE]);
    await other.close();
  });

  it("leaves the rest to its next turn when this one is over", async () => {
    for (const id of ["t", "u"]) await put(id);
    await bench.clock.set(START + 10 * MINUTE);
    await backfill("a", "t");
    await bench.clock.advance(1);
    await backfill("b", "u");
    expect(await backfiller.work(QUEUE, () => false)).toBe(false);
    expect(await stateOf("a")).toMatchObject({ state: "running", enqueued: 1 });
    expect(await stateOf("b")).toMatchObject({ state: "running", enqueued: 0 });
    expect(await work()).toBe(true);
    for (const id of ["a", "b"]) expect(await stateOf(id)).toMatchObject({ state: "done", enqueued: 3 });
    // Records of backfills are kept for a week.
    await bench.clock.advance(7 * 86_400_000);
    await work();
    for (const id of ["a", "b"]) expect(await stateOf(id)).toBeUndefined();
  });

  it("does not blame one backfill for a failure of Redis", async () => {
    await put("t");
    await bench.clock.set(START + 10 * MINUTE);
    await backfill("a", "t");
    const { claims } = bench.store;
    const { read } = claims;
    claims.read = async () => {
      throw new CarillonError("REDIS_UNAVAILABLE", "Redis cannot be reached.");
    };
    await expect(work()).rejects.toMatchObject({ code: "REDIS_UNAVAILABLE" });
    claims.read = read;
    await work();
    expect(await stateOf("a")).toMatchObject({ state: "done", enqueued: 3 });
  });

  it("replays each run once, even if the node dies after a step, and passes over one whose payload is deleted", async () => {
    await put("t", { overlap: "allow", schedule: { at: START + MINUTE } });
    await bench.clock.set(START + 10 * MINUTE);
    const trigger = async (payload: string) => {
      const by = { key: payload, token: payload, node: "test" };
      const made = await bench.store.claims.trigger(bench.name("t"), by, "allow", { payload });
      return (made as { run: string }).run;
    };
    const [kept, deleted] = [await trigger("kept"), await trigger("deleted")];
    const { link, keys } = internalsOf(bench.store);
    await link.client.del(keys.queue(QUEUE).run(deleted));
    const before = new Set((await bench.jobs()).map(({ id }) => id));
    const run = (n: number, payloadOf?: string) => ({
      key: `${QUEUE}/system/t@${n}`,
      nominal: START + n,
      ...(payloadOf && { payloadOf }),
    });
    await backfill("a", "t", { at: -1, overlap: undefined, runs: [run(1), run(2, deleted), run(3, kept)] });
    const { claims } = bench.store;
    const { commitStep } = claims;
    claims.commitStep = async (...step) => {
      await commitStep.apply(claims, step);
      throw new CarillonError("REDIS_UNAVAILABLE", "the node died.");
    };
    await expect(work()).rejects.toThrow("the node died");
    claims.commitStep = commitStep;
    await work();
    const made = (await bench.jobs()).filter(({ id }) => !before.has(id)).map(({ data }) => data);
    expect(made.map(({ occurrence, payload }) => [occurrence.nominal - START, payload]).sort()).toEqual([
      [1, {}],
      [3, "kept"],
    ]);
    expect(await stateOf("a")).toMatchObject({ state: "done", enqueued: 2, skipped: 1 });
  });

  it("leaves a backfill of a task in a newer format to newer nodes, and drops one of a deleted task", async () => {
    for (const id of ["newer", "deleted", "t"]) await put(id);
    await bench.clock.set(START + 10 * MINUTE);
    for (const id of ["newer", "deleted", "t"]) await backfill(id, id);
    await setField("newer", "v", String(FORMAT_VERSION + 1));
    await bench.store.tasks.delete(bench.name("deleted"));
    await work();
    expect(await stateOf("newer")).toMatchObject({ state: "running", at: START });
    expect(await stateOf("deleted")).toBeUndefined();
    expect(await stateOf("t")).toMatchObject({ state: "done" });
    await setField("newer", "v", String(FORMAT_VERSION));
    await bench.clock.advance(10_000);
    await work();
    expect(await stateOf("newer")).toMatchObject({ state: "done", enqueued: 3 });
  });

  it("does not continue a backfill that has ended, keeps it for a week, and then leaves nothing", async () => {
    const { backfills, claims } = bench.store;
    const { keys } = internalsOf(bench.store);
    const next = async () => (await claims.next(QUEUE)).get("b");
    const heard: string[] = [];
    const ears = bench.connect();
    await ears.subscribe(keys.wake);
    ears.on("message", (_channel: string, text: string) => void heard.push(text));
    await put("t");
    const created = START + 10 * MINUTE;
    await bench.clock.set(created);
    await backfill("b", "t");
    expect(await next()).toBe(created);
    await eventually(() => expect(heard).toContain(`${QUEUE} b ${created}`));

    await bench.clock.advance(1_000);
    // A postponement that arrives late is not done again: another check is due since.
    const [before] = await backfills.due(QUEUE, bench.clock.now, 1);
    for (const ms of [500, 60_000]) await backfills.later(before as DueBackfill, ms);
    expect(await next()).toBe(bench.clock.now + 500);
    const [due] = await backfills.due(QUEUE, bench.clock.now + 500, 1);
    expect(await backfills.end(QUEUE, "b", "cancelled")).toBe(true);
    // Another node has worked on it.
    await backfills.later(due as DueBackfill, 0);
    expect(await backfills.end(QUEUE, "b", "done")).toBe(false);
    await work();
    expect(await stateOf("b")).toMatchObject({ state: "cancelled", created, enqueued: 0 });
    expect(await next()).toBe(bench.clock.now + 7 * 86_400_000);

    await bench.clock.advance(7 * 86_400_000);
    await work();
    expect(await stateOf("b")).toBeUndefined();
    expect(await backfills.end(QUEUE, "b", "cancelled")).toBe(false);
    expect(await next()).toBeUndefined();
    expect((await bench.ownKeys()).filter((key) => /~(bf|backfills)\b/.test(key))).toEqual([]);
  });

  it.each([
    [
      "cancelled",
      () => bench.store.backfills.end(QUEUE, "b", "cancelled"),
      { state: "cancelled", enqueued: 0 },
    ],
    ["taken away", () => bench.store.backfills.delete(QUEUE, "b"), undefined],
  ])("takes no further step once it is %s", async (_what, end, left) => {
    await put("t");
    await bench.clock.set(START + 10 * MINUTE);
    await backfill("b", "t");
    const { claims } = bench.store;
    const { commitStep } = claims;
    // The worst moment: the step is decided, and not committed yet.
    claims.commitStep = async (...args) => {
      await end();
      return commitStep.apply(claims, args);
    };
    await work();
    expect(await bench.jobs()).toEqual([]);
    if (left) expect(await stateOf("b")).toMatchObject(left);
    else
      expect(await bench.ownKeys()).not.toContain(internalsOf(bench.store).keys.queue(QUEUE).backfill("b"));
  });

  it("records consecutive skips as one range", async () => {
    await put("t");
    await bench.clock.set(START + 10 * MINUTE);
    await bench.trigger("t", "m");
    await backfill("b", "t", { overlap: "skip" });
    await work();
    expect(await stateOf("b")).toMatchObject({ state: "done", skipped: 3 });
    expect(await bench.store.runs.ledger(bench.name("t"))).toMatchObject([
      { reason: "overlap", from: START + MINUTE, to: START + 3 * MINUTE, decisions: 3 },
    ]);
  });

  describe("for a task with maxRuns", () => {
    const limited = (maxRuns: number, overlap: OverlapPolicy) =>
      bench.put({ id: "t", schedule: { every: "1m", maxRuns }, overlap });
    const open = () => bench.store.runs.open(bench.name("t"));
    const past = { from: START - 2 * MINUTE, to: START - MINUTE, at: START - 2 * MINUTE - 1, total: 2 };

    it.each(["scheduled", "paused"] as const)(
      "uses the runs up, and leaves the schedule no time: %s",
      async (state) => {
        await limited(2, "allow");
        if (state === "paused") await bench.store.tasks.pause(bench.name("t"));
        await backfill("b", "t", past);
        await work();
        expect(await stateOf("b")).toMatchObject({ state: "done", enqueued: 2 });
        if (state === "paused") expect(await bench.stored("t")).toMatchObject({ state });
        if (state === "paused") await bench.store.tasks.resume(bench.name("t"), "catch-up");
        expect(await bench.stored("t")).toMatchObject({ state: "finished", fired: 2, nominal: undefined });
        await bench.clock.set(START + MINUTE);
        await bench.claim("t", "a");
        expect(await open()).toHaveLength(2);
      },
    );

    it("leaves the pending occurrences their share", async () => {
      await limited(3, "queue-all");
      for (const minutes of [1, 2, 3]) {
        await bench.clock.set(START + minutes * MINUTE);
        await bench.claim("t", `k${minutes}`);
      }
      expect((await bench.stored("t")).pending).toHaveLength(2);
      await backfill("b", "t", past);
      await work();
      expect(await stateOf("b")).toMatchObject({ state: "done", enqueued: 0 });
      expect(await open()).toHaveLength(1);
    });
  });
});
