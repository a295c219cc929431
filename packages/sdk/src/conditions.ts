/**
 * The conditions that select tasks, without anything that needs Redis: for Carillon's own programs. Not part of the public API.
 *
 * @packageDocumentation
 */
import type { ListOptions } from "./client/types.js";

/** A condition that selects tasks. */
interface Condition {
  /** The values that it takes. */
  readonly kind: "name" | "text" | "flag" | "state" | "outcomes";
  /** Words for an option of this name: "with this tag". */
  readonly help: string;
  /** It belongs to the name of a task, so that it may complete one that is given. Default false. */
  readonly ofName?: true;
  /** Bulk calls accept it only with another condition: alone it would select nearly a whole namespace. Default false. */
  readonly needsOther?: true;
}

/**
 * The conditions that select tasks. The fields of a filter, the query parameters and bodies of the HTTP API, and the options of
 * the command line follow from this list.
 */
export const CONDITIONS = {
  queue: { kind: "name", help: "of this queue", ofName: true },
  owner: { kind: "name", help: "of this owner", ofName: true },
  tag: { kind: "name", help: "with this tag" },
  set: { kind: "name", help: "of this set" },
  state: { kind: "state", help: "in this state", needsOther: true },
  outcome: { kind: "outcomes", help: "whose last run had this outcome" },
  failing: { kind: "flag", help: "whose last run is a failure: failed, timed-out, crashed or lost" },
  overdue: { kind: "flag", help: "with an occurrence that is due and that no node has claimed" },
  neverRan: { kind: "flag", help: "of which no run has ended" },
  search: { kind: "text", help: "whose owner/id or type contains this, in any case of letters" },
  deliveries: {
    kind: "flag",
    help: "also deliveries of alerts, the tasks of the queue carillon-alerts",
    needsOther: true,
  },
} as const satisfies Record<Exclude<keyof ListOptions, "sort" | "limit" | "cursor">, Condition>;

export type ConditionName = keyof typeof CONDITIONS;
export type ConditionKind = Condition["kind"];
export type Conditions = Pick<ListOptions, ConditionName>;

export const CONDITION_NAMES = Object.keys(CONDITIONS) as readonly ConditionName[];

export function conditionsOfKind(kind: ConditionKind): readonly ConditionName[] {
  return CONDITION_NAMES.filter((name) => CONDITIONS[name].kind === kind);
}

/** The fields of an object that are conditions, without those that are undefined. */
export function conditionsIn(given: Conditions): Conditions {
  const entries = CONDITION_NAMES.map((name) => [name, given[name]] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** A condition that cannot stand next to the name of a task. */
export function conditionBesideName(given: Conditions): ConditionName | undefined {
  return CONDITION_NAMES.find((name) => given[name] !== undefined && !("ofName" in CONDITIONS[name]));
}
