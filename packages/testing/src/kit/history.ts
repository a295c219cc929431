import { compileSchedule, type Run, seedOf, type TaskName, type TaskRef } from "@carillon/core";
import { localName, parseRef } from "@carillon/core/internal";
import type { Skip, Store, StoredTask } from "@carillon/store";
import { timeText } from "./moment.js";

/** Number of runs in one page. */
const PAGE = 1_000;
/** Number of skips of a task that the store keeps. */
const SKIPS_KEPT = 50;
/** Number of rows that a failure shows at each end. */
const ROWS_AT_EACH_END = 20;

/** History of a task from its records. Times in UTC ms. */
export interface History {
  readonly task: TaskName;
  readonly stored: StoredTask | undefined;
  /** In the order in which they were enqueued. */
  readonly runs: readonly Run[];
  /** In the order in which they were decided. */
  readonly skips: readonly CountedSkip[];
  /** Whether older skips may be missing because the list of skips is full. */
  readonly cut: boolean;
}

/** Occurrences that were skipped: one, or several consecutive ones for the same reason. */
export interface CountedSkip extends Skip {
  readonly occurrences: number;
}

/** @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
export async function historyOf(store: Store, ref: TaskRef): Promise<History> {
  const task = await store.tasks.locate(parseRef(ref));
  const [stored, skips, runs] = await Promise.all([
    store.tasks.get(task),
    store.runs.ledger(task),
    allRuns(store, task),
  ]);
  return {
    task,
    stored,
    runs: runs.sort((a, b) => a.enqueued - b.enqueued || a.nominal - b.nominal || (a.id < b.id ? -1 : 1)),
    skips: skips.map((entry) => ({ ...entry, occurrences: countOf(entry, stored) })).reverse(),
    cut: skips.length >= SKIPS_KEPT,
  };
}

async function allRuns(store: Store, task: TaskName): Promise<Run[]> {
  const runs: Run[] = [];
  for (;;) {
    const page = await store.runs.list(task, PAGE, runs.length);
    runs.push(...page);
    if (page.length < PAGE) return runs;
  }
}

/** Number of skipped times of an entry: it may hold consecutive decisions, and one decision may skip many times. */
function countOf({ from, to, decisions }: Skip, stored: StoredTask | undefined): number {
  if (from === to || !stored) return decisions;
  try {
    const schedule = compileSchedule(stored.definition.schedule, seedOf(stored.definition));
    let count = 0;
    for (let time: number | undefined = from; time !== undefined && time <= to; time = schedule.next(time))
      count++;
    return Math.max(count, decisions);
  } catch {
    return decisions; // its calendar is not known here
  }
}

/** The history as a table: a failed assertion ends with it. */
export function tableOf({ task, runs, skips, cut }: History): string {
  const rows = [
    ...runs.map((run) => ({ at: run.enqueued, cells: runRow(run) })),
    ...skips.map((skip) => ({ at: skip.at, cells: skipRow(skip) })),
  ].sort((a, b) => a.at - b.at);
  const title = `${localName(task)} in queue ${task.queue}`;
  if (rows.length === 0) return `${title}: nothing happened.`;
  const lines = columns([["time", "decision", "reason", "run"], ...rows.map(({ cells }) => cells)]);
  const [head = "", ...body] = lines;
  const left = body.length - 2 * ROWS_AT_EACH_END;
  const shown =
    left <= 0
      ? body
      : [...body.slice(0, ROWS_AT_EACH_END), `… ${left} more …`, ...body.slice(-ROWS_AT_EACH_END)];
  return [`${title}:`, "", head, ...(cut ? ["(older skips are no longer kept)"] : []), ...shown].join("\n");
}

function runRow(run: Run): string[] {
  const { enqueued, started, finished, nominal } = run;
  const parts = [
    run.state === "final" ? (run.outcome ?? "") : run.state,
    started === undefined ? "" : `from ${shortly(started, enqueued)}`,
    finished === undefined ? "" : `to ${shortly(finished, enqueued)}`,
    run.attempts > 1 ? `in ${run.attempts} attempts` : "",
    run.error === undefined ? "" : `(${(run.error.split("\n")[0] as string).slice(0, 80)})`,
  ];
  const why = nominal === enqueued ? run.trigger : `${run.trigger} of ${shortly(nominal, enqueued)}`;
  return [timeText(enqueued), "enqueued", why, parts.filter(Boolean).join(" ")];
}

function skipRow({ at, reason, from, to, occurrences }: CountedSkip): string[] {
  const range =
    from === to ? shortly(from, at) : `${shortly(from, at)} to ${shortly(to, at)}, ${occurrences} times`;
  return [timeText(at), "skipped", from === at && to === at ? reason : `${reason} of ${range}`, ""];
}

/** The time as text, without the date if that is the same. */
function shortly(time: number, beside: number): string {
  const text = timeText(time);
  return text.slice(0, 11) === timeText(beside).slice(0, 11) ? text.slice(11) : text;
}

function columns(rows: readonly string[][]): string[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
