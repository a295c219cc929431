import type { TaskName } from "@carillon/core";
import { conflict } from "@carillon/core/internal";
import { inputOf } from "@carillon/sdk/internal";
import { isRetired } from "@carillon/store";
import { type BulkRefusal, nameOfKey, refusalOf, Tally } from "../bulk/bulk.js";
import type { Entry } from "../changes/list.js";
import { replacedBy } from "../changes/replaced.js";
import type { Call } from "../operation.js";
import { apply, pauseNote } from "./apply.js";
import { planFor } from "./plan.js";
import type { Step } from "./planning.js";
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
  for (let at = 0; at < lines.length; at += CHUNK) {
    const some = lines.slice(at, at + CHUNK).map(async (line) => {
      const [key = "", action = "update", state] = line.split(" ");
      const name = nameOfKey(key);
      const found = await formerOf(call, change, name, action, state).catch((error: unknown) => {
        refused.add(refusalOf(name, error));
      });
      return found === "none" ? key : found;
    });
    for (const one of await Promise.all(some))
      if (typeof one === "string") removes.push(one);
      else if (one) tasks.push(one);
  }
  const isLast = record?.generation === change.details?.["generation"] && tasks.length + removes.length > 0;
  const { version, commit } = ((isLast && change.before) || record || {}) as Pick<
    GivenSet,
    "version" | "commit"
  >;
  return {
    ...{ set, tasks, version, commit, protect: record?.protect, keep: true, allowRemovals: removes.length },
    undoes: { change: change.id, removes },
  };
}

/**
 * A task as it was before an apply; `none`: there was none. Undefined: nothing is to be done.
 * @throws `CONFLICT` if it was changed since, or its definition is not known
 */
async function formerOf(
  { store }: Call,
  change: Entry,
  name: TaskName,
  action: string,
  state: string | undefined,
): Promise<SetTask | "none" | undefined> {
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
    return isThere ? undefined : { ...inputOf(task.definition), enabled: state !== "paused" };
  }
  const former = await replacedBy(store, change, name);
  if (action === "create") {
    if (isThere && task.set?.name === set) return "none";
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
  return { ...(former ?? inputOf(task.definition)), queue: task.set.filed, ...(back && { state: back }) };
}
