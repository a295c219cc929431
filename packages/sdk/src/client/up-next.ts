import { CarillonError, type Duration, isCarillonError, type TaskName } from "@carillon/core";
import {
  assertOptions,
  covers,
  durationOption,
  type Freeze,
  type Frozen,
  frozenAt,
  MAX_DURATION,
  parseLocalName,
  scheduleSteps,
} from "@carillon/core/internal";
import { nextOf, type Store, type StoredTask } from "@carillon/store";
import { foresee } from "./forecast.js";
import { wholeNumber } from "./input.js";
import type { Scope } from "./scope.js";
import { TimeSlice } from "./time-slice.js";

/** An occurrence to come. Times in UTC ms. */
export interface Upcoming {
  readonly task: TaskName;
  readonly nominal: number;
  readonly due: number;
  /** The freeze that skips it at its due time, or holds it beyond. Absent: none, as far as is known now. */
  readonly frozen?: Frozen;
}

export interface UpNextOptions {
  queue?: string | undefined;
  limit?: number | undefined;
}

export interface ForecastOptions extends UpNextOptions {
  within: Duration;
}

/** Tasks read at a time. */
const PAGE = 500;
/** Tasks of a queue that are read for one answer. */
const MOST_READ = 100_000;

/** The tasks that are acted on next, earliest first. @throws `INVALID_OPTION` */
export async function upNext(scope: Scope, options: UpNextOptions): Promise<Upcoming[]> {
  assertOptions(options, ["queue", "limit"]);
  const limit = wholeNumber(options.limit ?? 20, "limit", 1, 1_000);
  const queues = await scope.queuesOf(options.queue);
  const { store, owner } = scope;
  const freezes = await store.freezes.list();
  const now = freezes.length === 0 ? 0 : await store.freezes.time();
  return widening(limit, async (most) => {
    const { tasks, horizon } = await dueTasks(store, queues, Number.POSITIVE_INFINITY, most, owner);
    const found = tasks.flatMap(({ name, task }) => {
      const next = nextOf(task);
      return next ? [{ task: name, ...next, ...frozenBy(freezes, task, Math.max(now, next.due)) }] : [];
    });
    return { found: found.sort((a, b) => a.due - b.due).slice(0, limit), horizon };
  });
}

function frozenBy(freezes: readonly Freeze[], { definition }: StoredTask, at: number): { frozen?: Frozen } {
  const frozen = frozenAt(
    freezes.filter((one) => covers(one, definition)),
    at,
  );
  return frozen ? { frozen } : {};
}

/**
 * Each occurrence that is enqueued from now until the end of `within`, by the current schedules, earliest first.
 * Includes retries and requested runs that are due by then, and owed occurrences that the catch-up policy keeps, now.
 * Occurrences that a freeze skips, or holds beyond that time, are marked. A fixed delay after finish is computed as if
 * runs took no time. With more than `limit`: the earliest of all tasks.
 * @throws `INVALID_OPTION` if the forecast takes too many steps
 */
export async function forecast(scope: Scope, options: ForecastOptions): Promise<Upcoming[]> {
  assertOptions(options, ["within", "queue", "limit"]);
  const limit = wholeNumber(options.limit ?? 1_000, "limit", 1, 100_000);
  const within = durationOption(options.within ?? "", "within", 1, MAX_DURATION);
  const queues = await scope.queuesOf(options.queue);
  const { store, owner } = scope;
  const now = queues[0] === undefined ? 0 : await store.tasks.time(queues[0]);
  const until = now + within;
  const [freezes] = await Promise.all([store.freezes.list(), store.calendars.refresh()]);
  const slice = new TimeSlice();
  return widening(limit, async (most) => {
    const { tasks, horizon } = await dueTasks(store, queues, until, most, owner);
    slice.begin();
    let found: Upcoming[] = [];
    let end = Number.POSITIVE_INFINITY;
    for (const { name, task } of tasks) {
      const steps = scheduleSteps(task.definition.schedule);
      if (slice.took(steps) && !(await slice.next())) throw new TooMuch();
      try {
        for (const one of foresee(store, task, now, until, freezes)) {
          if (slice.took(steps) && !(await slice.next())) throw new TooMuch();
          if (one === undefined) continue;
          if (one.due >= end) break;
          found.push({ task: name, ...one });
          if (found.length < 2 * limit) continue;
          found = found.sort(inOrder).slice(0, limit);
          end = found.at(-1)?.due ?? end;
        }
      } catch (error) {
        if (error instanceof TooMuch) throw error;
        // Skips tasks with corrupt or foreign schedules.
      }
    }
    return { found: found.sort(inOrder).slice(0, limit), horizon: Math.max(horizon, now) };
  });
}

/** Ends a forecast that takes too many steps, because of many tasks or costly schedules. */
class TooMuch extends CarillonError {
  constructor() {
    super("INVALID_OPTION", "the forecast takes too many steps.", {
      field: "within",
      remedy: "Ask for a shorter time, a smaller limit, or one queue.",
    });
  }
}

function inOrder(a: Upcoming, b: Upcoming): number {
  return a.due - b.due || (a.task.id < b.task.id ? -1 : a.task.id > b.task.id ? 1 : 0);
}

/**
 * Tasks are read in the order of their next checks, but the resulting times may be later, or there may be none. So it
 * reads on until no unread task can come before the last one found.
 */
async function widening(
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

async function dueTasks(
  store: Store,
  queues: readonly string[],
  until: number,
  most: number,
  owner: string | undefined,
): Promise<DueTasks> {
  if (owner !== undefined) {
    return { tasks: await ownedTasks(store, queues, until, owner), horizon: Number.POSITIVE_INFINITY };
  }
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
