import type { AnswerTo } from "@carillon/ops";
import type { Outcome, Run, Task, Trigger } from "@carillon/sdk";

/** Names on the pages that several parts use. All other texts stand where they are shown. */

type Value = Outcome | Run["state"] | Trigger | AnswerTo<"occurrences.explain">["verdict"];

/** Values that the pages do not call by their own name. */
const NAMES: Partial<Record<Value, string>> = {
  partial: "partly done",
  terminating: "ending",
  "catch-up": "catch-up",
  self: "by itself",
  items: "failed items",
  "before-task": "before the task",
  expired: "no longer known",
};

/** A value of the API as the pages show it: `timed-out` is `timed out`. */
export function nameOf(value: string): string {
  return NAMES[value as Value] ?? value.replaceAll("-", " ");
}

/** A field or a choice as a label: `Scope`. */
export function labelOf(name: string): string {
  return `${name[0]?.toUpperCase()}${name.slice(1)}`;
}

export const OVERLAPS: Readonly<Record<Task["overlap"], string>> = {
  skip: "skip it",
  "queue-one": "wait, at most one",
  "queue-all": "wait, all in order",
  "cancel-running": "cancel the running one",
  allow: "run both",
};

export const CATCH_UPS: Readonly<Record<Task["catchUp"], string>> = {
  one: "run once",
  all: "run each",
  skip: "drop them",
};

/** The control of `missed` where tasks are resumed. */
export const MISSED = {
  first: "skip",
  label: "Times that passed while paused",
  choices: { skip: "drop them", "catch-up": "let the catch-up policy decide" },
} as const;
