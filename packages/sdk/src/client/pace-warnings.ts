import { formatDuration, parseDuration, type Schedule, type TaskDefinition } from "@carillon/core";
import { compileLenient, neverReruns, seedOf, TaskSchedule } from "@carillon/core/internal";
import type { Warning } from "./types.js";

/** Warns of policies that do not fit the pace of the schedule. */
export function paceWarnings(task: TaskDefinition): Warning[] {
  const { rerun, alertIf, schedule } = task;
  const deadline = alertIf?.noSuccessFor;
  if (rerun === undefined && deadline === undefined) return [];
  const compiled = new TaskSchedule(task, compileLenient(schedule, seedOf(task)));
  const warnings: Warning[] = [];
  if (rerun !== undefined && neverReruns(rerun, compiled)) {
    warnings.push({
      code: "NEVER_RERUNS",
      message: "rerun.delay: the next occurrence always comes before the retry, and takes its place.",
      remedy: "Give a delay that is shorter than the schedule's interval.",
    });
  }
  const pause = deadline === undefined ? undefined : pauseOf(schedule, compiled, parseDuration(deadline));
  if (pause !== undefined) {
    const [from, length] = [new Date(pause.from).toISOString(), formatDuration(pause.length)];
    warnings.push({
      code: "DEADLINE_IN_PAUSE",
      message: `alertIf.noSuccessFor: the schedule itself pauses for ${length} from ${from}, and an alert follows after ${deadline}.`,
      remedy: `Give more than ${length}, or notStartedFor, which counts only from a time at which a run was due.`,
    });
  }
  return warnings;
}

interface Pause {
  readonly from: number;
  readonly length: number;
}

const YEAR = 366 * 86_400_000;
/** Two lead on by at least `noSuccessFor`: a year of 18 h, or a month of 90 min. */
const STEPS = 1_000;
/** By schedule and `noSuccessFor`; equal schedules are one object. */
const pauses = new WeakMap<Schedule, Map<number, Pause | undefined>>();

/** The longest of a schedule's pauses within a year that are longer than this, in ms. Undefined: none is. */
function pauseOf(schedule: Schedule, compiled: TaskSchedule, than: number): Pause | undefined {
  const known = pauses.get(schedule) ?? new Map<number, Pause | undefined>();
  pauses.set(schedule, known);
  if (known.has(than)) return known.get(than);
  const now = Date.now();
  let longest: Pause | undefined;
  let at = compiled.next(now);
  for (let step = 0; step < STEPS && at !== undefined && at < now + YEAR; step++) {
    const last: number = compiled.latest(at + than) ?? at;
    const next: number | undefined = last > at ? last : compiled.next(at);
    if (last === at && next !== undefined && next - at > (longest?.length ?? 0))
      longest = { from: at, length: next - at };
    at = next;
  }
  known.set(than, longest);
  return longest;
}
