import { Client, defineTask, isCarillonError } from "@carillon/sdk";
import { withSeams } from "@carillon/store/internal";
import { eventually, virtualStore } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/each-kit.js";
import { gate } from "../../../../test/helpers.js";
import { type InputTo, operatorOf } from "../operator.js";

const START = Date.parse("2026-01-01T00:00:00Z");
const HOUR = 3_600_000;
const ring = defineTask("ring", {
  queue: "jobs",
  payload: z.looseObject({ minutes: z.number().optional() }),
  handler: async ({ minutes = 0 }, { signal }) => {
    if (minutes > 0) await kit.sleep(`${minutes}m`, { signal });
  },
});

const { kit, ops, redis } = eachKit({ types: [ring], start: START });

type Given = InputTo<"sets.plan">;
const task = (id: string, more: object = {}) => ({
  id,
  type: "ring",
  queue: "jobs",
  schedule: { every: "1h" as const },
  ...more,
});
const input = (ids: readonly (string | ReturnType<typeof task>)[], more: Partial<Given> = {}): Given => ({
  set: "billing",
  tasks: ids.map((one) => (typeof one === "string" ? task(one) : one)),
  ...more,
});
const sets = () => ops.sets;
const many = (count: number) => Array.from({ length: count }, (_, i) => `t${i}`);
/** Refusals of a plan. */
const refused = async (given: Given) => (await sets().plan(given)).refused.map(({ code }) => code);
const stale = expect.objectContaining({ code: "STALE_PLAN" });

describe("a plan", () => {
  it("names what an apply does, and is empty after it", async () => {
    const first = await sets().plan(input(["a", "b"]));
    expect(first.counts).toMatchObject({ create: 2, update: 0, unchanged: 0 });
    expect(await kit.client.count()).toBe(0);
    await sets().apply({ ...input(["a", "b"]), plan: first.id });
    const again = await sets().plan(input(["a", "b"]));
    expect([again.counts.unchanged, again.items]).toEqual([2, []]);
    // Another notation is no change.
    const same = input([task("a", { schedule: { every: HOUR }, payload: {}, owner: "system" }), "b"]);
    expect((await sets().plan(same)).items).toEqual([]);
    expect((await kit.client.list({ set: "billing" })).tasks.map(({ id }) => id)).toEqual(["a", "b"]);
    expect((await kit.client.get("a")).set).toEqual({ name: "billing" });
  });

  it("counts the tasks that it compares, changed or not", async () => {
    await sets().apply(input(many(20)));
    const steps: number[] = [];
    const counting = new Client({ store: kit.store, onProgress: (tasks) => steps.push(tasks) });
    await operatorOf(counting).sets.plan(input([...many(20), "new"]));
    expect(steps.reduce((sum, one) => sum + one, 0)).toBe(21);
    // It shows also that the load is being counted.
    expect(steps).toContain(0);
  });

  it("shows fields, words, times of both sides, times a day, clock changes, and the load", async () => {
    await sets().apply(input(["a"]));
    const zoned = task("a", { schedule: { cron: "30 2 * * *", timezone: "Europe/Berlin" }, tags: ["x"] });
    const { items, load } = await sets().plan(input([zoned]));
    expect(items).toMatchObject([
      {
        action: "update",
        preview: { before: { tags: [] }, after: { tags: ["x"] } },
        schedule: {
          before: { perDay: 24 },
          after: { humanized: expect.stringContaining("02:30"), perDay: 1 },
        },
      },
    ]);
    expect(items[0]?.preview?.times.after[0]?.nominal).toBe(START + 1.5 * HOUR);
    expect(items[0]?.preview?.times.before).toHaveLength(5);
    expect(load).toMatchObject({ before: { perDay: 24 }, after: { perDay: 1 } });
  });

  it("checks schedules with calendars that it would store", async () => {
    const held = task("a", { schedule: { cron: "0 9 * * *", except: [{ named: "off" }] } });
    const given = input([held], { calendars: { off: ["2026-01-01"] } });
    expect((await sets().plan(given)).calendars).toEqual([{ name: "off", outcome: "created" }]);
    await sets().apply(given);
    expect((await kit.client.get("a")).nextExecution).toBe(START + 33 * HOUR);
    expect((await sets().plan(given)).items).toEqual([]);
  });
});

