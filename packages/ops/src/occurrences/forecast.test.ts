import { TaskSchedule } from "@carillon/core/internal";
import { type AnswerTo, operatorOf } from "@carillon/ops";
import { Client, defineTask, type TaskInput } from "@carillon/sdk";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/each-kit.js";
import { SlowSchedules } from "../../test/slow-schedules.js";

type Upcoming = AnswerTo<"occurrences.upcoming">["upcoming"][number];

const QUEUE = "bells";
const START = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;

const payload = z.object({}).loose();
const fine = defineTask("fine", { queue: QUEUE, payload, handler: () => {} });
/** Fails at the first attempt of each occurrence; retries succeed. */
const failing = defineTask("failing", {
  queue: QUEUE,
  payload,
  handler: (_payload, { occurrence }) => {
    if (occurrence.trigger !== "retry") throw new Error("no");
  },
});

describe("the forecast", () => {
  const { kit, ops } = eachKit({ types: [fine, failing], start: START });

  const put = (id: string, rest: Partial<TaskInput> = {}) =>
    kit.client.put({ id, type: "fine", queue: QUEUE, schedule: { every: "10m" }, overlap: "allow", ...rest });
  const minutes = (time: number) => (time - START) / MINUTE;
  const named = (list: readonly Upcoming[]) =>
    list.map(({ task, nominal, due }) => `${task.id} of ${minutes(nominal)} at ${minutes(due)}`);
  /** Leaves occurrences undecided, and so owed, as if no node had been running. */
  async function owing(during: string): Promise<void> {
    await ops.tasks.pauseMany({ queue: QUEUE });
    await kit.advance(during);
    await ops.tasks.resumeMany({ queue: QUEUE, missed: "catch-up" });
  }
  async function happened(within: string): Promise<string[]> {
    const since = kit.now;
    await kit.advance(within);
    const { runs } = await kit.client.runs.journal({ from: since, limit: 1_000 });
    return runs
      .map(({ task, nominal, enqueued }) => ({ task, nominal, due: enqueued }))
      .map((one) => named([one])[0] as string)
      .sort();
  }

  const OWED: [what: string, task: Partial<TaskInput>, now: readonly number[]][] = [
    ["the latest, under one", { catchUp: "one" }, [60]],
    ["none, under skip", { catchUp: "skip" }, []],
    ["none, under skip, for a lone one that is late", { catchUp: "skip", schedule: { every: "1h" } }, []],
    ["each, under all", { catchUp: "all" }, [10, 20, 30, 40, 50, 60]],
    ["the newest, under all with most", { catchUp: "all", catchUpLimits: { max: 2 } }, [50, 60]],
    ["the first, under all with a pace", { catchUp: "all", catchUpLimits: { every: "4m" } }, [10]],
    [
      "the first of the newest, with most and a pace",
      { catchUp: "all", catchUpLimits: { max: 3, every: "4m" } },
      [40],
    ],
    ["what maxRuns leaves", { catchUp: "all", schedule: { every: "10m", maxRuns: 3 } }, [10, 20, 30]],
    ["the one that there is, after a finish", { schedule: { every: "10m", anchor: "finish" } }, [10]],
    [
      "none, under skip, after a finish",
      { catchUp: "skip", schedule: { every: "10m", anchor: "finish" } },
      [],
    ],
  ];
  it.each(OWED)("includes owed times: %s", async (_what, task, now) => {
    await put("t", task);
    await owing("65m");
    const forecast = (await ops.occurrences.upcoming({ within: "2h" })).upcoming;
    expect(forecast.filter(({ due }) => due <= kit.now).map(({ nominal }) => minutes(nominal))).toEqual(now);
    expect(forecast.filter(({ due }) => due < kit.now)).toEqual([]);
    expect(await happened("2h")).toEqual(named(forecast).sort());
  });

  it("starts an owed retry now, and continues a drifting task from there", async () => {
    await put("t", {
      type: "failing",
      schedule: { every: "60m", anchor: "finish", end: "2026-01-01T03:00:00Z" },
      rerun: { delay: "5m", jitter: 0 },
    });
    await kit.advance("61m");
    expect(named((await ops.occurrences.upcoming({ within: "90m" })).upcoming)).toEqual([
      "t of 60 at 65",
      "t of 125 at 125",
    ]);
    await owing("9m");
    const forecast = named((await ops.occurrences.upcoming({ within: "90m" })).upcoming);
    expect(forecast).toEqual(["t of 60 at 70", "t of 130 at 130"]);
    // The run of minute 130 fails as well, which the forecast cannot know.
    expect((await happened("60m")).sort()).toEqual([...forecast].sort());
  });

  it("counts a pending run once towards maxRuns", async () => {
    await put("t", { overlap: "queue-all", schedule: { every: "10m", maxRuns: 3 } });
    await kit.worker.pause();
    await kit.advance("20m");
    expect((await kit.client.get("t")).pending).toHaveLength(1);
    expect(named((await ops.occurrences.upcoming({ within: "1h" })).upcoming)).toEqual(["t of 30 at 30"]);
  });

  it("marks what a freeze skips and holds, and includes what it releases at its end", async () => {
    await put("t");
    await put("once", { schedule: { at: START + 25 * MINUTE }, catchUp: "skip" });
    await put("free", { owner: "acme", schedule: { every: "30m" } });
    await ops.freezes.put({ owner: "system", from: START + 15 * MINUTE, until: START + 35 * MINUTE });
    const forecast = (await ops.occurrences.upcoming({ within: "50m" })).upcoming;
    const frozen = forecast.filter((one) => one.frozen);
    expect(named(frozen)).toEqual(["t of 20 at 20", "t of 30 at 30"]);
    expect(frozen[0]?.frozen).toMatchObject({ until: START + 35 * MINUTE });
    const free = named(forecast.filter((one) => !one.frozen));
    expect(free).toEqual([
      "t of 10 at 10",
      "free of 30 at 30",
      "once of 25 at 35",
      "t of 40 at 40",
      "t of 50 at 50",
    ]);
    expect(await happened("50m")).toEqual(free.sort());
  });

  it("lists occurrences held by an open-ended freeze once, at their due time", async () => {
    await put("once", { schedule: { at: START + 25 * MINUTE } });
    await put("again", {
      type: "failing",
      schedule: { at: START + 5 * MINUTE },
      rerun: { delay: "10m", jitter: 0 },
    });
    await kit.advance("6m");
    await ops.freezes.put({ all: true, note: "INC-43" }, { by: "ann" });
    const forecast = (await ops.occurrences.upcoming({ within: "1h" })).upcoming;
    expect(named(forecast)).toEqual(["again of 5 at 15", "once of 25 at 25"]);
    const next = (await ops.occurrences.upcoming()).upcoming;
    expect(named(next)).toEqual(named(forecast));
    for (const { frozen } of [...forecast, ...next])
      expect(frozen).toMatchObject({ by: "ann", note: "INC-43", until: undefined });
    expect(await happened("1h")).toEqual([]);
  });

  it("is not shortened by tasks that come later or never", async () => {
    for (let n = 0; n < 5; n++) {
      await put(`skip-${n}`, { catchUp: "skip" });
      await put(`again-${n}`, { type: "failing", schedule: { at: START + MINUTE }, rerun: AGAIN });
    }
    await kit.advance("2m");
    await put("plain", { schedule: { at: START + 50 * MINUTE } });
    await owing("43m");
    // The time is minute 45: all ten are asked at once.
    const acme = new Client({ store: kit.store, owner: "system" });
    for (const client of [kit.client, acme]) {
      expect(named((await operatorOf(client).occurrences.upcoming({ limit: 6 })).upcoming).at(-1)).toBe(
        "plain of 50 at 50",
      );
      expect(
        named((await operatorOf(client).occurrences.upcoming({ within: "10m", limit: 1 })).upcoming)[0],
      ).toMatch(/at 50$/);
      expect(
        named((await operatorOf(client).occurrences.upcoming({ within: "10m", limit: 7 })).upcoming),
      ).toContain("plain of 50 at 50");
      expect(
        named((await operatorOf(client).occurrences.upcoming({ within: "10m", limit: 3 })).upcoming).map(
          (one) => one.slice(-2),
        ),
      ).toEqual(["50", "50", "50"]);
    }
  });
  const AGAIN = { delay: "1h", jitter: 0 };

  it("neither hides other tasks behind a frequent one, nor cuts it", async () => {
    await put("often", { schedule: { every: "1s" } });
    await put("hourly", { schedule: { every: "1h" } });
    const all = (await ops.occurrences.upcoming({ within: "4h", limit: 100_000 })).upcoming;
    expect(all.filter(({ task }) => task.id === "often")).toHaveLength(4 * 3600);
    expect(all.filter(({ task }) => task.id === "hourly")).toHaveLength(4);
    const first = (await ops.occurrences.upcoming({ within: "4h", limit: 4_000 })).upcoming;
    expect(first).toEqual(all.slice(0, 4_000));
    expect(first.filter(({ task }) => task.id === "hourly")).toHaveLength(1);
  });

  it("walks a long backlog with a pace once, not at each step", async () => {
    const catchUpLimits = { max: 1_000, every: "2s" };
    await put("t", { schedule: { every: "1s" }, catchUp: "all", catchUpLimits });
    await owing("1h");
    const latest = vi.spyOn(TaskSchedule.prototype, "latest");
    try {
      expect((await ops.occurrences.upcoming({ within: "10m" })).upcoming).toHaveLength(301);
      expect(latest.mock.calls.length).toBeLessThan(10_000);
    } finally {
      latest.mockRestore();
    }
  });

  describe("with too many steps", () => {
    it("does not block the process", async () => {
      await put("often", { schedule: { every: "1s" } });
      using slow = new SlowSchedules();
      const longest = await slow.longestTurn(async () => {
        expect((await ops.occurrences.upcoming({ within: "10m", limit: 10_000 })).upcoming).toHaveLength(600);
      });
      expect(longest).toBeLessThanOrEqual(30);
      expect(slow.worked).toBeGreaterThanOrEqual(600);
    });

    it("does not block the process during a long backlog", async () => {
      await put("t", {
        schedule: { every: "1s" },
        catchUp: "all",
        catchUpLimits: { max: 1_000, every: "1h" },
      });
      await owing("1h");
      using slow = new SlowSchedules();
      const longest = await slow.longestTurn(async () => {
        expect((await ops.occurrences.upcoming({ within: "10m" })).upcoming).toHaveLength(1);
      });
      expect(longest).toBeLessThanOrEqual(30);
      expect(slow.worked).toBeGreaterThanOrEqual(1_000);
    });

    it("ends with a remedy after the same number of steps, however long they take", async () => {
      const except = Array.from({ length: 32 }, (_, n) => ({ cron: `${n} 3 * * * *` }));
      await put("often", { schedule: { every: "1s", except } });
      const stepsAtPace = async (pace: number) => {
        using slow = new SlowSchedules(pace);
        await expect(ops.occurrences.upcoming({ within: "3650d", limit: 100_000 })).rejects.toMatchObject({
          code: "INVALID_OPTION",
          field: "within",
          remedy: "Ask for a shorter time, a smaller limit, or one queue.",
        });
        // Within a limit that it reaches, it answers at any pace.
        const steps = slow.worked / pace;
        const { upcoming } = await ops.occurrences.upcoming({ within: "3650d", limit: 3_000 });
        expect(upcoming).toHaveLength(3_000);
        return steps;
      };
      const steps = await stepsAtPace(1);
      expect(await stepsAtPace(1_000)).toBe(steps);
    });
  });

  it("reads at most the allowed number of tasks for an answer", async () => {
    const asked: number[] = [];
    const { tasks } = kit.store;
    tasks.due = async (_queue, _until, most) => {
      asked.push(most);
      return Array.from({ length: most }, () => ({ local: "system/t", at: kit.now }));
    };
    tasks.get = async () => undefined;
    expect((await ops.occurrences.upcoming({ within: "1h", queue: QUEUE, limit: 60_000 })).upcoming).toEqual(
      [],
    );
    expect(asked).toEqual([60_000, 100_000]);
  });
});
