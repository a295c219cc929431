import { defineTask, type TaskInput } from "@carillon/sdk";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/each-kit.js";

const QUEUE = "bells";
const START = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;

const ring = defineTask("ring", { queue: QUEUE, payload: z.looseObject({}), handler: () => {} });

describe("a resume with a plan", () => {
  const { kit, ops } = eachKit({ types: [ring], start: START });

  const put = (id: string, more: Partial<TaskInput> = {}) =>
    kit.client.put({ id, type: "ring", queue: QUEUE, schedule: { every: "10m" }, overlap: "allow", ...more });
  const nominals = async (id: string) =>
    (await kit.client.runs.list(id, { limit: 1_000 }))
      .map(({ nominal }) => (nominal - START) / MINUTE)
      .sort((a, b) => a - b);
  const exactly = (count: number) => ({ count, exact: true });
  const every10 = (from: number, to: number) =>
    Array.from({ length: (to - from) / 10 + 1 }, (_, i) => from + 10 * i);

  /** Creates tasks of each policy, paused from minute 5 to 65. */
  async function incident() {
    await put("one");
    await put("all", { schedule: { cron: "*/10 * * * *" }, catchUp: "all" });
    await put("some", { catchUp: "all", catchUpLimits: { max: 2 } });
    await put("window", { catchUp: "all", catchUpLimits: { window: "30m" } });
    await put("skip", { catchUp: "skip" });
    await put("single", { schedule: { at: START + 20 * MINUTE }, catchUp: "skip" });
    await put("drifting", { schedule: { every: "10m", anchor: "finish" } });
    await put("limited", { schedule: { every: "10m", maxRuns: 3 } });
    await put("daily", { schedule: { every: "1d" } });
    await put("retired");
    await kit.advance("5m");
    await kit.client.pause("retired", { note: "retired" });
    await ops.tasks.pauseMany({ queue: QUEUE, note: "INC-43" });
    await kit.advance("1h");
    return { queue: QUEUE, note: "INC-43" };
  }

  it("counts owed occurrences by task and policy, and the runs of each choice, which match", async () => {
    const filter = await incident();
    const plan = await ops.tasks.resumePlan(filter);
    expect(plan).toMatchObject({
      tasks: 9,
      owed: { tasks: 8, ...exactly(6 + 6 + 6 + 6 + 6 + 1 + 1 + 3) },
      policies: { all: { tasks: 3, count: 18 }, one: { tasks: 3, count: 10 }, skip: { tasks: 2, count: 7 } },
      starts: {
        skip: exactly(0),
        latest: exactly(8),
        // one, drifting, limited: one each; all: 6; some: 2; window: 3.
        "catch-up": exactly(3 + 6 + 2 + 3),
        all: exactly(35),
      },
      unpaused: { tasks: 0, ...exactly(0) },
      frozen: { tasks: 0 },
      held: 0,
    });
    expect(plan.most[0]).toMatchObject({
      id: "all",
      owed: exactly(6),
      from: START + 10 * MINUTE,
      to: START + 60 * MINUTE,
    });
    expect((await ops.tasks.resumePlan({ queue: QUEUE })).tasks).toBe(10);
    expect((await kit.client.get("all")).state).toBe("paused");
    await ops.tasks.resumeMany({ ...filter, missed: "catch-up" });
    await kit.advance(0);
    const { runs } = await kit.client.runs.journal({ limit: 1_000 });
    const open = runs.filter(({ task }) => task.id !== "all");
    expect([open.length, await nominals("all")]).toEqual([3 + 2 + 3, every10(10, 60)]);
  });

  it("with `all` runs each owed occurrence once, at a pace, and the schedules continue", async () => {
    const filter = await incident();
    const call = { missed: "all", perMinute: 5 } as const;
    expect(await ops.tasks.resumeMany({ ...filter, ...call, dryRun: true })).toMatchObject({ count: 9 });
    const { batch, count } = await ops.tasks.resumeMany({ ...filter, ...call });
    expect(count).toBe(9);
    expect((await ops.backfills.list({ batch })).backfills).toHaveLength(6);
    // The backlog of 35 takes seven minutes; the next regular occurrences are due at minute 70.
    await kit.advance("4m");
    const { runs } = await kit.client.runs.journal({ limit: 1_000 });
    const minutes = runs.map(({ enqueued }) => Math.floor((enqueued - START) / MINUTE));
    const counts = [65, 66, 67, 68, 69].map((minute) => minutes.filter((one) => one === minute).length);
    expect(Math.max(...counts)).toBeLessThanOrEqual(8);
    await kit.advance("6m");
    for (const id of ["one", "all", "some", "window", "skip"])
      expect(await nominals(id)).toEqual(every10(10, 70));
    // Its schedule continued before the last owed occurrence, and used up `maxRuns`.
    expect(await nominals("limited")).toEqual([10, 20, 70]);
    expect(await nominals("single")).toEqual([20]);
    expect((await nominals("drifting")).length).toBeLessThanOrEqual(2);
    expect(await nominals("daily")).toEqual([]);
    expect(await kit.client.get("retired")).toMatchObject({ state: "paused" });
    expect((await kit.client.runs.skips("one"))[0]).toMatchObject({
      reason: "paused",
      from: START + 10 * MINUTE,
      to: START + 60 * MINUTE,
    });
    const [change] = (await ops.changes.list()).changes;
    expect(change).toMatchObject({
      kind: "resume",
      count: 9,
      details: { missed: "all", perMinute: 5, batch },
    });
  });

  it("with `latest` runs the last owed occurrence of each task", async () => {
    const filter = await incident();
    await ops.tasks.resumeMany({ ...filter, missed: "latest" });
    await kit.advance("10s");
    for (const id of ["one", "all", "some", "window", "skip"]) expect(await nominals(id)).toEqual([60]);
    expect([await nominals("single"), await nominals("drifting")]).toEqual([[20], [10]]);
  });

  it("lists occurrences that freezes skipped or hold, and overdue tasks that are not paused", async () => {
    await put("t", { schedule: { cron: "*/10 * * * *" } });
    const { id } = await ops.freezes.put({ all: true });
    await kit.advance("25m");
    expect(await ops.tasks.resumePlan({ queue: QUEUE })).toMatchObject({
      tasks: 0,
      owed: { tasks: 0, count: 0 },
      held: 1,
      frozen: { tasks: 1, ...exactly(2), from: START + 10 * MINUTE, to: START + 20 * MINUTE },
    });
    await ops.freezes.delete({ id });
    await kit.client.put({ id: "late", type: "ring", queue: "asleep", schedule: { every: "10m" } });
    // No worker handles this queue.
    const [name, { time }] = [{ queue: "asleep", owner: "system", id: "late" }, kit.store.freezes];
    kit.store.freezes.time = async () => (await time.call(kit.store.freezes)) + 30 * MINUTE;
    expect(await ops.tasks.resumePlan({ tasks: [name] })).toMatchObject({
      tasks: 0,
      unpaused: { tasks: 1, ...exactly(3) },
      held: 0,
      frozen: { tasks: 0 },
    });
  });

  it("counts only those of them that were not run since, and names the scopes of the freezes", async () => {
    for (const id of ["a", "b"]) await put(id, { tags: ["db"], schedule: { every: "10m" } });
    await put("c", { schedule: { cron: "*/10 * * * *" } });
    const until = START + 25 * MINUTE;
    await ops.freezes.put({ tag: "db", until });
    const { id } = await ops.freezes.put({ tasks: ["c"], queue: QUEUE });
    await kit.advance("15m");
    await ops.freezes.delete({ id });
    await kit.advance("30m");
    const plan = () => ops.tasks.resumePlan({ queue: QUEUE }).then(({ frozen }) => frozen);
    expect(await plan()).toEqual({
      ...{ tasks: 3, count: 5, exact: true, from: START + 10 * MINUTE, to: START + 20 * MINUTE },
      scopes: [{ tag: "db" }, { queue: QUEUE, tasks: [{ queue: QUEUE, owner: "system", id: "c" }] }],
    });
    const range = { from: START, to: START + 15 * MINUTE, only: "frozen", perMinute: 600 } as const;
    await ops.backfills.startMany({ queue: QUEUE, ...range });
    expect(await plan()).toMatchObject({
      tasks: 2,
      count: 2,
      from: until - 5 * MINUTE,
      scopes: [{ tag: "db" }],
    });
    await ops.backfills.startMany({ tag: "db", ...range, to: until });
    await kit.advance("1m");
    expect(await plan()).toEqual({ tasks: 0, count: 0, exact: true, scopes: [] });
  });

  it("marks counts that are lower bounds", async () => {
    for (let n = 0; n < 4; n++) await put(`t${n}`, { schedule: { cron: "* * * * * *" }, enabled: true });
    await put("fixed", { schedule: { every: "1s" } });
    await ops.tasks.pauseMany({ queue: QUEUE });
    await kit.advance("20h");
    const plan = await ops.tasks.resumePlan({ queue: QUEUE });
    expect(plan.owed.exact).toBe(false);
    expect(plan.owed.count).toBeGreaterThan(250_000);
    expect(plan.owed.count).toBeLessThan(5 * 72_000);
    expect(plan.most.find(({ id }) => id === "fixed")).toMatchObject({ owed: exactly(72_000) });
  });

  it.each<[object, string]>([
    [{ missed: "all" }, "perMinute"],
    [{ missed: "all", perMinute: -1 }, "perMinute"],
    [{ missed: "skip", perMinute: 1 }, "perMinute"],
    [{ missed: "later" }, "missed"],
  ])("is refused with %j", async (options, field) => {
    await put("t");
    await kit.client.pause("t");
    const call = ops.tasks.resumeMany({ queue: QUEUE, ...(options as object) });
    await expect(call).rejects.toMatchObject({ code: "INVALID_OPTION", field });
    await expect(ops.tasks.resumeMany()).rejects.toMatchObject({ code: "INVALID_OPTION" });
    expect((await kit.client.get("t")).state).toBe("paused");
  });
});