describe("a plan warns of", () => {
  const warnings = async (given: Given) =>
    Object.fromEntries((await sets().plan(given)).warnings.map(({ code, ...one }) => [code, one]));

  it("tasks that are due within five minutes", async () => {
    const soon = [task("in-5m", { schedule: { every: "5m" } }), task("in-1m", { schedule: { every: "1m" } })];
    const { FIRES_SOON } = await warnings(input([...soon, "in-1h"]));
    expect(FIRES_SOON).toMatchObject({
      count: 1,
      tasks: ["system/in-1m"],
      message: "it is due 60 s after this plan.",
    });
  });

  it("an interval that is shorter than the task's runs take", async () => {
    await sets().apply(input([task("slow", { payload: { minutes: 10 } })]));
    await kit.advance("2h");
    const every = (schedule: object) => input([task("slow", { payload: { minutes: 10 }, schedule })]);
    expect(await warnings(every({ every: "15m" }))).not.toHaveProperty("INTERVAL_SHORT");
    expect((await warnings(every({ every: "6m" })))["INTERVAL_SHORT"]).toMatchObject({
      tasks: ["system/slow"],
      message: "its runs take 600000 ms, longer than the 360000 ms to the next time.",
    });
  });

  it("a minute that gets its 500th start, but not of one that had them before, nor of tasks that are spread", async () => {
    const { BUSY_MINUTE } = await warnings(input(many(500)));
    expect(BUSY_MINUTE).toMatchObject({
      tasks: [],
      message: "500 starts of tasks without jitter fall into the minute of 2026-01-01T01:00:00.000Z.",
    });
    const each = (schedule: object) => input(many(250).map((id) => task(id, { schedule })));
    expect((await warnings(each({ every: "30s" })))["BUSY_MINUTE"]?.message).toMatch(/^500 starts of tasks /);
    expect(await warnings(each({ every: "30s", jitter: "10s" }))).not.toHaveProperty("BUSY_MINUTE");
    expect(await warnings(input(many(499)))).not.toHaveProperty("BUSY_MINUTE");
    await sets().apply(input(many(500)));
    expect(await warnings(input([...many(499), task("t499", { priority: 1 })]))).not.toHaveProperty(
      "BUSY_MINUTE",
    );
  });

  it("100 tasks that it moves to one minute from others, but not of those that start together already", async () => {
    const at = (schedule: (i: number) => object) =>
      input(many(100).map((id, i) => task(id, { schedule: schedule(i) })));
    const herd = at(() => ({ cron: "0 9 * * *" }));
    await sets().apply(at((i) => ({ cron: `${i % 60} 8 * * *` })));
    expect((await warnings(herd))["GATHERS"]?.message).toBe(
      "100 tasks move to the minute of 2026-01-01T09:00:00.000Z; now at most 2 of them start together.",
    );
    expect(await warnings(at(() => ({ cron: "H 9 * * *" })))).not.toHaveProperty("GATHERS");
    expect(await warnings({ ...herd, tasks: herd.tasks.slice(1), keep: true })).not.toHaveProperty("GATHERS");
    await sets().apply(herd);
    expect(await warnings(at(() => ({ cron: "0 10 * * *" })))).not.toHaveProperty("GATHERS");
  });

  it("a type without a worker", async () => {
    const { NO_WORKER } = await warnings(input([task("a", { type: "unknown" })]));
    expect(NO_WORKER).toMatchObject({ count: 1, tasks: ["system/a"] });
  });
});

