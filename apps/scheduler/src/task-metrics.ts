import type { Store } from "@carillon/scheduler/internal";
import { Client } from "@carillon/sdk";
import { listStats, scopeOf, type TaskStatsRow } from "@carillon/sdk/internal";
import type { Registry } from "prom-client";
import { scraped, shared, withinASecond } from "./scrape.js";

/** Most tasks with series of their own: each has up to four. */
const MOST_TASKS = 200;

/** Metrics of each task with a tag, up to a limit in order of queue, owner and id. Omitted if Redis does not answer. */
export function taskMetrics(store: Store, tag: string, registers: Registry[]): void {
  const scope = scopeOf(new Client({ store }));
  const metric = scraped(
    registers,
    shared(async () => {
      if (!store.ready) return undefined;
      return withinASecond(() => listStats(scope, { tag, limit: MOST_TASKS + 1 }));
    }),
  );
  function ofTasks(
    name: string,
    help: string,
    values: (row: TaskStatsRow) => readonly [value: number | undefined, more?: { outcome: string }],
    labels: string[] = [],
  ): void {
    metric("gauge", `carillon_task_${name}`, help, ["queue", "owner", "task", ...labels], (page) =>
      (page?.tasks ?? []).slice(0, MOST_TASKS).flatMap((row) => {
        const { queue, owner, id } = row.task;
        const [value, more] = values(row);
        return value === undefined ? [] : [[{ queue, owner, task: id, ...more }, value] as const];
      }),
    );
  }
  ofTasks(
    "last_outcome",
    "1, with the outcome of the last run that did something.",
    ({ lastOutcome }) => (lastOutcome === undefined ? [undefined] : [1, { outcome: lastOutcome }]),
    ["outcome"],
  );
  ofTasks(
    "last_success_timestamp_seconds",
    "When a run last succeeded, in Redis time.",
    ({ lastSuccess }) => [lastSuccess === undefined ? undefined : lastSuccess / 1000],
  );
  ofTasks("last_duration_seconds", "Time from start to end of the last run that did something.", (row) => [
    row.lastMs === undefined ? undefined : row.lastMs / 1000,
  ]);
  ofTasks("consecutive_failures", "Runs that failed since the last one that succeeded.", (row) => [
    row.consecutiveFailures,
  ]);
  metric(
    "gauge",
    "carillon_task_metrics_truncated",
    `1 if more than ${MOST_TASKS} tasks have the tag: the others have no series.`,
    [],
    (page) => (page ? [[{}, page.tasks.length > MOST_TASKS ? 1 : 0]] : []),
  );
}
