import { compileSchedule, type JobData, type Schedule, seedOf } from "@carillon/core";
import { ASKED_FOR, parseLocalName } from "@carillon/core/internal";

/** Violations of the promise in a set of jobs; empty lists if it was kept. */
export interface Violations {
  /** Occurrences that were enqueued more than once: `owner/task@nominal`. */
  duplicates: string[];
  /** Nominal times between the first and the last of a task that no job has. */
  gaps: string[];
  /** Jobs that were enqueued before their due time. */
  early: string[];
}

/**
 * Checks jobs of tasks whose policies enqueue everything (`overlap: allow`, `catchUp: all`): each nominal time between
 * a task's first and last exactly once. Works from the jobs alone.
 */
export function checkOccurrences(
  jobs: Iterable<{ data: JobData }>,
  scheduleOf: (task: string) => Schedule,
): Violations {
  const byTask = new Map<string, Map<number, number>>();
  const early: string[] = [];
  for (const { data } of jobs) {
    const { owner, task, nominal, due, enqueued, trigger } = data.occurrence;
    const name = `${owner}/${task}`;
    if (enqueued < due) early.push(`${name}@${nominal}`);
    if (ASKED_FOR.has(trigger)) continue;
    const seen = byTask.get(name) ?? new Map<number, number>();
    seen.set(nominal, (seen.get(nominal) ?? 0) + 1);
    byTask.set(name, seen);
  }
  const duplicates: string[] = [];
  const gaps: string[] = [];
  for (const [name, seen] of byTask) {
    for (const [nominal, times] of seen) if (times > 1) duplicates.push(`${name}@${nominal}`);
    const task = parseLocalName(name);
    const schedule = compileSchedule(scheduleOf(task.id), seedOf(task));
    const last = Math.max(...seen.keys());
    let expected: number | undefined = Math.min(...seen.keys());
    while (expected !== undefined && expected <= last) {
      if (!seen.has(expected)) gaps.push(`${name}@${expected}`);
      expected = schedule.next(expected);
    }
  }
  return { duplicates, gaps, early };
}
