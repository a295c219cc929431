import { isCarillonError, type TaskName, type TaskRef, type TaskState } from "@carillon/core";
import {
  type ChangeFacts,
  type ChangeScope,
  notFound,
  type Scope,
  storedFilter,
} from "@carillon/sdk/internal";
import type { StoredTask } from "@carillon/store";
import { z } from "zod";
import type { Call } from "../operation.js";
import { count, pause, taskName } from "../shapes.js";
import { type Filter, MOST_NAMED } from "./filter.js";

const refusal = z.object({
  task: z
    .union([
      z.string(),
      z.object({ queue: z.string().optional(), owner: z.string().optional(), id: z.string() }),
    ])
    .describe("The name as given, or its full name."),
  code: z.string(),
  message: z.string(),
  field: z.string().optional().describe("The field of the task that does not fit."),
});
export type BulkRefusal = z.output<typeof refusal>;

/** Tasks that could not be changed, each by itself: the others are. */
export const refused = z
  .object({ count, sample: z.array(refusal).readonly().describe("The first ten of them.") })
  .meta({ id: "Refused" });

const sampled = taskName.extend({
  paused: pause.optional().describe("Time, author and reason of its pause, if it was paused."),
});
type BulkSample = z.output<typeof sampled>;

/** Tasks that a call changed, or with `dryRun` would change. */
export const bulkResult = z
  .object({
    count,
    sample: z
      .array(sampled)
      .readonly()
      .describe("The first ten of these tasks, as they were before, in the order of queue, owner, id."),
    refused,
    undo: z
      .object({ operation: z.string(), input: z.record(z.string(), z.unknown()) })
      .optional()
      .describe(
        "The call that takes it back for exactly the tasks that it changed, of which there are at most 1,000.",
      ),
  })
  .meta({ id: "BulkResult" });

/** Result of a change that can be undone. */
export const undoableResult = bulkResult.extend({
  change: z
    .string()
    .optional()
    .describe("Id of the change in the log, for `changes.undo`; missing: nothing was to be done."),
});

/** Tasks at a time: bounded memory, and Redis is never held for long. */
const CHUNK = 100;
const SAMPLE = 10;
/** A change of many tasks. */
interface Change {
  /** As `checkedFilter` returned it. */
  readonly filter: Filter;
  readonly dryRun: boolean | undefined;
  /** Only tasks in this state. Default: any. */
  readonly state?: TaskState | undefined;
  /** Only tasks for which this is true. Default: all. */
  readonly isMeant?: (task: StoredTask) => boolean;
  /** Finds the refusals of a dry run. */
  readonly check?: (name: TaskName) => Promise<unknown>;
  /** Returns false if there was nothing to change. Its errors are counted as refusals, but for those of Redis. */
  readonly act: (task: StoredTask, name: TaskName) => Promise<boolean>;
  /** The call that takes the change of these tasks back, without their names. Undefined: there is none. */
  readonly inverse?: (tasks: readonly StoredTask[]) => z.output<typeof bulkResult>["undo"];
  /** For the change log. */
  readonly details?: ChangeFacts["details"];
}

/**
 * Changes each of these tasks by a change that can be undone: it is in the log before the first of them is changed.
 *
 * @param act also gets the id of the change, to store it with the definition that it replaces
 */
export async function bulkUndoable(
  call: Call,
  object: ChangeScope,
  tasks: readonly TaskName[],
  {
    act,
    ...change
  }: Omit<Change, "act" | "filter"> & {
    /** Default: the tasks, by their names. */
    readonly filter?: Filter;
    readonly act: (name: TaskName, change: string) => Promise<boolean>;
  },
): Promise<z.output<typeof undoableResult>> {
  let id: string | undefined;
  if (!change.dryRun && tasks.length > 0) {
    const [undo, sample] = [tasks.map(keyOf), tasks.slice(0, SAMPLE)];
    const facts = { count: tasks.length, sample, undo, details: change.details };
    id = await call.record(object, facts);
  }
  const done = await bulk(
    { ...call, log: () => {} },
    { filter: { tasks }, ...change, act: (_, name) => act(name, id as string) },
  );
  return { ...done, ...(id !== undefined && { change: id }) };
}

/**
 * Changes each task that matches: if they are at most 1,000, by a change that can be undone.
 *
 * @param act gets the task as it was found before the first is changed; `id` as of `bulkUndoable`, if it can be undone
 */
export async function bulkUndoableIfFew(
  call: Call,
  {
    act,
    ...change
  }: Omit<Change, "act" | "state"> & {
    readonly act: (found: StoredTask, name: TaskName, id: string | undefined) => Promise<boolean>;
  },
): Promise<z.output<typeof undoableResult>> {
  const { filter, isMeant = () => true, dryRun } = change;
  const found = new Map<string, StoredTask>();
  const keyed = (task: StoredTask) => keyOf(nameOf(task));
  if (!dryRun)
    for await (const page of selected(call.scope, filter, undefined, new Tally<BulkRefusal>(0))) {
      for (const task of page.filter(isMeant)) found.set(keyed(task), task);
      if (found.size > MOST_NAMED) break;
    }
  if (dryRun || found.size > MOST_NAMED)
    return bulk(call, { ...change, act: (task, name) => act(task, name, undefined) });
  const { owner = call.scope.owner, tag, queue } = filter;
  return bulkUndoable(call, { owner, tag, queue }, [...found.values()].map(nameOf), {
    ...change,
    isMeant: (task) => found.has(keyed(task)),
    act: (name, id) => act(found.get(keyOf(name)) as StoredTask, name, id),
  });
}

