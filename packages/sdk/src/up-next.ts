import { isCarillonError, parseLocalName, type TaskName } from "@carillon/core";
import type { Store, StoredTask } from "@carillon/store";
import { nextOf, timesOf } from "./view.js";

/** An occurrence to come. Times in UTC ms. */
export interface Upcoming {
  readonly task: TaskName;
  readonly nominal: number;
  readonly due: number;
}

/** Occurrences of one task in a forecast; a task that fires each second would fill it alone. */
const MOST_OF_ONE = 10_000;

/** Tasks read at a time. */
const PAGE = 500;

/** The tasks that are acted on next, earliest first. */
export async function upNext(
  store: Store,
  queues: readonly string[],
  limit: number,
  owner: string | undefined,
): Promise<Upcoming[]> {
  const found = await dueTasks(store, queues, Number.POSITIVE_INFINITY, limit, owner);
  return found
    .flatMap(({ name, task }) => {
      const next = nextOf(task);
      return next ? [{ task: name, ...next }] : [];
    })
    .sort((a, b) => a.due - b.due)
    .slice(0, limit);
}

/**
 * Each occurrence that falls due until `until`, as the schedules stand now, earliest first; also what is tried again, or was asked
 * for, by then. A fixed delay after finish is foreseen as if runs took no time.
 */
export async function forecast(
  store: Store,
  queues: readonly string[],
  until: number,
  limit: number,
  owner: string | undefined,
): Promise<Upcoming[]> {
  await store.calendars.refresh();
  const upcoming: Upcoming[] = [];
  for (const { name, task } of await dueTasks(store, queues, until, limit, owner)) {
    try {
      addOccurrences(store, name, task, until, upcoming);
    } catch {
      // Stored by someone else than Carillon, its schedule means nothing. The others' are told.
    }
  }
  return upcoming.sort((a, b) => a.due - b.due || (a.task.id < b.task.id ? -1 : 1)).slice(0, limit);
}

function addOccurrences(
  store: Store,
  name: TaskName,
  task: StoredTask,
  until: number,
  upcoming: Upcoming[],
): void {
  if (task.state !== "scheduled") return;
  for (const one of timesOf(task.pending)) if (one.due <= until) upcoming.push({ task: name, ...one });
  const schedule = store.calendars.schedules.get(task.definition.schedule, task.definition.id);
  let slot =
    task.nominal === undefined || task.due === undefined
      ? undefined
      : { nominal: task.nominal, due: task.due };
  for (let n = 0; slot && slot.due <= until && n < MOST_OF_ONE && !schedule.spent(task.fired + n); n++) {
    upcoming.push({ task: name, ...slot });
    slot = schedule.slotAfter(slot.nominal);
  }
}

async function dueTasks(
  store: Store,
  queues: readonly string[],
  until: number,
  limit: number,
  owner: string | undefined,
): Promise<{ name: TaskName; task: StoredTask }[]> {
  if (owner !== undefined) return ownedTasks(store, queues, until, owner);
  const names = await Promise.all(
    queues.map(async (queue) =>
      (await store.tasks.due(queue, until, limit)).map((local) => ({ queue, local })),
    ),
  );
  const tasks = await Promise.all(
    names.flat().map(async ({ queue, local }) => {
      const name = { queue, ...parseLocalName(local) };
      return { name, task: await store.tasks.get(name).catch(unlessUnsupported) };
    }),
  );
  return tasks.flatMap(({ name, task }) => (task ? [{ name, task }] : []));
}

/** A newer version's task, or nobody's: what others have to come is told all the same. */
function unlessUnsupported(error: unknown): undefined {
  if (!isCarillonError(error, "UNSUPPORTED_FORMAT")) throw error;
}

/** Through one owner's tasks: what others have due would hide them. */
async function ownedTasks(
  store: Store,
  queues: readonly string[],
  until: number,
  owner: string,
): Promise<{ name: TaskName; task: StoredTask }[]> {
  const found: { name: TaskName; task: StoredTask }[] = [];
  for (const queue of queues) {
    let cursor: string | undefined;
    do {
      const page = await store.tasks.list({ queue, owner, state: "scheduled" }, PAGE, cursor);
      for (const task of page.tasks) {
        if ((nextOf(task)?.due ?? Number.POSITIVE_INFINITY) <= until)
          found.push({ name: { queue, owner, id: task.definition.id }, task });
      }
      cursor = page.cursor;
    } while (cursor !== undefined);
  }
  return found;
}
