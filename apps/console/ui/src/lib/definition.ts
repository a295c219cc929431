import type { Task, TaskInput } from "@carillon/sdk";

/** Fields of an answer that a put refuses. A new computed field does not compile until it is listed here. */
const COMPUTED: Record<Exclude<keyof Task, keyof TaskInput>, true> = {
  humanized: true,
  state: true,
  nextExecution: true,
  cursor: true,
  nominal: true,
  due: true,
  pending: true,
  generation: true,
  fired: true,
  revision: true,
  paused: true,
  moving: true,
  lastStatus: true,
  lastChecked: true,
  openRuns: true,
  displayState: true,
  created: true,
  updated: true,
  createdBy: true,
  updatedBy: true,
  set: true,
};

/** A definition that is being edited; the server checks it. */
export type Draft = Record<string, unknown>;

/** A task as a put takes it. */
export function definitionOf(task: Task): Draft {
  return Object.fromEntries(Object.entries(task).filter(([field]) => !Object.hasOwn(COMPUTED, field)));
}
