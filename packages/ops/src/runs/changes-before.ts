import type { TaskName } from "@carillon/core";
import { calendarsOf } from "@carillon/core/internal";
import type { ChangeKind, Scope } from "@carillon/sdk/internal";
import type { StoredTask, WorkerInfo } from "@carillon/store";
import { z } from "zod";
import { decodeChange, type Entry, matchesTask } from "../changes/list.js";
import { time } from "../shapes.js";

/** Longest time from a change of a task, and from the start of a worker, to the first failure that it may have caused, in ms. */
const [CHANGED, STARTED] = [86_400_000, 3_600_000];
/** Entries of the log that are read. */
const MOST = 5_000;

/** Changes that can make a task fail which did not. */
const KINDS: ReadonlySet<ChangeKind> = new Set([
  "put",
  "move",
  "resume",
  "apply",
  "defaults",
  "calendar.put",
  "calendar.delete",
  "queue.resume",
  "queue.limit",
  "unfreeze",
] satisfies ChangeKind[]);

export const changeShape = z
  .object({
    at: time,
    kind: z.string().describe("Of the change log, or `worker.start`."),
    by: z.string().describe("Its author, empty if unknown, or the worker."),
    id: z.string().optional().describe("Of the entry in the change log."),
    text: z.string().optional().describe("Set and version of an apply, or the version of a worker."),
  })
  .meta({
    id: "ChangeBefore",
    description:
      "The newest change of the first tasks that failed so, within a day before; or the start of a worker of their queue within an hour before, if that was later.",
  });
type Change = z.output<typeof changeShape>;

export interface Begin {
  readonly at: number;
  readonly tasks: readonly TaskName[];
}

/** The change before each of these, if there was one. */
export async function changesBefore(scope: Scope, begins: readonly Begin[]): Promise<(Change | undefined)[]> {
  if (begins.length === 0) return [];
  const { store } = scope;
  const from = Math.min(...begins.map(({ at }) => at)) - CHANGED;
  const [entries, workers, tasks] = await Promise.all([
    entriesSince(scope, from, KINDS),
    store.registry.workers(),
    Promise.all(begins.map(({ tasks }) => Promise.all(tasks.map((task) => store.tasks.get(task))))),
  ]);
  return begins.map((begin, i) => {
    const known = (tasks[i] ?? []).filter((task) => task !== undefined);
    const entry = entries.find(
      ({ at, ...change }) =>
        at < begin.at && at > begin.at - CHANGED && concerns({ at, ...change }, begin.tasks, known),
    );
    const worker = startedBefore(workers, begin);
    return worker && worker.started > (entry?.at ?? 0) ? startOf(worker) : entry && changeOf(entry);
  });
}

/** Entries of these kinds since a time, newest first, of the newest 5,000. */
export async function entriesSince(
  { store, owner }: Scope,
  from: number,
  kinds: ReadonlySet<ChangeKind>,
): Promise<Entry[]> {
  const found: Entry[] = [];
  let read = 0;
  for await (const stored of store.changes.newest()) {
    if (stored.at < from || ++read > MOST) break;
    const entry = decodeChange(stored);
    // A caller that is bound to an owner sees no others in the log either.
    if (entry && kinds.has(entry.kind) && (owner === undefined || entry.scope.owner === owner))
      found.push(entry);
  }
  return found;
}

/** Whether it changed one of these tasks, as far as its entry says. */
function concerns(entry: Entry, names: readonly TaskName[], tasks: readonly StoredTask[]): boolean {
  const { set, tag, calendar } = entry.scope;
  // An apply names its tasks, unless they are very many.
  if (set !== undefined && !tasks.some((task) => task.set?.name === set)) return false;
  if (tag !== undefined) return tasks.some(({ definition: { tags } }) => tags.includes(tag));
  if (calendar !== undefined)
    return tasks.some(({ definition: { schedule } }) => calendarsOf(schedule).includes(calendar));
  return names.some((name) => matchesTask(entry, name));
}

function startedBefore(workers: readonly WorkerInfo[], { at, tasks }: Begin): WorkerInfo | undefined {
  return workers
    .filter(({ started, queues }) => {
      return started <= at && started > at - STARTED && tasks.some(({ queue }) => queues.includes(queue));
    })
    .sort((a, b) => b.started - a.started)[0];
}

function startOf({ id, started, versions }: WorkerInfo): Change {
  return { at: started, kind: "worker.start", by: id, text: `carillon ${versions.carillon}` };
}

function changeOf({ id, at, kind, by, scope, after = {} }: Entry): Change {
  const text = [scope.set, scope.set && after["version"]].filter((one) => one !== undefined).join(" ");
  return { at, kind, by: by ?? "", id, ...(text !== "" && { text }) };
}
