import { ALERTS_QUEUE, type FreezeScope, isCarillonError, type TaskName } from "@carillon/core";
import { covers, nearest, parseLocalName } from "@carillon/core/internal";
import type { Warning } from "@carillon/sdk";
import { countByFilter, running, type Scope } from "@carillon/sdk/internal";
import { z } from "zod";
import { load } from "./occurrences/load.js";
import { count, time, warning as warningShape } from "./shapes.js";

/** The tasks and starts that a freeze, a silence or the pause of a queue holds, as stored now. */
export const holds = z
  .object({
    tasks: count.describe("Tasks in the scope."),
    starts: count
      .optional()
      .describe(
        "Their planned occurrences from the beginning to `until`. Missing: the scope has more than 10,000 tasks, or too many occurrences to count.",
      ),
    until: time.describe("End of the counted time: of the hold, or a day after its beginning."),
    running: count.describe(
      "Their runs that are under way, which go on. At most 1,000 of a queue are counted.",
    ),
    warnings: z.array(warningShape).describe("`MATCHES_NOTHING`, with the nearest known name."),
  })
  .meta({ id: "Holds" });

export type Holds = z.output<typeof holds>;

const DAY = 86_400_000;
/** Tasks whose times are counted: a second of work. */
const MOST_TASKS = 10_000;
/** Tasks whose owners and tags are read to find the nearest name. */
const MOST_NAMED = 100_000;
const MOST_RUNS = 1_000;
const STEP = 1_000;

/** A scope, or one task of it. */
export interface HeldScope extends FreezeScope {
  readonly task?: string | undefined;
}

/** @param times beginning and end of the hold, UTC ms; none: now, until it is lifted */
export async function holdsOf(
  scope: Scope,
  { owner, tag, queue, task, tasks: named }: HeldScope,
  times: { readonly from?: number | undefined; readonly until?: number | undefined } = {},
): Promise<Holds> {
  const given = { owner: owner ?? scope.owner, tag, queue };
  const now = await scope.store.freezes.time();
  // An occurrence that is due at this instant is claimed already, or owed.
  const from = Math.max(now + 1, times.from ?? 0);
  const until = Math.min(times.until ?? Number.POSITIVE_INFINITY, from + DAY);
  const { all } = await countByFilter(scope, given);
  const tasks = named?.length ?? (task === undefined ? all : await namesakes(scope, task, given));
  const counted = task === undefined && all > 0 && all <= MOST_TASKS;
  const [starts, open] = await Promise.all([
    tasks === 0 ? 0 : counted ? startsIn(scope, { ...given, tasks: named }, from, until) : undefined,
    tasks === 0 ? 0 : runningIn(scope, { ...given, task, tasks: named }),
  ]);
  const warnings = tasks === 0 ? [await warningOf(scope, { ...given, task })] : [];
  return { tasks, starts, until, running: open, warnings };
}

/** Number of tasks with this id. */
async function namesakes(scope: Scope, id: string, { owner, queue }: FreezeScope): Promise<number> {
  const queues = await scope.queuesOf(queue);
  if (owner !== undefined) {
    const found = await Promise.all(queues.map((one) => scope.store.tasks.get({ queue: one, owner, id })));
    return found.filter(Boolean).length;
  }
  let count = 0;
  for await (const name of namesOf(scope, queues)) if (name.id === id) count += 1;
  return count;
}

/** Starts of a range, without regard to freezes. */
async function startsIn(
  scope: Scope,
  { tasks, ...given }: FreezeScope,
  from: number,
  until: number,
): Promise<number | undefined> {
  try {
    const range = { from, to: Math.max(until, from + 1), step: DAY } as const;
    return (await load(scope, { ...given, ...range }, [], tasks)).total;
  } catch (error) {
    if (isCarillonError(error, "INVALID_OPTION")) return undefined;
    throw error;
  }
}

async function runningIn(scope: Scope, { owner, tag, queue, task, tasks: of }: HeldScope): Promise<number> {
  const queues = (await scope.queuesOf(queue)).filter((one) => one !== ALERTS_QUEUE);
  const runs = await running({ store: scope.store, queues }, { owner }, MOST_RUNS);
  const named = runs.filter(
    (run) => (task === undefined || run.task.id === task) && covers({ tasks: of }, run.task),
  );
  if (tag === undefined) return named.length;
  const tasks = await Promise.all(named.map((run) => scope.store.tasks.get(run.task).catch(() => undefined)));
  return tasks.filter((one) => one?.definition.tags?.includes(tag)).length;
}

/** The first name of a scope that no task has, and the nearest one that some task has. */
async function warningOf(scope: Scope, { owner, tag, queue, task }: HeldScope): Promise<Warning> {
  const known = {
    queue: new Set<string>(),
    owner: new Set<string>(),
    tag: new Set<string>(),
    id: new Set<string>(),
  };
  for await (const name of namesOf(scope, await scope.queues())) {
    known.queue.add(name.queue);
    known.owner.add(name.owner);
    known.id.add(name.id);
  }
  if (tag !== undefined) for await (const one of tagsOf(scope)) known.tag.add(one);
  const names = { queue, owner, tag, id: task };
  for (const field of ["queue", "owner", "tag", "id"] as const) {
    const name = names[field];
    if (name === undefined || known[field].has(name)) continue;
    const near = nearest(name, [...known[field]]);
    return warning(
      `No task has the ${field} ${name}.`,
      near === undefined ? "Check the name." : `Did you mean ${near}?`,
    );
  }
  return warning("No task matches now.", "Check the names. Tasks that are put later are held too.");
}

function warning(message: string, remedy: string): Warning {
  return { code: "MATCHES_NOTHING", message, remedy };
}

/** Names of tasks, those of other owners excepted for a bound client. */
async function* namesOf({ store, owner }: Scope, queues: readonly string[]): AsyncGenerator<TaskName> {
  let left = MOST_NAMED;
  for (const queue of queues) {
    if (queue === ALERTS_QUEUE) continue;
    for await (const locals of store.tasks.names(queue, STEP)) {
      for (const local of locals) {
        const name = { queue, ...parseLocalName(local) };
        if (owner === undefined || name.owner === owner) yield name;
      }
      left -= locals.length;
      if (left <= 0) return;
    }
  }
}

/** Tags of scheduled tasks. */
async function* tagsOf(scope: Scope): AsyncGenerator<string> {
  let left = MOST_NAMED;
  for (const queue of await scope.queues()) {
    for await (const timings of scope.store.tasks.timings({ queue, owner: scope.owner })) {
      for (const { tags } of timings) yield* tags;
      left -= timings.length;
      if (left <= 0) return;
    }
  }
}