describe("the rules of a set", () => {
  it("leave tasks of another set, or of none, alone until they are adopted", async () => {
    await sets().apply(input(["a"]));
    await kit.client.put(task("loose"));
    const other = input(["a", "loose", "own"], { set: "mail" });
    expect(await refused(other)).toEqual(["CONFLICT"]);
    await expect(sets().apply(other)).rejects.toMatchObject({ code: "PLAN_REFUSED" });
    expect(await kit.client.count()).toBe(2);
    await sets().apply({ ...other, adopt: ["a", "loose"] });
    expect((await kit.client.get("a")).set).toEqual({ name: "mail" });
    // The other set may not take it back.
    expect(await refused(input(["a"]))).toEqual(["CONFLICT"]);
  });

  it("refuse an empty list, too many removals, protected tasks and an older version", async () => {
    await sets().apply(input(many(20), { version: "1.10.0", protect: ["t0"] }));
    const version = "1.11.0";
    expect(await refused(input([], { version }))).toContain("EMPTY_SET");
    expect(await refused(input(many(10), { version }))).toEqual(["TOO_MANY_REMOVALS"]);
    expect(await refused(input(many(10), { version, allowRemovals: 10 }))).toEqual([]);
    expect(await refused(input(many(20).slice(1), { version }))).toEqual(["PROTECTED"]);
    expect(await refused(input(many(20), { version: "1.9.0" }))).toEqual(["OLD_VERSION"]);
    expect(await refused(input(many(20)))).toEqual(["OLD_VERSION"]);
  });

  it("say in the plan which tasks they no longer protect", async () => {
    await sets().apply(input(["a", "b"], { protect: ["a", "system/b"] }));
    expect((await sets().plan(input(["a", "b"], { protect: ["system/a", "b"] }))).warnings).toEqual([]);
    const { warnings } = await sets().plan(input(["a", "b"], { protect: ["a"] }));
    expect(warnings).toMatchObject([{ code: "PROTECTION_ENDS", tasks: ["system/b"], count: 1 }]);
  });

  it("let an older version not win, even if it had planned before", async () => {
    await sets().apply(input(["a"], { version: "1" }));
    const old = await sets().plan(input(["a", "b"], { version: "2" }));
    await sets().apply(input(["a"], { version: "3" }));
    await expect(sets().apply({ ...input(["a", "b"], { version: "2" }), plan: old.id })).rejects.toThrow();
    expect(await kit.client.count()).toBe(1);
  });

  it("let one of two applies at once win; the other is stale", async () => {
    const one = input(["a", "b"]);
    const other = input(["a", task("b", { priority: 1 })]);
    const plans = [await sets().plan(one), await sets().plan(other)];
    const ended = await Promise.allSettled([
      sets().apply({ ...one, plan: plans[0]?.id }),
      sets().apply({ ...other, plan: plans[1]?.id }),
    ]);
    expect(ended.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(ended.find((end) => end.status === "rejected")).toMatchObject({ reason: stale });
  });

  it("let many that are alike at once end well, as when the replicas of an app start", async () => {
    await sets().apply(input(["a", "old", "gone"]));
    const given = input(["a", task("b", { priority: 1 }), task("new", { renamedFrom: "old" })]);
    const plans = await Promise.all(Array.from({ length: 3 }, () => sets().plan(given)));
    const calls = [...plans.map(({ id }) => ({ ...given, plan: id })), given, given];
    const ended = await Promise.allSettled(calls.map((one) => sets().apply(one)));
    // One may begin when the others have ended.
    const failed = ended.flatMap((end) => (end.status === "rejected" ? end.reason : []));
    expect(failed).toEqual(failed.map(() => stale));
    expect(failed.length).toBeLessThan(5);
    expect((await sets().plan(given)).items).toEqual([]);
    const { set } = await sets().drift({ set: "billing" });
    expect([set.generation, set.applying]).toEqual([2, undefined]);
    expect((await kit.client.list({ set: "billing" })).tasks.map(({ id }) => id)).toEqual(["a", "b", "new"]);
  });

  it("find a saved plan stale after any change of its tasks", async () => {
    await sets().apply(input(["a"]));
    const given = input([task("a", { priority: 2 })]);
    const { id } = await sets().plan(given);
    await kit.client.update("a", (stored) => ({ ...stored, tags: ["hand"] }));
    await expect(sets().apply({ ...given, plan: id })).rejects.toEqual(stale);
    expect((await sets().drift({ set: "billing" })).drift).toMatchObject([{ id: "a" }]);
    const { counts, items } = await sets().plan(given);
    expect([counts.drift, items[0]?.drift]).toMatchObject([1, { at: START }]);
    await sets().apply(given);
    expect((await sets().drift({ set: "billing" })).drift).toEqual([]);
  });
});

describe("an apply", () => {
  it("writes nothing if one task of three is bad", async () => {
    const bad = input(["a", task("b", { schedule: { cron: "0 25 * * *" } }), "c"]);
    await expect(sets().apply(bad)).rejects.toMatchObject({ field: "[1].schedule.cron" });
    expect(await kit.client.count()).toBe(0);
    expect((await sets().list()).sets).toEqual([]);
  });

  it("computes no times, load and warnings for people", async () => {
    const done = await sets().apply(input([task("a", { schedule: { every: "1m" } })]));
    expect(Object.keys(done)).not.toEqual(expect.arrayContaining(["warnings"]));
    expect(done.items).toEqual([
      { action: "create", revision: "absent", task: { queue: "jobs", owner: "system", id: "a" } },
    ]);
  });

  it("removes nothing with keep, also of an empty list, and counts what it keeps", async () => {
    await sets().apply(input(many(12)));
    await sets().apply(input(["t0", "fresh"], { keep: true }));
    expect((await kit.client.list({ set: "billing" })).tasks).toHaveLength(13);
    await sets().apply(input([], { keep: true }));
    expect((await sets().drift({ set: "billing" })).set.members).toBe(13);
    expect(await refused(input(["t0", "fresh"]))).toEqual(["TOO_MANY_REMOVALS"]);
  });

  it("lets a removed task linger with its history, and come back with it", async () => {
    await sets().apply(input(["a", "b"]));
    await kit.advance("90m");
    await sets().apply(input(["a"]));
    expect(await kit.client.get("b")).toMatchObject({ state: "finished", nextExecution: undefined });
    expect((await kit.client.list({ set: "billing" })).tasks).toHaveLength(1);
    await kit.advance("2h");
    expect((await kit.client.runs.list("b")).length).toBe(1);
    const back = await sets().plan(input(["a", "b"]));
    expect(back.items).toMatchObject([{ action: "update", returns: true }]);
    await sets().apply(input(["a", "b"]));
    // Nothing is made due: the next time is strictly after the apply.
    expect(await kit.client.get("b")).toMatchObject({ state: "scheduled", nextExecution: START + 4 * HOUR });
    expect((await kit.client.runs.list("b")).length).toBe(1);
    await sets().apply(input(["a"]));
    await sets().apply({ ...input(["a"]), prune: "1h" });
    expect(await kit.client.count()).toBe(2);
    await kit.advance("2h");
    await sets().apply({ ...input(["a"]), prune: "1h" });
    expect(await kit.client.count()).toBe(1);
  });

  it("keeps a person's pause, unless the set gives a state, and keeps a task in the queue that it was moved to", async () => {
    await sets().apply(input(["a", task("b", { state: "running" })]));
    await kit.client.pause("a", { note: "INC-1" });
    await kit.client.pause("b");
    await ops.tasks.move({ id: "a", to: "slow" });
    const given = input([task("a", { priority: 4 }), task("b", { state: "running" })]);
    await sets().apply(given);
    expect(await kit.client.get("a")).toMatchObject({
      queue: "slow",
      priority: 4,
      state: "paused",
      paused: { note: "INC-1" },
    });
    expect((await kit.client.get("b")).state).toBe("scheduled");
    expect((await sets().plan(given)).items).toEqual([]);
    await sets().apply(input([task("a", { priority: 4 }), task("b", { state: "paused" })]));
    expect((await kit.client.get("b")).state).toBe("paused");
  });

  it("renames a task with its pause and its statistics", async () => {
    await sets().apply(input(["old"]));
    await kit.advance("61m");
    await kit.client.pause("old");
    const given = input([task("new", { renamedFrom: "old" })]);
    expect((await sets().plan(given)).items).toMatchObject([{ action: "rename", from: { id: "old" } }]);
    await sets().apply(given);
    expect((await kit.client.get("new")).state).toBe("paused");
    expect(await kit.client.runs.stats("new")).toMatchObject({ successes: 1 });
    expect((await sets().plan(given)).items).toEqual([]);
    await expect(kit.client.get("old")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  });

  it("moves a busy task once its runs are over, and does all else meanwhile", async () => {
    const busy = task("busy");
    await sets().apply(input([busy, "idle", "plain"]));
    await kit.worker.pause();
    await kit.client.trigger("busy");
    const moved = [task("idle", { queue: "slow" }), task("plain", { priority: 2 }), "fresh"];
    const given = input([{ ...busy, queue: "slow" }, ...moved]);
    const { id } = await sets().plan(given);
    await expect(sets().apply({ ...given, plan: id, wait: 0 })).rejects.toMatchObject({
      code: "CONFLICT",
      message:
        "system/busy could not be moved, the other 3 changes are made: runs of busy are not over. " +
        "Wait for their end, cancel them, or give a longer wait. Then apply again: it goes on with the rest.",
    });
    const places = async () =>
      (await kit.client.list({ set: "billing" })).tasks
        .map(({ queue, id, moving }) => [queue, id, moving])
        .sort();
    const others = [
      ["jobs", "fresh", undefined],
      ["jobs", "plain", undefined],
    ];
    expect(await places()).toEqual([["jobs", "busy", undefined], ...others, ["slow", "idle", undefined]]);
    expect((await sets().drift({ set: "billing" })).set.applying).toBeDefined();
    await expect(sets().apply({ ...given, wait: "2h" })).rejects.toMatchObject({ field: "wait" });
    // The same call goes on, and waits for the run, which ends.
    const applied = sets().apply({ ...given, plan: id, wait: "10m" });
    const name = { queue: "jobs", owner: "system", id: "busy" };
    await eventually(async () => (await kit.store.tasks.get(name))?.moving !== undefined);
    const [run] = await kit.store.runs.open(name, 1);
    await kit.client.runs.cancel(run as string);
    await kit.worker.resume();
    await kit.store.runs.reconcile("jobs");
    await kit.advance("1s");
    await applied;
    expect(await places()).toEqual([...others, ["slow", "busy", undefined], ["slow", "idle", undefined]]);
    expect((await sets().drift({ set: "billing" })).set.applying).toBeUndefined();
  });

  it("ends the same if it is killed at any of its writes and repeated", async () => {
    const before = input(["kept", "gone", "changed", "old"]);
    const given = input(
      [
        "kept",
        task("changed", { priority: 1, state: "paused" }),
        "fresh",
        task("new", { renamedFrom: "old" }),
      ],
      { calendars: { off: ["2026-02-01"] } },
    );
    const ends = new Set<string>();
    let [killed, at] = [true, 0];
    for (; killed; at++) {
      let [left, writes] = [Number.POSITIVE_INFINITY, 0];
      killed = false;
      const failpoint = (point: string) => {
        if (!point.startsWith("after ") || / (read|mark)-/.test(point)) return;
        writes += 1;
        if (writes <= left) return;
        killed = true;
        throw Object.assign(new Error("killed"), { code: "KILLED" });
      };
      const made = { connection: redis.url, start: START, namespace: `kill${at}`, queues: ["jobs"] };
      const { store } = await virtualStore(withSeams(made, { failpoint }));
      const client = new Client({ store });
      const { sets } = operatorOf(client);
      await sets.apply(before);
      const { id } = await sets.plan(given);
      [left, writes] = [at, 0];
      const first = await sets.apply({ ...given, plan: id }).catch((error: unknown) => error);
      left = Number.POSITIVE_INFINITY;
      if (first instanceof Error) {
        if (isCarillonError(first, "STALE_PLAN")) throw first;
        await sets.apply({ ...given, plan: id });
      }
      expect((await sets.plan(given)).items, `killed at ${at}`).toEqual([]);
      const { tasks } = await client.list();
      const { set } = await sets.drift({ set: "billing" });
      ends.add(
        JSON.stringify([
          tasks.map(({ id, state, priority, nextExecution }) => [id, state, priority, nextExecution]),
          [set.members, set.applying],
        ]),
      );
      await store.close();
    }
    expect(at).toBeGreaterThan(5);
    expect([...ends].slice(1)).toEqual([]);
  });

  describe("that a newer one has overtaken", () => {
    const former = input(["kept", "gone", task("changed", { state: "running" }), "old"], {
      calendars: { off: ["2026-01-01"] },
    });
    const newer = input(
      [
        "kept",
        task("changed", { schedule: { every: "1m" }, state: "paused" }),
        ...["fresh", "fresh-too"].map((id) => task(id, { queue: id })),
        task("new", { renamedFrom: "old" }),
      ],
      { calendars: { off: ["2026-02-01"] } },
    );

    /** Freezes an apply before its nth write, rolls back to the former files, and lets the apply go on. */
    async function overtaken(at: number, { next = former, sabotage = [] as "guard"[] } = {}) {
      const frozen = gate();
      const reached = gate();
      let [left, writes, isFrozen] = [Number.POSITIVE_INFINITY, 0, false];
      const failpoint = (point: string) => {
        if (!point.startsWith("before ") || / (read|mark)-| add-change/.test(point)) return;
        writes += 1;
        if (writes !== left) return;
        isFrozen = true;
        reached.resolve();
        return frozen.promise;
      };
      const queues = ["jobs", "fresh", "fresh-too"];
      const made = {
        connection: redis.url,
        start: START,
        namespace: `frozen${at}${sabotage}${next === newer}`,
        queues,
      };
      const [{ store }, { store: other }] = [
        await virtualStore(withSeams(made, { failpoint, sabotage })),
        await virtualStore(withSeams(made, { sabotage })),
      ];
      const first = operatorOf(new Client({ store }));
      const { sets } = operatorOf(new Client({ store: other }));
      await sets.apply(former);
      left = at;
      const late = first.sets.apply(newer).then(
        () => undefined,
        (error: unknown) => error,
      );
      void late.then(() => reached.resolve());
      await reached.promise;
      await sets.apply(next);
      frozen.resolve();
      const answer = await late;
      const { set, drift } = await sets.drift({ set: "billing" });
      const { tasks } = await new Client({ store: other }).list({ set: "billing" });
      const left_ = {
        tasks: tasks.map(({ id, state, schedule, moving }) => [id, state, schedule, moving]).sort(),
        set: [set.members, set.applying, drift],
        plan: (await sets.plan(next)).items,
        calendars: (await other.calendars.list()).map(({ entries }) => entries),
      };
      await Promise.all([store.close(), other.close()]);
      return { isFrozen, answer, left: left_ };
    }

    it("writes nothing any more, wherever it was frozen, also if the newer one had nothing to do", async () => {
      const schedule = { every: "1h" };
      const expected = {
        tasks: ["changed", "gone", "kept", "old"].map((id) => [id, "scheduled", schedule, undefined]),
        set: [4, undefined, []],
        plan: [],
        calendars: [["2026-01-01"]],
      };
      // Its first write takes the generation: before that it has not begun.
      let at = 2;
      for (; ; at++) {
        const { isFrozen, answer, left } = await overtaken(at);
        expect(left, `frozen at ${at}`).toEqual(expected);
        expect(answer, `frozen at ${at}`).toEqual(isFrozen ? stale : undefined);
        if (!isFrozen) break;
      }
      expect(at).toBeGreaterThan(12);
    });

    it("is joined by the same call, and both succeed", async () => {
      for (let [at, isFrozen] = [6, true]; isFrozen; at++) {
        const found = await overtaken(at, { next: newer });
        isFrozen = found.isFrozen;
        expect([found.answer, found.left.plan, found.left.set[1]], `frozen at ${at}`).toEqual([
          ...[undefined, [], undefined],
        ]);
      }
    });

    it("control: without guards it is written", async () => {
      const found = [];
      for (const at of [4, 5, 6, 7, 8])
        found.push((await overtaken(at, { sabotage: ["guard"] })).left.plan.length);
      expect(Math.max(...found)).toBeGreaterThan(0);
    });
  });
});
