import { defineTask, type TaskInput } from "@carillon/sdk";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/each-kit.js";
import { explained } from "../../test/in-words.js";
import { type About, compareTimes, type Decided } from "./compare.js";

const QUEUE = "bells";
const START = Date.parse("2026-01-01T00:00:00Z");
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];
const ring = defineTask("ring", { queue: QUEUE, payload: z.looseObject({}), handler: () => {} });

describe("a shadow", () => {
  const { kit, ops } = eachKit({ types: [ring], start: START });

  const put = (more: Partial<TaskInput> = {}) =>
    kit.client.put({
      id: "t",
      type: "ring",
      queue: QUEUE,
      schedule: { every: "1m" },
      mode: "shadow",
      ...more,
    });
  const runs = async () =>
    (await kit.client.runs.list("t")).map(({ nominal, trigger }) => [(nominal - START) / MINUTE, trigger]);

  it("records what it would enqueue, as one range, and enqueues nothing", async () => {
    await put({ schedule: { every: "1m", maxRuns: 5 } });
    await kit.advance("3m");
    expect(await kit.client.runs.skips("t")).toMatchObject([
      { reason: "shadow", from: START + MINUTE, to: START + 3 * MINUTE, decisions: 3 },
    ]);
    expect(await kit.client.get("t")).toMatchObject({ mode: "shadow", fired: 3, cursor: START + 3 * MINUTE });
    expect((await explained(kit.client, "t", START + MINUTE)).summary).toContain(
      "it would have been enqueued, but the task is a shadow",
    );
    await kit.advance("10m");
    expect(await kit.client.get("t")).toMatchObject({ state: "finished", fired: 5 });
    expect(await runs()).toEqual([]);
  });

  it("runs what a person asks for", async () => {
    await put();
    await kit.client.trigger("t");
    await kit.advance("2m");
    expect(await runs()).toEqual([[0, "manual"]]);
  });

  it("is not changed by a put, but by a resume", async () => {
    await put();
    await put({ mode: undefined, priority: 1 });
    expect(await kit.client.get("t")).toMatchObject({ mode: "shadow", priority: 1 });
    expect(await put({ priority: 1 })).toMatchObject({ outcome: "unchanged" });
    await kit.client.pause("t");
    await kit.client.resume("t", { mode: "live" });
    expect(await put({ priority: 1 })).toMatchObject({ outcome: "unchanged" });
    await kit.advance("1m");
    expect(await runs()).toEqual([[1, "schedule"]]);
    await kit.client.pause("t");
    await kit.client.resume("t", { mode: "shadow" });
    await kit.advance("1m");
    expect(await runs()).toEqual([[1, "schedule"]]);
    await expect(kit.client.resume("t", { mode: "both" as never })).rejects.toMatchObject({ field: "mode" });
  });

  it("stays one when it moves, or is deleted and restored", async () => {
    const { tasks } = ops;
    await put();
    await tasks.move({ id: "t", to: "chimes" });
    expect(await kit.client.get("t")).toMatchObject({ queue: "chimes", mode: "shadow" });
    await kit.client.delete("t");
    await tasks.restore({ queue: "chimes", id: "t" });
    expect(await kit.client.get("t")).toMatchObject({ mode: "shadow" });
    await kit.client.delete("t");
  });

  it("names the dialect as the cause of a time that only cron-parser has", async () => {
    const { shadow } = ops;
    await put({ schedule: { cron: "0 0 */2 * 1" } });
    await kit.advance("20d");
    // A Thursday, and a Monday.
    await shadow.observe({ id: "t", times: [14, 18].map((day) => ({ nominal: START + day * DAY })) });
    expect((await shadow.report({ id: "t" })).differences).toEqual([
      { theirs: START + 14 * DAY, cause: "dialect" },
    ]);
  });

  it("is compared with what was observed", async () => {
    const { shadow } = ops;
    await put({ schedule: { cron: "*/10 * * * *" } });
    await kit.advance("1h");
    expect(await shadow.report({ id: "t" })).toMatchObject({ observed: 0, different: 0 });
    const times = [10, 20, 25, 40, 50].map((minute) => ({ nominal: START + minute * MINUTE + 2_000 }));
    await shadow.observe({ id: "t", times });
    await shadow.observe({
      id: "t",
      times: [{ nominal: START + 10 * MINUTE + 2_000, at: START + 11 * MINUTE }],
    });
    await kit.advance("5m");
    expect(await shadow.report({ id: "t" })).toMatchObject({
      observed: 5,
      same: 4,
      different: 2,
      differences: [
        { ours: START + 30 * MINUTE, theirs: START + 25 * MINUTE + 2_000, cause: "unknown" },
        { ours: START + 60 * MINUTE, cause: "stopped" },
      ],
    });
    await shadow.observe({ id: "t" });
    expect((await shadow.report({ id: "t", since: START + 45 * MINUTE })).observed).toBe(1);
    await expect(shadow.observe({ id: "t", times: [{ nominal: kit.now + 1 }] })).rejects.toMatchObject({
      field: "times",
    });
  });
});

