import type { Task, TaskInput } from "@carillon/sdk";
import { same } from "./values.js";

/** Fields of an answer that a put refuses. A new computed field does not compile until it is listed here. */
const COMPUTED: Record<Exclude<keyof Task, keyof TaskInput>, true> = {
  humanized: true,
  state: true,
  timezone: true,
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
  display: true,
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

/**
 * Two changes of one definition, joined field by field.
 *
 * @returns `theirs`: fields that are taken from theirs; `both`: those that the two set to different values, as in mine
 */
export function joined(
  base: Draft,
  theirs: Draft,
  mine: Draft,
): { draft: Draft; theirs: string[]; both: string[] } {
  const differ = (one: Draft, other: Draft) => (field: string) => !same(one[field], other[field]);
  const changed = Object.keys({ ...base, ...theirs }).filter(differ(base, theirs));
  const isMine = differ(base, mine);
  const taken = changed.filter((field) => !isMine(field));
  return {
    draft: { ...mine, ...pick(theirs, taken) },
    theirs: taken,
    both: changed.filter(isMine).filter(differ(theirs, mine)),
  };
}

/** Some fields; those that it does not have are undefined. */
export function pick(draft: Draft, fields: readonly string[]): Draft {
  return Object.fromEntries(fields.map((field) => [field, draft[field]]));
}
