import type { Duration, Schedule, TaskName } from "@carillon/core";
import {
  assertName,
  canonicalSchedule,
  conflict,
  delayOf,
  durationOption,
  invalid,
  seedOf,
  usesSeed,
} from "@carillon/core/internal";
import { type Definition, roundedInstant, type Scope, TaskWriter } from "@carillon/sdk/internal";
import type { Timing } from "@carillon/store";
import { z } from "zod";
import { bulkUndoable, keyOf, undoableResult } from "../bulk/bulk.js";
import { conditions } from "../conditions.js";
import { emptyLoad } from "../occurrences/load.js";
import { exampleTask, operation } from "../operation.js";
import { count, dryRun, duration, instant, time } from "../shapes.js";

const MINUTE = 60_000;
/** Most tasks of one call: the change names each, so that it can be undone. */
const MOST = 1_000;
/** Steps of the curve, about. */
const STEPS = 40;

export const spreadTasks = operation({
  http: "POST /tasks/spread",
  role: "admin",
  reach: "owner",
  cost: "computes",
  logs: "put",
  once: { known: "state", leaves: "whole", against: [["tasks.put", { task: exampleTask("u1") }]] },
  example: { at: "2026-01-01T03:00:00Z", jitter: "5m" },
  summary:
    "Gives a jitter to all tasks that have none, start in this minute and not again within twice the jitter; the load shows such minutes. One change, which an undo takes back.",
  input: z.strictObject({
    at: instant.describe("The start of the minute."),
    jitter: duration.describe("Each start is delayed by up to this time."),
    queue: conditions.queue,
    owner: conditions.owner,
    tag: conditions.tag,
    dryRun: dryRun.describe("Change nothing, show how many tasks and which, and the load."),
  }),
  output: undoableResult.extend({
    curve: z
      .object({
        from: time,
        step: count.describe("In ms."),
        before: z.array(count).describe("Starts of all tasks that match in each step."),
        after: z.array(count),
      })
      .describe("The planned load, as it was and with the jitter."),
  }),
  async run(call, { at: given, jitter: length, dryRun, ...input }) {
    const { scope, by } = call;
    const { queue, owner, tag } = scope.bind(input);
    for (const [field, value] of Object.entries({ queue, owner, tag }))
      if (value !== undefined) assertName(value, field);
    const at = roundedInstant(given, "at");
    const ms = durationOption(length as Duration, "jitter", 1_000, 24 * 60 * MINUTE);
    if (ms === undefined) throw invalid("jitter", "missing.", "Give a duration: 5m.");
    const jitter = length as Duration;
    const { tasks, schedules, curve } = await planned(scope, { at, ms, jitter, queue, owner, tag });
    const writer = new TaskWriter(scope, undefined, Number.MAX_SAFE_INTEGER);
    const jittered = (planned: string | undefined) => (task: Definition) => {
      const { schedule } = task;
      // Somebody has given it one since it was planned.
      if (schedule.jitter !== undefined) return task;
      if (canonicalSchedule(schedule, "") !== planned)
        throw conflict(
          "its schedule was changed meanwhile.",
          "Spread the minute again if it still starts in it.",
        );
      return { ...task, schedule: { ...schedule, jitter } as typeof schedule };
    };
    const done = await bulkUndoable(call, { queue, owner, tag }, tasks, {
      dryRun,
      act: async (name, change) =>
        (await writer.edit(name, jittered(schedules.get(keyOf(name))), { by, many: true, change }))
          .outcome === "updated",
      details: { at, jitter: String(length) },
    });
    return { ...done, curve };
  },
});

interface Asked {
  readonly at: number;
  readonly ms: number;
  readonly jitter: Duration;
  readonly queue: string | undefined;
  readonly owner: string | undefined;
  readonly tag: string | undefined;
}

/** The tasks that start in the minute, and the load around it, before and after. */
async function planned(scope: Scope, { at, ms, jitter, queue, owner, tag }: Asked) {
  const { store } = scope;
  await store.calendars.refresh();
  const freezes = await store.freezes.list();
  const length = Math.max(ms, MINUTE);
  const step = Math.max(1_000, Math.ceil((1.5 * length) / STEPS / 1_000) * 1_000);
  const range = { from: Math.floor((at - length / 4) / step) * step, to: at + 1.25 * length, step };
  const [before, after] = [emptyLoad(store, freezes, range), emptyLoad(store, freezes, range)];
  const isMet = meeting(scope, at, ms);
  const spread = new Map<string, Schedule>();
  const later = (one: Timing, queue: string): Timing => {
    if (!isMet(one)) return one;
    const name = { queue, owner: one.owner, id: one.id };
    tasks.push(name);
    schedules.set(keyOf(name), canonicalSchedule(one.schedule, ""));
    const schedule = spread.get(one.scheduleJson) ?? ({ ...one.schedule, jitter } as Schedule);
    spread.set(one.scheduleJson, schedule);
    return { ...one, schedule, scheduleJson: canonicalSchedule(schedule, "") };
  };
  const tasks: TaskName[] = [];
  const schedules = new Map<string, string>();
  const known = new Map<string, Schedule>();
  for (const name of await scope.queuesOf(queue))
    for await (const timings of store.tasks.timings({ queue: name, owner, tag }, known)) {
      before.add(name, timings);
      after.add(
        name,
        timings.map((one) => later(one, name)),
      );
      scope.progress(timings.length);
    }
  if (tasks.length > MOST)
    throw invalid("at", `more than ${MOST} tasks start in this minute.`, "Give a queue, an owner or a tag.");
  const counts = { before: await before.counts(), after: await after.counts() };
  return { tasks, schedules, curve: { from: range.from, step, ...counts } };
}

/** Whether a task has a time in the minute, no jitter, and room for one before its next time. Plain schedules are computed once. */
function meeting({ store }: Scope, at: number, jitter: number): (timing: Timing) => boolean {
  const known = new Map<Schedule, boolean>();
  return ({ schedule, scheduleJson, owner, id }) => {
    if (schedule.jitter !== undefined || "at" in schedule || delayOf(schedule) !== undefined) return false;
    const before = known.get(schedule);
    if (before !== undefined) return before;
    const compiled = store.calendars.schedules.compiled(schedule, seedOf({ owner, id }), scheduleJson);
    const next = compiled.next(at - 1);
    const gap = next === undefined ? 0 : (compiled.next(next) ?? Number.POSITIVE_INFINITY) - next;
    const is = next !== undefined && next < at + MINUTE && gap >= 2 * jitter;
    if (!usesSeed(schedule)) known.set(schedule, is);
    return is;
  };
}
