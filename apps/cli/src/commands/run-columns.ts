import type { Run } from "@carillon/sdk";
import { type Column, cut, type Paint } from "../text.js";
import { duration, localIso, when } from "../times.js";

/** Ends that count as a success. */
export const GOOD: readonly string[] = ["succeeded", "quota", "nothing-to-do"];

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
const TOOK: Column<Run> = { title: "TOOK", right: true, value: took };
const TRIES: Column<Run> = { title: "TRIES", right: true, value: (run) => String(run.attempts) };
const WORKER: Column<Run> = { title: "WORKER", value: (run) => run.worker ?? "-" };
// The first line: the rest is a stack. A run that succeeded may have an error too: that of an attempt before.
const ERROR: Column<Run> = {
  title: "ERROR",
  value: (run) => (isGood(run) ? "" : firstLine(run.error ?? "")),
};

/** Columns for the runs of one task. */
export const RUN_COLUMNS: readonly Column<Run>[] = [
  { title: "RUN", value: (run) => run.id },
  { title: "NOMINAL", value: (run) => localIso(run.nominal) },
  { title: "TRIGGER", value: (run) => run.trigger },
  STATE,
  { title: "ENQUEUED", value: (run) => when(run.enqueued) },
  TOOK,
  TRIES,
  WORKER,
  ERROR,
];

/** Columns for runs under way, of many tasks. */
export const RUNNING_COLUMNS: readonly Column<Run>[] = [
  { title: "STARTED", value: (run) => when(run.started) },
  { title: "QUEUE", value: (run) => run.task.queue },
  { title: "TASK", value: (run) => `${run.task.owner}/${run.task.id}` },
  { title: "TYPE", value: (run) => run.type },
  // One that waits for its items is queued, by its record.
  { title: "STATE", value: ({ state }) => (state === "queued" ? "items" : state), colour: outcomeColour },
  TRIES,
  WORKER,
  { title: "HOST", value: (run) => run.host ?? "-" },
  { title: "RUN", value: (run) => run.id },
];

/** Columns for the runs of many tasks, by end time. */
export const JOURNAL_COLUMNS: readonly Column<Run>[] = [
  { title: "FINISHED", value: (run) => when(run.finished) },
  { title: "QUEUE", value: (run) => run.task.queue },
  { title: "TASK", value: (run) => `${run.task.owner}/${run.task.id}` },
  { title: "OUTCOME", value: STATE.value, colour: outcomeColour },
  TOOK,
  TRIES,
  { title: "NODE", value: (run) => run.node },
  WORKER,
  { title: "RUN", value: (run) => run.id },
  ERROR,
];
