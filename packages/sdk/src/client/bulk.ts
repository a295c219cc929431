import { CarillonError, isCarillonError, type TaskName, type TaskRef, type TaskState } from "@carillon/core";
import { assertOptions, quote } from "@carillon/core/internal";
import type { StoredTask } from "@carillon/store";
import { CONDITION_NAMES, CONDITIONS } from "../conditions.js";
import type { ChangeFacts, ChangeKind } from "./change.js";
import { assertRef, notFound } from "./input.js";
import type { Scope } from "./scope.js";
import { checkedConditions, storedFilter } from "./task-reader.js";
import type { ListOptions } from "./types.js";

/** Selects tasks as `client.list` does, or by name. At least one field besides `state` is required. */
export interface BulkFilter extends Omit<ListOptions, "sort" | "limit" | "cursor"> {
  /** These tasks, at most 1,000: as `get` takes them. Not together with another field. */
  readonly tasks?: readonly TaskRef[] | undefined;
}

/** Further conditions on how the tasks were paused. */
export interface ResumeFilter extends BulkFilter {
  /** Only tasks that were paused with exactly this note. */
  readonly note?: string | undefined;
  /** Only tasks that were paused by exactly this name. */
  readonly pausedBy?: string | undefined;
}

export interface BulkOptions {
  /** Change nothing; say how many tasks would be changed. Default false. */
  readonly dryRun?: boolean | undefined;
}

/** Tasks that a call changed, or with `dryRun` would change. */
export interface BulkResult {
  readonly count: number;
  /** The first ten of these tasks, as they were before, in the order of queue, owner, id. */
  readonly sample: readonly BulkSample[];
  /** Tasks that could not be changed, each by itself: the others are. */
  readonly refused: {
    readonly count: number;
    /** The first ten of them. */
    readonly sample: readonly BulkRefusal[];
  };
}

export interface BulkSample extends TaskName {
  /** Time, author and reason of its pause, if it was paused. */
  readonly paused?: StoredTask["paused"];
}

export interface BulkRefusal {
  /** The name as given, or its full name. */
  readonly task: TaskRef;
  readonly code: string;
  readonly message: string;
}

/** Tasks at a time: bounded memory, and Redis is never held for long. */
const CHUNK = 100;
/** Tasks in a sample. */
const SAMPLE = 10;
/** Most names in one call. */
const MOST_NAMED = 1_000;

/** A call that changes many tasks. */
export interface Bulk {
  readonly kind: ChangeKind;
  readonly filter: BulkFilter;
  readonly by: string;
  readonly dryRun: boolean | undefined;
  /** Only tasks in this state. Default: any. */
  readonly state?: TaskState | undefined;
  /** Only tasks for which this is true. Default: all. */
  readonly isMeant?: (task: StoredTask) => boolean;
  /** Returns false if there was nothing to change. Its errors are counted as refusals, but for those of Redis. */
  readonly act: (task: StoredTask, name: TaskName) => Promise<boolean>;
  /** For the change log. */
  readonly details?: ChangeFacts["details"];
}

/** Changes each task that matches, in chunks, and logs one change. @param filter as `checkedFilter` returned it */
export async function bulk(
  scope: Scope,
  { act, isMeant, dryRun = false, ...call }: Bulk,
): Promise<BulkResult> {
  const [done, refused] = [new Tally<BulkSample>(SAMPLE), new Tally<BulkRefusal>(SAMPLE)];
  const change = async (task: StoredTask, name: TaskName) => {
    if (dryRun) return true;
    return act(task, name).catch((error: unknown) => refusalOf(name, error));
  };
  try {
    for await (const page of selected(scope, call.filter, call.state, refused)) {
      const tasks = isMeant ? page.filter(isMeant) : page;
      const answers = await inOrder(tasks.map((task) => change(task, nameOf(task))));
      for (const [i, { paused, ...task }] of tasks.entries()) {
        const answer = answers.done[i];
        if (typeof answer === "object") refused.add(answer);
        else if (answer) done.add({ ...nameOf(task), ...(paused && { paused }) });
      }
      if (answers.failed) throw answers.failed.reason;
    }
  } finally {
    // Also if Redis failed halfway.
    if (!dryRun && done.count > 0) log(scope, call, done);
  }
  return { ...done.result, refused: refused.result };
}

function log(
  scope: Scope,
  { kind, filter, by, details }: Omit<Bulk, "act" | "dryRun">,
  done: Tally<BulkSample>,
): void {
  const { owner, tag, queue } = filter;
  const sample = done.sample.map(nameOfSample);
  scope.log(kind, { owner, tag, queue }, by, { count: done.count, sample, details });
}

