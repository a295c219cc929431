import type { AnswerTo } from "@carillon/ops";
import type { Trigger } from "@carillon/sdk";
import type { ItemState } from "@carillon/sdk/internal";
import { counted } from "./words-count.js";

type TickKind = "succeeded" | "failed" | "skipped" | "other" | "open" | "held" | "planned";

/** Texts of the pages of a task and of runs. */
export const taskWords = {
  triggers: {
    schedule: "schedule",
    "catch-up": "catch-up",
    retry: "retry",
    manual: "manual",
    backfill: "backfill",
    self: "by itself",
    items: "failed items",
  } satisfies Record<Trigger, string>,
  ticks: {
    noneChosen: "none chosen",
    summary: (counts: Record<TickKind, number>) => {
      const given = Object.entries(counts).filter(([, n]) => n > 0);
      return given.length === 0
        ? "No ticks"
        : `Ticks: ${given.map(([kind, n]) => `${n} ${kind}`).join(", ")}`;
    },
  },
  explain: {
    title: "Why?",
    verdicts: {
      enqueued: "enqueued",
      skipped: "skipped",
      waiting: "waiting",
      due: "due",
      planned: "planned",
      held: "held",
      "no-occurrence": "no occurrence",
      "before-task": "before the task",
      expired: "no longer known",
    } satisfies Record<AnswerTo<"occurrences.explain">["verdict"], string>,
  },
  task: {
    applied: (by?: string) => (by === undefined ? "applied" : `applied by ${by}`),
    moves: {
      earlier: { sign: "←", text: "Earlier" },
      later: { sign: "→", text: "Later" },
      closer: { sign: "+", text: "Closer" },
      wider: { sign: "−", text: "Wider" },
    },
    trigger: "Run now",
    pause: "Pause",
    resume: "Resume",
    delete: "Delete",
    resumed: "The task is resumed.",
    waitsForRun: "It starts when the run in its way is over.",
    pauseTitle: (name: string) => `Pause ${name}`,
    overlap: "If a run is still going on",
    overlapHint: "Replaces the task's own policy this time.",
    overlaps: {
      "": "as the task says",
      skip: "skip it",
      "queue-one": "wait, at most one",
      "queue-all": "wait, all in order",
      "cancel-running": "cancel the running one",
      allow: "run both",
    },
    note: "Note",
    missed: "Times that passed while paused",
    missedRules: { skip: "drop them", "catch-up": "let the catch-up policy decide" },
    until: "to",
    updated: "changed",
    revision: (n: number) => `Revision ${n}`,
  },
  run: {
    title: (task: string) => `Run of ${task}`,
    attempts: "Attempts",
    attempt: (n: number) => `Attempt ${n}`,
    worker: "Worker",
    cancel: "Cancel",
    replay: "Run again",
    output: "Output",
    payload: "Its own payload, not the task's",
    result: "Result",
    ofItem: { data: "Data", result: "Result" },
    itemStates: {
      waiting: "waiting",
      active: "active",
      completed: "completed",
      failed: "failed",
      cancelled: "cancelled",
    } satisfies Record<ItemState, string>,
  },
  compare: {
    columns: ["", "Good run", "This run"],
    fields: {
      outcome: "Outcome",
      error: "Error",
      took: "Took",
      attempts: "Attempts",
      late: "Late by",
      waited: "Waited for a worker",
      trigger: "Trigger",
      payload: "Payload",
      host: "Host",
      worker: "Worker",
      node: "Node",
    },
    number: (n: number) => `number ${n}`,
  },
  replay: {
    all: "Run all failed of this range again",
    some: (n: number) => `Run ${counted(n, "run", "runs")} again`,
  },
  runs_: {
    title: "Runs",
    running: "Running",
    runningOf: "Running, of this filter",
    cancel: (n: number) => (n === 1 ? "Cancel this run" : `Cancel these ${n.toLocaleString("en")} runs`),
    cancelThem: "Cancel them",
    cancelText: "Each run is asked to end. One that has ended meanwhile is left out. This cannot be undone.",
    cut: (most: number) => `These are the ${most} that run longest: there may be more.`,
    chips: {
      ...{ all: "All", failed: "Failed", succeeded: "Succeeded", others: "Cancelled, dropped" },
      ...{ backfills: "Backfills", trends: "Trends" },
    },
    ranges: { day: "24 hours", night: "Last night", yesterday: "Yesterday", week: "7 days" },
    range: {
      from: (zone: string) => `Ended from (${zone})`,
      to: (zone: string) => `Ended until (${zone})`,
    },
    fields: {
      task: "Task id",
      owner: "Owner",
      queue: "Queue",
      text: "Name, type, error",
      took: "Took at least, 30s",
    },
  },
};
