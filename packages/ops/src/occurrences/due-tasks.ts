import { isCarillonError, type TaskName } from "@carillon/core";
import { frozenShape, parseLocalName } from "@carillon/core/internal";
import { nextOf, type Store, type StoredTask } from "@carillon/store";
import { z } from "zod";
import { count, taskName, time } from "../shapes.js";

export const upcoming = z.object({
  task: taskName,
  nominal: time,
  due: time,
  frozen: frozenShape
    .optional()
    .describe(
      "The freeze that skips it at its due time, or holds it beyond. Missing: none, as far as is known now.",
    ),
  limit: count
    .optional()
    .describe(
      "It is due, and waits for a place of its owner: the runs that the owner may have in the queue.",
    ),
});
export type Upcoming = z.output<typeof upcoming>;

/** Tasks of a queue that are read for one answer. */
const MOST_READ = 100_000;

/**
 * Tasks are read in the order of their next checks, but the resulting times may be later, or there may be none. So it
 * reads on until no unread task can come before the last one found.
 */
export async function widening(
  limit: number,
  look: (most: number) => Promise<{ found: Upcoming[]; horizon: number }>,
): Promise<Upcoming[]> {
  for (let most = limit; ; most = Math.min(2 * most, MOST_READ)) {
    const { found, horizon } = await look(most);
    const last = found[limit - 1]?.due ?? Number.POSITIVE_INFINITY;
    if (last <= horizon || most >= MOST_READ) return found;
  }
}

interface DueTasks {
  readonly tasks: { name: TaskName; task: StoredTask }[];
  /** Unread tasks are checked at this time or later. UTC ms; infinite: all were read. */
  readonly horizon: number;
}

export async function dueTasks(
  store: Store,
  queues: readonly string[],
  until: number,
  most: number,
  owner: string | undefined,
): Promise<DueTasks> {
  if (owner !== undefined)
    return { tasks: await ownedTasks(store, queues, until, owner), horizon: Number.POSITIVE_INFINITY };
  const found = await Promise.all(queues.map((queue) => store.tasks.due(queue, until, most)));
  const ends = found.flatMap((names) => (names.length < most ? [] : [names.at(-1)?.at ?? 0]));
  const tasks = await Promise.all(
    queues.flatMap((queue, i) =>
      (found[i] ?? []).map(async ({ local }) => {
        const name = { queue, ...parseLocalName(local) };
        return { name, task: await store.tasks.get(name).catch(unlessUnsupported) };
      }),
    ),
  );
  return {
    tasks: tasks.flatMap(({ name, task }) => (task ? [{ name, task }] : [])),
    horizon: Math.min(...ends),
  };
}

/** The limit of its owner for which a task waits. Undefined: it does not. */
export async function heldBy(store: Store, name: TaskName): Promise<number | undefined> {
  const { waits, limit } = await store.queues.place(name);
  return waits ? limit : undefined;
}

/** Skips tasks that this version cannot read. */
function unlessUnsupported(error: unknown): undefined {
  if (!isCarillonError(error, "UNSUPPORTED_FORMAT")) throw error;
}

/** Reads through the owner's tasks only: those of others would crowd them out. */
async function ownedTasks(
  store: Store,
  queues: readonly string[],
  until: number,
  owner: string,
): Promise<{ name: TaskName; task: StoredTask }[]> {
  const found: { name: TaskName; task: StoredTask }[] = [];
  for (const queue of queues) {
    for await (const { tasks } of store.tasks.pages({ queue, owner, state: "scheduled" })) {
      for (const task of tasks) {
        if ((nextOf(task)?.due ?? Number.POSITIVE_INFINITY) <= until)
          found.push({ name: { queue, owner, id: task.definition.id }, task });
      }
    }
  }
  return found;
}
