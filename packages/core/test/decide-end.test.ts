import { compileSchedule, type Schedule } from "@carillon/core";
import {
  decideEnd,
  type EndDecision,
  type EndingRun,
  type EndingTask,
  type Pending,
  TaskSchedule,
} from "@carillon/core/internal";
import { describe, expect, it } from "vitest";

const MINUTE = 60_000;
const m = (minutes: number) => minutes * MINUTE;

const taskSchedule = (schedule: Schedule) =>
  new TaskSchedule({ owner: "system", id: "t", schedule }, compileSchedule(schedule, "t"));
const never = (): never => {
  throw new Error("the schedule was compiled");
};
const hourly = () => taskSchedule({ every: "1h" });
/** The run of minute 60 ends at minute 61; the next occurrence is due at minute 120. */
const NOW = m(61);
const task = (given: Partial<EndingTask> = {}): EndingTask => ({
  policies: {},
  schedule: never,
  due: m(120),
  pending: [],
  failures: 0,
  ...given,
});
const run = (given: Partial<EndingRun> = {}): EndingRun => ({
  id: "t@1z.abc",
  key: "q/system/t@3600000",
  nominal: m(60),
  due: m(60),
  trigger: "schedule",
  outcome: "failed",
  nextAt: undefined,
  ...given,
});
const rerun = { delay: "1m", backoff: "fixed", max: "10m", jitter: 0 } as const;
const retry: Pending = {
  key: "q/system/t@3600000",
  nominal: m(60),
  due: m(60),
  trigger: "retry",
  at: NOW + MINUTE,
};
const wish = (minutes: number, token = "abc"): Pending => ({
  key: `q/system/t@self-${m(minutes)}.${token}`,
  nominal: m(minutes),
  due: m(minutes),
  trigger: "self",
  at: m(minutes),
});
const waiting: Pending = { key: "w", nominal: m(50), due: m(50), trigger: "manual" };
const nothing: EndDecision = {
  pending: undefined,
  pause: undefined,
  superseded: undefined,
  replaced: undefined,
};
const paused = (failures: number) => ({ ...nothing, pause: `paused after ${failures} failures in a row` });

describe("the end of a run", () => {
  type Case = [
    what: string,
    task: Partial<EndingTask>,
    run: Partial<EndingRun>,
    decision: EndDecision | undefined,
  ];
  const table: Case[] = [
    ["a success asks nothing", { policies: { rerun } }, { outcome: "succeeded" }, undefined],
    ["a failure without policies asks nothing", {}, {}, undefined],
    [
      "a cancel is no failure",
      { policies: { rerun, pauseAfterFailures: 1 } },
      { outcome: "cancelled" },
      undefined,
    ],
    ["a failure is retried", { policies: { rerun } }, {}, { ...nothing, pending: [retry] }],
    [
      "a retry stands for the same missed times",
      { policies: { rerun } },
      { missed: { from: m(0), to: m(40) } },
      { ...nothing, pending: [{ ...retry, missed: { from: m(0), to: m(40) } }] },
    ],
    [
      "a retry was asked for by whoever asked for the run",
      { policies: { rerun } },
      { trigger: "backfill", by: "ann" },
      { ...nothing, pending: [{ ...retry, by: "ann" }] },
    ],
    [
      "a retry waits behind what waits already",
      { policies: { rerun }, pending: [waiting] },
      {},
      { ...nothing, pending: [waiting, retry] },
    ],
    [
      "a lost job is a failure",
      { policies: { rerun } },
      { outcome: "lost" },
      { ...nothing, pending: [retry] },
    ],
    [
      "the wait grows with the failures in a row",
      { policies: { rerun: { ...rerun, backoff: "linear" } }, failures: 2 },
      {},
      { ...nothing, pending: [{ ...retry, at: NOW + m(3) }] },
    ],
    ["a manual run is not retried", { policies: { rerun } }, { trigger: "manual" }, undefined],
    [
      "a retry does not pass the next occurrence",
      { policies: { rerun }, due: NOW + MINUTE, schedule: hourly },
      {},
      { ...nothing, superseded: { nominal: m(60), before: m(0) } },
    ],
    [
      "a retry that comes just before the next occurrence stays",
      { policies: { rerun }, due: NOW + MINUTE + 1 },
      {},
      { ...nothing, pending: [retry] },
    ],
    [
      "while a task is paused, no occurrence takes the retry's place",
      { policies: { rerun }, due: undefined },
      {},
      { ...nothing, pending: [retry] },
    ],
    [
      "without a cap of its own a wait is at most five intervals",
      {
        policies: { rerun: { ...rerun, max: undefined, delay: "1d" } },
        schedule: () => taskSchedule({ every: "1m" }),
        due: undefined,
      },
      {},
      { ...nothing, pending: [{ ...retry, at: NOW + m(5) }] },
    ],
    [
      "the interval of a fixed delay is that delay",
      {
        policies: { rerun: { ...rerun, max: undefined, delay: "1d" } },
        schedule: () => taskSchedule({ every: "2m", anchor: "finish" }),
        due: undefined,
      },
      {},
      { ...nothing, pending: [{ ...retry, at: NOW + m(10) }] },
    ],
    [
      "the limit of failures in a row pauses the task instead of a retry",
      { policies: { rerun, pauseAfterFailures: 3 }, failures: 2 },
      {},
      paused(3),
    ],
    [
      "a failure below the limit depends on the number of failures",
      { policies: { pauseAfterFailures: 3 }, failures: 1 },
      {},
      nothing,
    ],
    [
      "a manual run's failure counts, and does not pause",
      { policies: { pauseAfterFailures: 1 } },
      { trigger: "manual" },
      nothing,
    ],
    [
      "a handler asks for a time",
      { pending: [waiting] },
      { outcome: "succeeded", nextAt: m(90) },
      { ...nothing, pending: [waiting, wish(90)] },
    ],
    [
      "the later wish replaces the earlier one",
      { pending: [wish(80, "old"), waiting] },
      { outcome: "succeeded", nextAt: m(90) },
      { ...nothing, pending: [waiting, wish(90)], replaced: m(80) },
    ],
    [
      "a wish for the same time stays the one that was first",
      { pending: [wish(90, "old")] },
      { outcome: "succeeded", nextAt: m(90) },
      { ...nothing, pending: [wish(90, "old")] },
    ],
    [
      "a failure with a wish keeps both",
      { policies: { rerun } },
      { nextAt: m(90) },
      { ...nothing, pending: [wish(90), retry] },
    ],
    [
      "a pause keeps the wish",
      { policies: { pauseAfterFailures: 1 } },
      { nextAt: m(90) },
      { ...paused(1), pending: [wish(90)] },
    ],
  ];

  it.each(table)("%s", (_, ofTask, ofRun, decision) => {
    expect(decideEnd(task(ofTask), run(ofRun), NOW)).toEqual(decision);
  });
});