describe("a comparison", () => {
  const about: About = { tolerance: MINUTE, offsetAt: () => HOUR, differsByDialect: () => false };
  const would = (...times: number[]): Decided[] => times.map((time) => ({ time, reason: "shadow" }));
  const fired = (...times: number[]) => times.map((nominal) => ({ nominal, at: nominal }));
  const days = (shift = 0) => [0, 1, 2].map((day) => day * DAY + 9 * HOUR + shift);

  it("takes close times as the same, but not neighbours of a short interval", () => {
    expect(compareTimes(would(...days()), fired(...days(59_000)), about)).toEqual({
      same: 3,
      differences: [],
    });
    const seconds = [0, 1_000, 2_000];
    const { same, differences } = compareTimes(would(...seconds), fired(1_000, 2_000), about);
    expect({ same, differences }).toEqual({ same: 2, differences: [{ ours: 0, cause: "unknown" }] });
  });

  it.each([
    ["another zone", days(HOUR), Array(3).fill("time-zone")],
    ["another zone, half an hour off", days(-5.5 * HOUR), Array(3).fill("time-zone")],
    ["a clock change", [...days().slice(0, 2), 2 * DAY + 10 * HOUR], ["dst"]],
    ["late starts of marked times", days(7 * MINUTE), Array(3).fill("held-up")],
  ])("names the cause of shifted times: %s", (_, theirs, causes) => {
    const { differences } = compareTimes(would(...days()), fired(...theirs), about);
    expect(differences.map(({ cause }) => cause)).toEqual(causes);
    for (const { ours, theirs } of differences) expect([ours, theirs]).not.toContain(undefined);
  });

  it("names the cause of times that one side has", () => {
    const [one, two, three, four] = [0, 1, 2, 3].map((hour) => hour * 10 * MINUTE) as [
      number,
      number,
      number,
      number,
    ];
    const late = [{ nominal: one, at: two + 1 }, ...fired(three)];
    expect(compareTimes(would(one, two, three, four), late, about).differences).toEqual([
      { ours: two, cause: "held-up" },
      { ours: four, cause: "stopped" },
    ]);
    const skipped = [...would(one), { time: two, reason: "frozen" }, ...would(three)];
    expect(compareTimes(skipped, fired(one, two, three), about).differences).toEqual([
      { theirs: two, cause: "skipped", reason: "frozen" },
    ]);
    const dialect = { ...about, differsByDialect: (time: number) => time === two };
    expect(compareTimes(would(one, three), fired(one, two, three), dialect).differences).toEqual([
      { theirs: two, cause: "dialect" },
    ]);
    expect(compareTimes(would(one, two, three), fired(one, three), dialect).differences).toEqual([
      { ours: two, cause: "dialect" },
    ]);
  });
});
