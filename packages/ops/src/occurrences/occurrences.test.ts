import { type AnswerTo, operatorOf } from "@carillon/ops";
import { Client, type TaskInput } from "@carillon/sdk";
import { Redis } from "ioredis";
import { describe, expect, it, vi } from "vitest";
import { eachBells, MINUTE, putBell, QUEUE, START } from "../../../../test/bells.js";
import { explained } from "../../test/in-words.js";
import { SlowSchedules } from "../../test/slow-schedules.js";

type Upcoming = AnswerTo<"occurrences.upcoming">["upcoming"][number];

describe("the occurrences of tasks", () => {
  const { kit, ops } = eachBells();

  const put = (id: string, type: string, rest: Partial<TaskInput>) => putBell(kit, id, type, rest);
  const named = (list: readonly Upcoming[]) =>
    list.map(({ task, due }) => [task.id, (due - START) / MINUTE] as const);

  it.each<[string, TaskInput["schedule"]]>([
    ["jitter", { every: "1h", jitter: "30m" }],
    ["H", { cron: "H H * * *" }],
  ])(
    "%s: each owner's task of one id has its own times, and everything names the same",
    async (_what, schedule) => {
      const owners = ["system", "acme", "beta", "coda"];
      const dues = new Set<number>();
      for (const owner of owners) {
        const task: TaskInput = { id: "digest", owner, type: "fine", queue: QUEUE, schedule };
        Object.assign(task, { catchUp: "all", catchUpLimits: { max: 3 } });
        const { next } = await kit.client.validate(task, { count: 1 });
        await kit.client.put(task);
        const { nextExecution = 0, humanized } = await kit.client.get({ id: "digest", owner });
        expect(next[0]?.due).toBe(nextExecution);
        expect(humanized).toBe((await kit.client.validate(task)).humanized);
        const found = await explained(kit.client, { id: "digest", owner }, next[0]?.nominal ?? 0);
        expect(found.summary).toContain(
          `due at ${new Date(nextExecution).toISOString().replace(".000Z", "Z")}`,
        );
        dues.add(nextExecution);
      }
      expect(dues.size).toBe(owners.length);
      const expected = [...dues].sort((a, b) => a - b);
      expect((await ops.occurrences.upcoming()).upcoming.map(({ due }) => due)).toEqual(expected);
      const times = (await ops.occurrences.upcoming({ within: "1d", limit: 1_000 })).upcoming;
      const first = owners.map((owner) => times.find(({ task }) => task.owner === owner)?.due ?? 0);
      expect(first.sort((a, b) => a - b)).toEqual(expected);
      await kit.advance("1d");
      const firstDue = async (owner: string) => {
        const runs = await kit.client.runs.list({ id: "digest", owner }, { limit: 100 });
        return Math.min(...runs.map(({ due }) => due));
      };
      const fired = await Promise.all(owners.map(firstDue));
      expect(fired.sort((a, b) => a - b)).toEqual(expected);
    },
  );

  it("lists requested runs and retries among the next times", async () => {
    await put("once", "asking", { schedule: { at: START + MINUTE } });
    await put("again", "failing", { rerun: { delay: "20m", jitter: 0 } });
    await put("plain", "fine", { schedule: { at: START + 90 * MINUTE } });
    await kit.advance("1m");
    expect(named((await ops.occurrences.upcoming()).upcoming)).toEqual([
      ["once", 11],
      ["again", 60],
      ["plain", 90],
    ]);
    expect(named((await ops.occurrences.upcoming({ limit: 1 })).upcoming)).toEqual([["once", 11]]);
    expect((await kit.client.get("once")).nextExecution).toBe(START + 11 * MINUTE);

    await kit.advance("1h");
    expect(named((await ops.occurrences.upcoming()).upcoming)).toEqual([
      ["again", 80],
      ["plain", 90],
    ]);
    const forecast = [
      ["again", 80],
      ["plain", 90],
      ["again", 120],
    ];
    expect(named((await ops.occurrences.upcoming({ within: "1h" })).upcoming)).toEqual(forecast);
    await kit.advanceTo(START + 80 * MINUTE);
    expect((await kit.client.runs.list("again")).map(({ trigger }) => trigger)).toEqual([
      "retry",
      "schedule",
    ]);
  });

  it("lists an owner's tasks as well", async () => {
    await put("once", "asking", { schedule: { at: START + MINUTE }, owner: "acme" });
    await kit.advance("1m");
    const acme = new Client({ store: kit.store, owner: "acme" });
    expect(named((await operatorOf(acme).occurrences.upcoming()).upcoming)).toEqual([["once", 11]]);
    expect(named((await operatorOf(acme).occurrences.upcoming({ within: "1h" })).upcoming)).toEqual([
      ["once", 11],
    ]);
  });

  it("marks an excluded time, with the reason", async () => {
    await ops.calendars.put({ name: "holidays", entries: ["2026-01-02", "2026-01-05"] });
    const except = [{ named: "holidays" }, { calendar: "Sat" }, { cron: "0 9 4 * *" }];
    await put("t", "fine", { schedule: { cron: "0 9 * * *", except } });
    await put("any", "fine", { schedule: { any: [{ cron: "0 9 * * *", except }, { cron: "0 9 2 * *" }] } });
    await kit.advance("3d");
    const at = async (id: string, time: string) => {
      const { verdict, summary, nearest } = await explained(kit.client, id, time);
      return [verdict, summary, nearest];
    };
    const nearest = { before: START + 9 * 3_600_000, after: Date.parse("2026-01-06T09:00:00Z") };
    for (const [day, by] of [
      ["02", "the calendar holidays"],
      ["03", "Sat"],
      ["04", "0 9 4 * *"],
      ["05", "the calendar holidays"],
    ]) {
      const told = ["no-occurrence", `The schedule excludes it: ${by}.`, nearest];
      expect(await at("t", `2026-01-${day}T09:00:00Z`)).toEqual(told);
    }
    expect((await at("t", "2026-01-02T10:00:00Z"))[1]).toBe(
      "The schedule, as it is now, names no such time.",
    );
    expect((await at("any", "2026-01-02T09:00:00Z"))[0]).toBe("enqueued");
    expect((await at("any", "2026-01-03T09:00:00Z"))[1]).toBe("The schedule excludes it: Sat.");
  });

  it("explains what is due or waits now, or comes next, if no time is given", async () => {
    const present = async (id: string, time?: "now") => {
      const { verdict, why, time: at } = await explained(kit.client, id, time);
      return [verdict, why.code, (at - START) / MINUTE];
    };
    // Nobody works this queue.
    const more = { queue: "idle", owner: "acme", schedule: { every: "1h" } };
    await put("first", "fine", more);
    await put("second", "fine", { ...more, schedule: { at: START + 61 * MINUTE } });
    await put("manual", "fine", { ...more, owner: "other" });
    expect(await present("acme/first")).toEqual(["planned", "planned", 60]);
    await ops.queues.limit({ queue: "idle", owner: "acme", runs: 1 });
    await kit.advance("62m");
    // The owner's only place is taken by a run that waits for a worker.
    expect(await present("acme/first")).toEqual(["enqueued", "ran", 60]);
    expect(await present("acme/second")).toEqual(["due", "owner-full", 61]);
    expect(await present("acme/second", "now")).toEqual(["due", "owner-full", 61]);
    await kit.client.trigger({ id: "manual", owner: "other" }, { overlap: "allow" });
    expect((await explained(kit.client, "other/manual")).summary).toMatch(
      /^It was enqueued on time, .* and has been waiting for 2 min: no worker works the queue idle\.$/,
    );
    await put("once", "fine", { schedule: { at: START + 70 * MINUTE } });
    await kit.client.trigger("once");
    await kit.advance("10m");
    expect(await present("once")).toEqual(["enqueued", "ran", 70]);
    await put("t", "fine", {});
    await kit.client.pause("t");
    expect(await present("t")).toEqual(["held", "paused", 120]);
  });

  it("does not report a run as skipped when only the end of its retry is on record", async () => {
    const rest = { rerun: { delay: "2h", max: "2h", jitter: 0 }, retention: { failures: 1 } };
    await put("t", "failing", rest);
    await kit.advance("5h");
    expect(await kit.client.runs.list("t")).toHaveLength(1);
    const { verdict, summary, events } = await explained(kit.client, "t", START + 120 * MINUTE);
    expect(verdict).toBe("enqueued");
    expect(summary).toBe(
      "It ran and failed, but the record of that is no longer kept; its retry was superseded: " +
        "the next occurrence was due before the retry could go, and does its work.",
    );
    expect(events).toMatchObject([
      { text: expect.stringMatching(/^its retry was given up \(retry-superseded\), with all from /) },
    ]);
    expect(events[0]?.by).toBeUndefined();
  });

  it("explains a run whose record is corrupt", async () => {
    await put("t", "fine", {});
    await kit.advance("61m");
    const [run] = await kit.client.runs.list("t");
    const redis = new Redis(kit.redis.url);
    const [record = ""] = await redis.keys(`*:~r:${run?.id}`);
    expect(await redis.hset(record, "started", "x")).toBe(0);
    redis.disconnect();
    expect((await explained(kit.client, "t", START + 60 * MINUTE)).verdict).toBe("enqueued");
  });

  it("does not report a decision whose record expired as passed over", async () => {
    await put("t", "fine", { retention: { successes: 0 } });
    await kit.advance("90m");
    const { verdict, summary } = await explained(kit.client, "t", START + 60 * MINUTE);
    expect([verdict, summary]).toEqual([
      "expired",
      "It was decided, but the record of it is no longer kept.",
    ]);
  });

  it("reports a skipped range from its first time to its last", async () => {
    await put("t", "fine", { catchUp: "skip" });
    await kit.client.pause("t");
    await kit.advance("190m");
    await kit.client.resume("t");
    const at = async (minute: number) => (await explained(kit.client, "t", START + minute * MINUTE)).verdict;
    expect([await at(60), await at(120), await at(180)]).toEqual(["skipped", "skipped", "skipped"]);
    expect([await at(90), await at(240)]).toEqual(["no-occurrence", "planned"]);
  });

  it("does not report an occurrence beyond maxRuns as planned", async () => {
    await put("t", "fine", { schedule: { every: "10m", maxRuns: 3 } });
    const at = async (minute: number) => (await explained(kit.client, "t", START + minute * MINUTE)).verdict;
    expect([await at(10), await at(30), await at(40)]).toEqual(["planned", "planned", "no-occurrence"]);
    await kit.advance("10m");
    expect([await at(10), await at(30), await at(40)]).toEqual(["enqueued", "planned", "no-occurrence"]);
    await kit.client.pause("t");
    expect([await at(30), await at(40)]).toEqual(["held", "no-occurrence"]);
    await kit.client.resume("t");
    await kit.advance("1h");
    expect(await kit.client.get("t")).toMatchObject({ state: "finished" });
    expect([await at(30), await at(40), await at(80)]).toEqual([
      "enqueued",
      "no-occurrence",
      "no-occurrence",
    ]);
    expect((await explained(kit.client, "t", START + 80 * MINUTE)).summary).toBe(
      "It comes after the last run that maxRuns allows.",
    );
  });

  it("counts occurrences that wait for a run's end towards maxRuns", async () => {
    await put("t", "fine", { overlap: "queue-all", schedule: { every: "10m", maxRuns: 2 } });
    await kit.worker.pause();
    await kit.advance("25m");
    expect((await kit.client.get("t")).pending).toHaveLength(1);
    expect([await verdict(10), await verdict(20), await verdict(30)]).toEqual([
      "enqueued",
      "waiting",
      "no-occurrence",
    ]);
  });
  const verdict = async (minute: number) =>
    (await explained(kit.client, "t", START + minute * MINUTE)).verdict;

  /** Occurrences owed at minute 45: those of minutes 10 to 40. */
  const BACKLOG: [what: string, task: Partial<TaskInput>, after: number, planned: number][] = [
    ["one run for all, under one", { catchUp: "one" }, 2, 50],
    ["one, under one, with a window", { catchUp: "one", catchUpLimits: { window: "10m" } }, 2, 50],
    ["none, under one, out of the window", { catchUp: "one", catchUpLimits: { window: "4m" } }, 2, 60],
    ["none, under skip", { catchUp: "skip" }, 2, 60],
    ["each, under all", { catchUp: "all" }, 5, 50],
    ["the newest, under all with most", { catchUp: "all", catchUpLimits: { max: 2 } }, 3, 50],
  ];
  it.each(BACKLOG)("counts %s of a backlog towards maxRuns", async (_what, rest, maxRuns, last) => {
    await put("t", "fine", { overlap: "allow", schedule: { every: "10m", maxRuns }, ...rest });
    await ops.tasks.pauseMany({ queue: QUEUE });
    await kit.advance("45m");
    await ops.tasks.resumeMany({ queue: QUEUE, missed: "catch-up" });
    expect([await verdict(10), await verdict(20), await verdict(40)]).toEqual(["due", "due", "due"]);
    expect([await verdict(last), await verdict(last + 10)]).toEqual(["planned", "no-occurrence"]);
    await kit.advance("2h");
    expect([await verdict(last), await verdict(last + 10)]).toEqual(["enqueued", "no-occurrence"]);
  });

  it("reports if there are too many times before it to count, and does not block the process", async () => {
    await put("t", "fine", { schedule: { every: "1s", maxRuns: 1_000_000 } });
    using slow = new SlowSchedules();
    const at = async (hours: number) => (await explained(kit.client, "t", START + hours * 3_600_000)).summary;
    const longest = await slow.longestTurn(async () => {
      expect(await at(1)).toBe("It is due at 2026-01-01T01:00:00Z, in 1 h.");
      expect(await at(100)).toBe(
        "It is due at 2026-01-05T04:00:00Z, in 4 d 4 h, unless maxRuns is reached before.",
      );
    });
    expect(longest).toBeLessThanOrEqual(30);
  });

  describe("load", () => {
    const HOUR = 60 * MINUTE;
    const many = (count: number, schedule: TaskInput["schedule"], more: Partial<TaskInput> = {}) =>
      kit.client.putMany(
        Array.from({ length: count }, (_, i) => ({
          id: `${Buffer.from(JSON.stringify(schedule)).toString("hex").slice(0, 90)}-${i}`,
          type: "fine",
          queue: QUEUE,
          schedule,
          ...more,
        })),
      );

    it("counts what the forecast lists, in each step", async () => {
      await many(3, { cron: "0 * * * *" });
      await many(2, { cron: "H * * * *" });
      await many(4, { every: "1h", jitter: "50m" });
      await many(2, { every: "25m", anchor: "finish" });
      await many(1, { every: "7m", maxRuns: 3 });
      await many(2, { at: "2026-01-01T02:30:00Z" });
      await many(5, { every: "1m" }, { enabled: false });
      await many(
        1,
        { any: [{ cron: "5 * * * *" }, { cron: "10 1 * * *" }], except: [{ cron: "5 3 * * *" }] },
        { owner: "acme" },
      );
      const { counts, total, tasks, ...load } = await ops.occurrences.load({
        to: START + 4 * HOUR,
        step: "30m",
      });
      expect([load.from, load.step, counts.length, tasks]).toEqual([START, 30 * MINUTE, 8, 15]);
      const upcoming = (await ops.occurrences.upcoming({ within: "4h", limit: 10_000 })).upcoming.filter(
        ({ due }) => due < START + 4 * HOUR,
      );
      const wanted = new Array(8).fill(0);
      for (const { due } of upcoming) wanted[Math.floor((due - START) / (30 * MINUTE))] += 1;
      expect(counts).toEqual(wanted);
      expect(total).toBe(upcoming.length);
      expect(await ops.occurrences.load({ owner: "acme", to: START + 4 * HOUR })).toMatchObject({
        tasks: 1,
        total: 4,
      });
    });

    it("leaves out occurrences that freezes skip, and counts held ones at the end", async () => {
      await many(2, { cron: "0 * * * *" }, { tags: ["billing"] });
      await many(3, { cron: "5 * * * *" });
      await many(1, { every: "1h", jitter: "10m" }, { owner: "acme" });
      await many(4, { at: "2026-01-01T01:30:00Z" }, { tags: ["billing"] });
      await many(1, { cron: "15 * * * *", maxRuns: 2 }, { tags: ["billing"] });
      const [from, until] = [START + HOUR, START + 2.5 * HOUR];
      const { id } = await ops.freezes.put({ tag: "billing", from, until });
      await ops.freezes.put({ owner: "acme", from: START + 3 * HOUR });
      const load = await ops.occurrences.load({ to: START + 5 * HOUR });
      const upcoming = (await ops.occurrences.upcoming({ within: "5h", limit: 1_000 })).upcoming.filter(
        ({ due, frozen }) => due < START + 5 * HOUR && !frozen,
      );
      const wanted = new Array(5).fill(0);
      for (const { due } of upcoming) wanted[Math.floor((due - START) / HOUR)] += 1;
      expect([load.counts, load.total, load.tasks]).toEqual([wanted, upcoming.length, 11]);
      // Two tasks at 01:00 and 02:00, one task at 01:15 and 02:15, and those of acme after 03:00.
      expect(load.frozen).toBe(4 + 2 + 2);
      const there = load.busiest.flatMap(({ collisions }) => collisions).find(({ at }) => at === until);
      expect(there).toMatchObject({ count: 4, schedules: [{ tasks: 4 }] });
      await ops.freezes.delete({ id });
      expect((await ops.occurrences.load({ to: START + 5 * HOUR })).frozen).toBe(2);
    });

    it("names the busiest instants, and a jitter for each", async () => {
      await many(40, { cron: "0 3 * * *" });
      await many(5, { cron: "0 */3 * * *" });
      await many(3, { cron: "30 3 * * *" });
      const { busiest } = await ops.occurrences.load();
      expect(busiest[0]).toMatchObject({ at: START + 3 * HOUR, count: 48 });
      expect(busiest[0]?.collisions).toMatchObject([
        {
          at: START + 3 * HOUR,
          count: 45,
          schedules: [
            { tasks: 40, humanized: "at 03:00, every day (UTC)", sample: { length: 10 }, jitter: "1m" },
            { tasks: 5, jitter: "10s" },
          ],
        },
        { at: START + 3.5 * HOUR, count: 3, schedules: [{ tasks: 3 }] },
      ]);
      expect(busiest[0]?.collisions[1]?.schedules[0]).not.toHaveProperty("jitter");
      expect(busiest).toHaveLength(5);
    });

    it.each([
      [{ step: "1ms" }, "step"],
      [{ step: "1s" }, "step"],
      [{ from: 5, to: 4, step: "1s" }, "to"],
      [{ tag: "" }, "tag"],
    ])("refuses %j", async (options, field) => {
      await expect(ops.occurrences.load(options)).rejects.toMatchObject({
        field,
        remedy: expect.any(String),
      });
    });

    it("reads hundreds of tasks in one call, and joins those of all queues that share a schedule", async () => {
      const schedule = { cron: "0 3 * * *" };
      const task = (n: number) => ({ id: `n${n}`, type: "fine", queue: n === 0 ? "other" : QUEUE, schedule });
      await kit.client.putMany(Array.from({ length: 601 }, (_, n) => task(n)));
      const sent = vi.spyOn(Redis.prototype, "sendCommand");
      const { busiest, tasks } = await ops.occurrences.load();
      expect(sent.mock.calls.length).toBeLessThan(30);
      sent.mockRestore();
      const [schedules] = busiest.flatMap(({ collisions }) => collisions.map((one) => one.schedules));
      expect([tasks, schedules]).toMatchObject([601, [{ tasks: 601, sample: { length: 10 } }]]);
    });
  });

  describe("ticks", () => {
    const between = async (id: string, from: number, to: number, limit?: number) => {
      const found = await ops.occurrences.ticks({
        id,
        from: START + from * MINUTE,
        to: START + to * MINUTE,
        limit,
      });
      const told = found.ticks.map(({ nominal, state, ...more }) => ({
        at: (nominal - START) / MINUTE,
        state,
        ...more,
      }));
      return { told, next: found.next };
    };

    it("list runs, skips and planned occurrences in order", async () => {
      await put("a", "fine", { schedule: { every: "10m" } });
      await put("bad", "failing", { schedule: { every: "10m" } });
      await kit.advance("20m");
      await kit.client.pause("a", { note: "maintenance" });
      await kit.advance("25m");
      expect((await between("a", 25, 55)).told).toMatchObject([
        { at: 30, state: "held", note: "maintenance" },
        { at: 40, state: "held" },
        { at: 50, state: "held" },
      ]);
      await kit.client.resume("a");
      await kit.client.trigger("a");
      await kit.advance("1s");
      const { told, next } = await between("a", 0, 70);
      expect(told).toMatchObject([
        {
          at: 10,
          state: "enqueued",
          outcome: "succeeded",
          runState: "final",
          durationMs: expect.any(Number),
        },
        { at: 20, state: "enqueued", trigger: "schedule", lateMs: 0 },
        { at: 30, state: "skipped", reason: "paused", note: "maintenance" },
        { at: 40, state: "skipped", reason: "paused" },
        { at: 45, state: "enqueued", trigger: "manual" },
        { at: 50, state: "planned", due: START + 50 * MINUTE },
        { at: 60, state: "planned" },
        { at: 70, state: "planned" },
      ]);
      expect(next).toBeUndefined();
      expect(await between("a", 0, 70, 3)).toEqual({ told: told.slice(0, 3), next: START + 40 * MINUTE });
      expect((await between("a", 15, 35)).told.map(({ at }) => at)).toEqual([20, 30]);
      expect((await between("bad", 0, 15)).told).toMatchObject([{ at: 10, outcome: "failed" }]);
      await expect(between("a", 5, 4)).rejects.toMatchObject({ code: "INVALID_OPTION", field: "from" });
    });

    it("show a long range of skips as one", async () => {
      await put("a", "fine", { schedule: { every: "1m" } });
      await kit.client.pause("a");
      await kit.advance("10h");
      await kit.client.resume("a");
      expect((await between("a", 0, 600)).told).toEqual([
        { at: 1, state: "skipped", reason: "paused", until: START + 600 * MINUTE, decisions: 1 },
      ]);
      expect((await between("a", 100, 102)).told.map(({ at }) => at)).toEqual([100, 101, 102]);
    });

    it("show the last ones of many tasks, by owner", async () => {
      await put("a", "fine", { schedule: { every: "10m" } });
      await put("b", "failing", { schedule: { every: "20m" }, owner: "acme" });
      await kit.advance("45m");
      const names = ["acme/b", "system/none", "system/a"].map((name) => `${QUEUE}/${name}`);
      const told = async (client: Client) =>
        (await operatorOf(client).occurrences.ticksMany({ tasks: names, limit: 3 })).tasks.map(
          ({ task, ticks }) => [
            task.id,
            ...ticks.map(({ nominal, outcome }) => [(nominal - START) / MINUTE, outcome]),
          ],
        );
      expect(await told(kit.client)).toEqual([
        ["b", [20, "failed"], [40, "failed"]],
        ["none"],
        ["a", [20, "succeeded"], [30, "succeeded"], [40, "succeeded"]],
      ]);
      const bound = new Client({ store: kit.store, owner: "acme" });
      expect(await told(bound)).toEqual([["b", [20, "failed"], [40, "failed"]]]);
      const many = Array.from({ length: 201 }, () => `${QUEUE}/acme/b`);
      await expect(ops.occurrences.ticksMany({ tasks: many })).rejects.toMatchObject({ field: "tasks" });
    });
  });

  it("keeps the note of a pause after its resume, in the skips and in explain", async () => {
    await put("held", "fine", {});
    await kit.client.pause("held", { note: "INC-43: upstream  is down", by: "ann" });
    await kit.advance("3h");
    await kit.client.resume("held", { by: "eve" });
    expect(await kit.client.runs.skips("held")).toMatchObject([
      { reason: "paused", by: "eve", note: "INC-43: upstream  is down" },
    ]);
    const { events } = await explained(kit.client, "held", START + 60 * MINUTE);
    expect(events.map(({ text }) => text).join()).toContain("(paused: INC-43: upstream  is down)");
    // A pause without a note removes the earlier one.
    await kit.client.pause("held");
    await kit.advance("2h");
    await kit.client.resume("held");
    expect((await kit.client.runs.skips("held"))[0]).not.toHaveProperty("note");
  });
});