/**
 * The tasks that a filter selects, in chunks. Those that are named and cannot be found are refused.
 *
 * @param state only in this state
 */
export async function* selected(
  scope: Scope,
  { tasks: refs, ...filter }: BulkFilter,
  state: TaskState | undefined,
  refused: Tally<BulkRefusal>,
): AsyncGenerator<StoredTask[]> {
  if (refs !== undefined) {
    for (let at = 0; at < refs.length; at += CHUNK) {
      const some = refs.slice(at, at + CHUNK);
      const found = await Promise.all(
        some.map((ref) => read(scope, ref).catch((error: unknown) => refusalOf(ref, error))),
      );
      for (const one of found) if ("code" in one) refused.add(one);
      yield found.filter((one) => "definition" in one).filter((one) => !state || one.state === state);
      scope.progress(some.length);
    }
    return;
  }
  if (state !== undefined && filter.state !== undefined && filter.state !== state) return;
  const stored = { ...(await storedFilter(scope, filter)), state: state ?? filter.state };
  let cursor: string | undefined;
  do {
    const page = await scope.store.tasks.list(stored, CHUNK, cursor);
    yield page.tasks;
    scope.progress(page.tasks.length);
    cursor = page.cursor;
  } while (cursor !== undefined);
}

async function read(scope: Scope, ref: TaskRef): Promise<StoredTask> {
  const name = await scope.locate(ref);
  const task = await scope.store.tasks.get(name);
  if (!task) throw notFound(name);
  return task;
}

/** Waits for all even if one fails: the results of the others count. */
async function inOrder<One>(calls: readonly Promise<One>[]) {
  const all = await Promise.allSettled(calls);
  return {
    done: all.map((one) => (one.status === "fulfilled" ? one.value : undefined)),
    failed: all.find((one) => one.status === "rejected"),
  };
}

/**
 * A filter with the bound owner.
 * @param more further fields, each of which is a condition too
 * @param may `any`: all tasks of the namespace too, for calls that change nothing
 * @throws `INVALID_OPTION` for a filter without any condition, which would select a whole namespace by accident
 */
export function checkedFilter<Filter extends BulkFilter>(
  scope: Scope,
  filter: Filter,
  more: (keyof Filter & string)[] = [],
  may?: "any",
): Filter {
  assertOptions(filter, [...CONDITION_NAMES, "tasks", ...more]);
  const { tasks } = filter;
  checkedConditions(filter);
  if (tasks !== undefined) {
    const other = CONDITION_NAMES.find((field) => filter[field] !== undefined);
    if (other !== undefined)
      throw fault(other, "cannot be combined with tasks.", "Give names, or conditions; not both.");
    if (!Array.isArray(tasks)) throw fault("tasks", `got ${quote(tasks)}.`, "Give a list of tasks.");
    if (tasks.length > MOST_NAMED)
      throw fault("tasks", `more than ${MOST_NAMED}.`, "Name fewer, or give conditions.");
    for (const ref of tasks) assertRef(ref);
    return filter;
  }
  const bound = scope.bind(filter);
  const narrowing = [...CONDITION_NAMES.filter((field) => !("needsOther" in CONDITIONS[field])), ...more];
  if (may === "any" || narrowing.some((field: keyof Filter) => Boolean(bound[field]))) return bound;
  throw new CarillonError("INVALID_OPTION", "no condition selects tasks.", {
    remedy: `Select tasks by an owner, a tag, a queue, a text or an outcome, or by name${more.length > 0 ? `; or by ${more.join(" or ")}` : ""}.`,
  });
}

/** Counts, and keeps the first ones. */
export class Tally<One> {
  count = 0;
  readonly sample: One[] = [];
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  add(one: One): void {
    this.count += 1;
    if (this.sample.length < this.#most) this.sample.push(one);
  }

  get result(): { count: number; sample: readonly One[] } {
    return { count: this.count, sample: this.sample };
  }
}

/** The refusal of one task. @throws the error, if it concerns all tasks */
export function refusalOf(task: TaskRef, error: unknown): BulkRefusal {
  if (!isCarillonError(error) || error.code.startsWith("REDIS_")) throw error;
  return { task, code: error.code, message: error.message };
}

export function nameOf({ definition: { queue, owner, id } }: Pick<StoredTask, "definition">): TaskName {
  return { queue, owner, id };
}

function nameOfSample({ queue, owner, id }: BulkSample): TaskName {
  return { queue, owner, id };
}

function fault(field: string, what: string, remedy: string): CarillonError {
  return new CarillonError("INVALID_OPTION", what, { field, remedy });
}