/** Changes each task that matches, in chunks, and logs one change. */
export async function bulk(
  { scope, log }: Call,
  { act, check, isMeant, dryRun = false, filter, state, inverse, details }: Change,
): Promise<z.output<typeof bulkResult>> {
  const changed: StoredTask[] = [];
  const [done, refused] = [new Tally<BulkSample>(SAMPLE), new Tally<BulkRefusal>(SAMPLE)];
  const change = async (task: StoredTask, name: TaskName) => {
    const doing = dryRun ? Promise.resolve(check?.(name)).then(() => true) : act(task, name);
    return doing.catch((error: unknown) => refusalOf(name, error));
  };
  try {
    for await (const page of selected(scope, filter, state, refused)) {
      const tasks = isMeant ? page.filter(isMeant) : page;
      const answers = await inOrder(tasks.map((task) => change(task, nameOf(task))));
      for (const [i, task] of tasks.entries()) {
        const answer = answers.done[i];
        const { paused } = task;
        if (typeof answer === "object") refused.add(answer);
        else if (answer) done.add({ ...nameOf(task), ...(paused && { paused }) });
        if (answer === true && inverse && !dryRun && done.count <= MOST_NAMED) changed.push(task);
      }
      if (answers.failed) throw answers.failed.reason;
    }
  } finally {
    // Also if Redis failed halfway.
    if (!dryRun && done.count > 0) {
      const { owner, tag, queue } = filter;
      log({ owner: owner ?? scope.owner, tag, queue }, { count: done.count, sample: done.sample, details });
    }
  }
  const undo = changed.length > 0 && changed.length === done.count ? inverse?.(changed) : undefined;
  return {
    ...done.result,
    refused: refused.result,
    ...(undo && { undo: { ...undo, input: { ...undo.input, tasks: changed.map(nameOf) } } }),
  };
}

/**
 * The tasks that a filter selects, in chunks, each once. Those that are named and cannot be found are refused.
 *
 * @param state only in this state
 */
export async function* selected(
  scope: Scope,
  { tasks: refs, ...filter }: Filter,
  state: TaskState | undefined,
  refused: Tally<BulkRefusal>,
): AsyncGenerator<StoredTask[]> {
  if (refs !== undefined) {
    const known = new Set<string>();
    const isNew = (task: StoredTask) => known.size < known.add(keyOf(nameOf(task))).size;
    for (let at = 0; at < refs.length; at += CHUNK) {
      const some = refs.slice(at, at + CHUNK);
      const found = await Promise.all(
        some.map((ref) => read(scope, ref).catch((error: unknown) => refusalOf(ref, error))),
      );
      for (const one of found) if ("code" in one) refused.add(one);
      const tasks = found.filter((one) => "definition" in one).filter(isNew);
      yield tasks.filter((one) => !state || one.state === state);
      scope.progress(some.length);
    }
    return;
  }
  if (state !== undefined && filter.state !== undefined && filter.state !== state) return;
  const stored = { ...(await storedFilter(scope, filter)), state: state ?? filter.state };
  for await (const { tasks } of scope.store.tasks.pages(stored, CHUNK)) {
    yield tasks;
    scope.progress(tasks.length);
  }
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

/** Counts, and keeps the first ones. */
export class Tally<One> {
  count = 0;
  readonly sample: One[] = [];

  constructor(private readonly most: number) {}

  add(one: One): void {
    this.count += 1;
    if (this.sample.length < this.most) this.sample.push(one);
  }

  get result(): { count: number; sample: readonly One[] } {
    return { count: this.count, sample: this.sample };
  }
}

/** The refusal of one task. @throws the error, if it concerns all tasks */
export function refusalOf(task: TaskRef, error: unknown): BulkRefusal {
  if (!isCarillonError(error) || error.code.startsWith("REDIS_")) throw error;
  const { code, message, field } = error;
  return { task, code, message, ...(field !== undefined && { field }) };
}

export function nameOf({ definition: { queue, owner, id } }: Pick<StoredTask, "definition">): TaskName {
  return { queue, owner, id };
}

/** A name as a text: among the tasks of all queues, and in the change log. */
export function keyOf({ queue, owner, id }: TaskName): string {
  return `${queue}/${owner}/${id}`;
}

/** @param key what follows a space in it is left out */
export function nameOfKey(key: string): TaskName {
  const [queue = "", owner = "", id = ""] = key.split(/[/ ]/);
  return { queue, owner, id };
}
