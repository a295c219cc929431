import { duration, relative, SUCCESSES } from "@carillon/ops/words";
import type { Run, RunningRun } from "@carillon/sdk";
import type { Column } from "../table.js";
import { cut, type Paint } from "../text.js";

/** Ends that count as a success. */
export const GOOD: readonly string[] = [...SUCCESSES];

/** The last outcome and its time. @param checked end of a later run that had nothing to do, UTC ms */
export function lastText(
  outcome: string | undefined,
  finished: number | undefined,
  checked: number | undefined,
): string {
  const ago = (at: number | undefined) => (at === undefined ? "" : ` ${relative(at, Date.now())}`);
  if (outcome !== undefined) return `${outcome}${ago(finished)}${checked ? `, checked${ago(checked)}` : ""}`;
  return checked === undefined ? "-" : `nothing-to-do${ago(checked)}`;
}

function isGood({ outcome }: Run): boolean {
  return outcome !== undefined && GOOD.includes(outcome);
}

function outcomeColour(run: Run): Parameters<Paint>[0] {
  if (run.outcome === undefined) return "yellow";
  return isGood(run) ? "green" : "red";
}

function firstLine(text: string): string {
  return cut(text.split("\n")[0] ?? "", 60);
}

export function took({ started, finished }: Run): string {
  return started === undefined || finished === undefined ? "-" : duration(finished - started);
}

const STATE: Column<Run> = {
  title: "STATE",
  value: (run) => run.outcome ?? run.state,
  colour: outcomeColour,
};
const ms = (value: number | undefined) => (value === undefined ? "-" : duration(value, 1));

/** Time from due to enqueued, and from enqueued to the start. */
const LATE: Column<Run> = { title: "LATE", right: true, value: ({ lateMs }) => ms(lateMs), rank: 3 };
const WAIT: Column<Run> = { title: "WAIT", right: true, value: ({ waitMs }) => ms(waitMs), rank: 3 };
const TOOK: Column<Run> = { title: "TOOK", right: true, value: took, rank: 2 };
const TRIES: Column<Run> = { title: "TRIES", right: true, value: "attempts", rank: 6 };
const WORKER: Column<Run> = { title: "WORKER", value: "worker", rank: 7 };
// First line of the error, without the stack. A run that succeeded may have an error too, of an earlier attempt.
const ERROR: Column<Run> = {
  title: "ERROR",
  value: (run) => (isGood(run) ? "" : firstLine(run.error ?? "")),
  rank: 1,
  least: 16,
};

/** A run that takes this many times its usual duration stands out. */
const LONG = 2;

export const RUN_COLUMNS: readonly Column<Run>[] = [
  { title: "RUN", value: "id" },
  { title: "NOMINAL", value: (run, { at }) => at(run.nominal) },
  { title: "TRIGGER", value: "trigger", rank: 5 },
  STATE,
  { title: "ENQUEUED", value: (run, { when }) => when(run.enqueued), rank: 4 },
  LATE,
  WAIT,
  TOOK,
  TRIES,
  WORKER,
  ERROR,
];

export const RUNNING_COLUMNS: readonly Column<RunningRun>[] = [
  {
    title: "FOR",
    right: true,
    value: ({ runningMs }) => duration(runningMs),
    colour: ({ runningMs, usualMs }) =>
      usualMs !== undefined && runningMs > LONG * usualMs ? "yellow" : undefined,
  },
  { title: "USUAL", right: true, value: ({ usualMs }) => ms(usualMs) },
  { title: "STARTED", value: (run, { when }) => when(run.started), rank: 2 },
  { title: "QUEUE", value: (run) => run.task.queue, rank: 4, least: 8 },
  { title: "TASK", value: (run) => `${run.task.owner}/${run.task.id}` },
  { title: "TYPE", value: "type", rank: 5, least: 8 },
  // A run that waits for its items has the state `queued` in its record.
  { title: "STATE", value: ({ state }) => (state === "queued" ? "items" : state), colour: outcomeColour },
  TRIES,
  WORKER,
  { title: "HOST", value: "host", rank: 3 },
  { title: "RUN", value: "id" },
];

/** Columns for the runs of many tasks, by end time. */
export const JOURNAL_COLUMNS: readonly Column<Run>[] = [
  { title: "FINISHED", value: (run, { when }) => when(run.finished) },
  { title: "QUEUE", value: (run) => run.task.queue, rank: 4, least: 8 },
  { title: "TASK", value: (run) => `${run.task.owner}/${run.task.id}` },
  { title: "OUTCOME", value: STATE.value, colour: outcomeColour },
  LATE,
  WAIT,
  TOOK,
  TRIES,
  { title: "NODE", value: "node", rank: 8 },
  WORKER,
  { title: "RUN", value: "id" },
  ERROR,
];
