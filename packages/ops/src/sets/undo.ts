import { isDeepStrictEqual } from "node:util";
import { CarillonError, isCarillonError, type TaskName } from "@carillon/core";
import { conflict } from "@carillon/core/internal";
import { inputOf } from "@carillon/sdk/internal";
import { isRetired } from "@carillon/store";
import { type BulkRefusal, nameOfKey, refusalOf, Tally } from "../bulk/bulk.js";
import type { Entry } from "../changes/list.js";
import { replacedBy } from "../changes/replaced.js";
import type { Call } from "../operation.js";
import { apply, pauseNote } from "./apply.js";
import { planFor } from "./plan.js";
import { checkTasks, type Step } from "./planning.js";
import type { GivenSet, SetTask } from "./set.js";

/** Tasks read at once. */
const CHUNK = 100;
const SAMPLE = 10;

/**
 * Takes an apply back: the former definitions of the tasks that it changed are applied, all others of the set are left alone. The set gets its
 * former version back if this was its last apply, so that the file of that version can be applied again.
 *
 * @param lines as the apply listed its steps
 */
export async function undoApply(
  call: Call,
  change: Entry,
  lines: readonly string[],
  dryRun: boolean | undefined,
) {
  let refused = new Tally<BulkRefusal>(SAMPLE);
  const read = async () => {
    refused = new Tally<BulkRefusal>(SAMPLE);
    return formerSet(call, change, lines, refused);
  };
  const done = dryRun ? undefined : await apply(call, read);
  const shown = done ? undefined : await planFor(call, await read());
  const steps = (done ? done.made.steps : shown?.steps) ?? [];
  const plan = shown?.plan;
  return {
    count: steps.length,
    sample: steps.slice(0, SAMPLE).map(({ item }) => item.task),
    refused: refused.result,
    moved: movedBy(steps),
    ...(done?.change !== undefined && { change: done.change }),
    ...(plan && { plan }),
  };
}

function movedBy(steps: readonly Step[]) {
  const moved = new Tally<TaskName & Step["moves"]["next"]>(SAMPLE);
  for (const { item, moves } of steps)
    if (moves.next.before !== moves.next.after) moved.add({ ...item.task, ...moves.next });
  return moved.result;
}

/** The set as it was before an apply, as far as this can be told. @param refused gets the tasks that stay as they are */
async function formerSet(
  call: Call,
  change: Entry,
  lines: readonly string[],
  refused: Tally<BulkRefusal>,
): Promise<GivenSet> {
  const set = change.scope.set as string;
  const record = await call.store.sets.get(set);
  const tasks: SetTask[] = [];
  const removes: string[] = [];
  const keeps = new Set<string>();
  for (let at = 0; at < lines.length; at += CHUNK) {
    const some = lines.slice(at, at + CHUNK).map(async (line) => {
      const [key = "", action = "update", state] = line.split(" ");
      const name = nameOfKey(key);
      const found = await formerOf(call, change, name, action, state).catch((error: unknown) => {
        refused.add(refusalOf(name, error));
      });
      if (found?.keeps) keeps.add(key);
      return { key, name, former: found?.task };
    });
    const found = await Promise.all(some);
    removes.push(...found.flatMap(({ key, former }) => (former === "none" ? key : [])));
    const known = found.flatMap(({ name, former }) =>
      former === undefined || former === "none" ? [] : [{ name, former }],
    );
    tasks.push(...(await storable(call, known, keeps, refused)));
  }
  const isLast = record?.generation === change.details?.["generation"] && tasks.length + removes.length > 0;
  const { version, commit } = ((isLast && change.before) || record || {}) as Pick<
    GivenSet,
    "version" | "commit"
  >;
  return {
    ...{ set, tasks, version, commit, protect: record?.protect, keep: true, allowRemovals: removes.length },
    undoes: { change: change.id, removes, keeps },
  };
}

/** A former definition, and its task. */
interface Former {
  readonly name: TaskName;
  readonly former: SetTask;
}

/** The definitions that can be stored now. @param refused gets the others: a schema, a calendar or the list of types may have changed since */
async function storable(
  call: Call,
  all: readonly Former[],
  keeps: ReadonlySet<string>,
  refused: Tally<BulkRefusal>,
): Promise<SetTask[]> {
  const check = (some: readonly Former[]) =>
    checkTasks(
      call,
      some.map(({ former }) => former),
      keeps,
    ).then(
      () => undefined,
      (error: unknown) => error,
    );
  // Only if there is a fault, each by itself.
  if (!(await check(all))) return all.map(({ former }) => former);
  const faults = await Promise.all(all.map((one) => check([one])));
  return all.flatMap(({ name, former }, i) => {
    if (!faults[i]) return [former];
    refused.add(refusalOf(name, notStorable(faults[i])));
    return [];
  });
}

/** @param error of the check of one task, caused by that of its field */
function notStorable(error: unknown): unknown {
  if (!isCarillonError(error) || !isCarillonError(error.cause)) return error;
  const { code, field, message } = error.cause;
  return new CarillonError(code, `its former definition does not fit any more: ${message}`, {
    remedy: `It stays as it is: put it with another ${field?.split(".")[0] ?? "definition"}, by itself or from its file.`,
    cause: error.cause,
  });
}

/**
 * A task as it was before an apply; `none`: there was none. Undefined: nothing is to be done.
 * @returns also whether its payload is the one that is stored now
 * @throws `CONFLICT` if it was changed since, or its definition is not known
 */
async function formerOf(
  { store }: Call,
  change: Entry,
  name: TaskName,
  action: string,
  state: string | undefined,
): Promise<{ readonly task: SetTask | "none"; readonly keeps?: boolean } | undefined> {
  const set = change.scope.set as string;
  const task = await store.tasks.get(name);
  const isThere = task !== undefined && !isRetired(task);
  if (action === "prune") return undefined;
  if (action === "rename")
    throw conflict(
      "it was renamed, or moved to another queue.",
      "Rename it back in the file, with renamedFrom.",
    );
  if (action === "adopt")
    throw conflict("it was in another set, or in none, before.", "Restore a definition of it by itself.");
  if (action === "remove") {
    if (!task)
      throw conflict("it was removed and its definition is not kept any more.", "Put it from its file.");
    if (isThere) return undefined;
    return { task: { ...inputOf(task.definition), enabled: state !== "paused" }, keeps: true };
  }
  const former = await replacedBy(store, change, name);
  if (action === "create") {
    if (isThere && task.set?.name === set) return { task: "none" };
    if (!isThere && (await store.tasks.elsewhere([name])).size === 0) return undefined;
  }
  if (!isThere || task.set?.name !== set)
    throw conflict(
      "it was deleted, moved or taken out of the set since.",
      "Restore a definition of it by itself.",
    );
  // A state that people have given it since stays.
  const isOurs = state === "paused" ? task.paused?.note === pauseNote(set) : task.state !== "paused";
  const back = state && isOurs ? (state === "paused" ? "running" : "paused") : undefined;
  if (!former && !back) return undefined;
  const definition = former ?? inputOf(task.definition);
  return {
    task: { ...definition, queue: task.set.filed, ...(back && { state: back }) },
    keeps: isDeepStrictEqual(definition.payload, task.definition.payload),
  };
}
