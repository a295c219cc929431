import type { TaskName } from "@carillon/core";
import { grouped, localName, parseLocalName, type ScheduleCache } from "@carillon/core/internal";
import type { CheckedTask } from "@carillon/sdk/internal";
import { heldFor, type PlannedPut, type Store, type StoredTask } from "@carillon/store";
import { keyOf, nameOf } from "../bulk/bulk.js";
import { isCopy } from "../tasks/move.js";
import type { SetTask } from "./set.js";

/** Tasks read at once. */
const PAGE = 500;

/** A task of the set as it was given, and as it was checked. */
export interface Wanted {
  /** Names it among all tasks, as the set says. */
  readonly key: string;
  readonly task: CheckedTask;
  readonly given: SetTask;
}

/** Its place in Redis, and in the set. */
export interface Place extends Wanted {
  /** Its name as stored: `to` itself, unless it is to be renamed. */
  readonly from: TaskName;
  /** Its name after the apply: in another queue than the set says if a person moved it. */
  readonly to: TaskName;
}

/** The tasks of a set, and those that were removed from it and are still there. */
export interface Owned {
  readonly members: ReadonlyMap<string, TaskName>;
  readonly retired: ReadonlyMap<string, { readonly task: TaskName; readonly at: number }>;
}

export async function owned(store: Store, set: string): Promise<Owned> {
  const members = new Map<string, TaskName>();
  const retired = new Map<string, { task: TaskName; at: number }>();
  for (const queue of await store.registry.queues()) {
    for (const [local, at] of await store.tasks.owned(queue, set)) {
      const task = { queue, ...parseLocalName(local) };
      if (at === 0) members.set(keyOf(task), task);
      else retired.set(keyOf(task), { task, at });
    }
  }
  return { members, retired };
}

/** Finds the tasks that are to be renamed, and those that have another queue than the set says. */
export async function placesOf(
  store: Store,
  wanted: ReadonlyMap<string, Wanted>,
  members: ReadonlyMap<string, TaskName>,
): Promise<Place[]> {
  const elsewhere = new Map<string, TaskName>();
  for (const [key, task] of members) if (!wanted.has(key)) elsewhere.set(localName(task), task);
  const places: Place[] = [];
  for (const [key, one] of wanted) {
    const to = nameOf(one.task);
    if (elsewhere.size === 0 || (members.has(key) && one.given.renamedFrom === undefined)) {
      places.push({ ...one, from: to, to });
      continue;
    }
    const same = elsewhere.get(localName(to));
    const { renamedFrom } = one.given;
    const former =
      same ?? (renamedFrom === undefined ? undefined : elsewhere.get(localName({ ...to, id: renamedFrom })));
    const stored = former && (await store.tasks.get(former));
    // The rename was interrupted if it is held for one.
    const held = stored?.moving === heldFor(to);
    const there = held || !stored ? undefined : await store.tasks.get(to);
    if (!former || !stored || (there && !isCopy(there, former))) {
      places.push({ ...one, from: to, to });
      continue;
    }
    elsewhere.delete(localName(former));
    // A person moved it: it stays there.
    const kept = stored.set?.filed === to.queue;
    const queue = kept ? former.queue : to.queue;
    const moved = { ...to, queue };
    const task = { ...one.task, definition: { ...one.task.definition, queue } };
    places.push({
      ...{ ...one, task, to: moved },
      ...(keyOf(former) === keyOf(moved) ? { key: keyOf(moved), from: moved } : { from: former }),
    });
  }
  return places;
}

/** Compares each place with what is stored there: a page at a time, so that stored definitions are not held. */
export async function* plannedPuts(
  store: Store,
  set: string,
  places: readonly Place[],
  schedules: ScheduleCache | undefined,
): AsyncGenerator<{ place: Place; planned: PlannedPut }> {
  for (const [queue, all] of grouped(places, ({ from }) => from.queue)) {
    for (let at = 0; at < all.length; at += PAGE) {
      const some = all.slice(at, at + PAGE);
      const drafts = some.map(({ task, from, to }) =>
        from === to ? task : { ...task, definition: { ...task.definition, ...from } },
      );
      const filed = new Map(some.map(({ given, from }) => [localName(from), given.queue]));
      const planned = await store.tasks.plan(queue, drafts, { set: { name: set, filed }, schedules });
      for (const [i, one] of planned.entries()) yield { place: some[i] as Place, planned: one };
    }
  }
}

/** Those of these tasks that are still there. */
export async function* stored(store: Store, tasks: readonly TaskName[]): AsyncGenerator<StoredTask> {
  for (let at = 0; at < tasks.length; at += PAGE) {
    const some = await Promise.all(tasks.slice(at, at + PAGE).map((task) => store.tasks.get(task)));
    yield* some.filter((one) => one !== undefined);
  }
}
