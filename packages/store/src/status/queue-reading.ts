import type { TaskName } from "@carillon/core";
import { parseLocalName, type Work } from "@carillon/core/internal";
import type { QueuePause, QueueState } from "../bull/queues.js";
import type { Store } from "../store.js";
import { nextOf } from "../task/next-of.js";
import type { Coverage } from "./coverage.js";

/** A queue, and how far its occurrences are behind. For a bound client: without the jobs of all owners. */
export interface QueueStatus extends Partial<Omit<QueueState, "paused">> {
  readonly name: string;
  /**
   * Workers take no jobs. Since when (UTC ms), by whom and why, as far as the pause recorded it: one by plain BullMQ
   * does not. Absent: it is not paused.
   */
  readonly paused?: QueuePause | undefined;
  /** BullMQ workers that are connected, plain ones included. Undefined: Redis does not say. */
  readonly workers: number | undefined;
  /** Age of the oldest due occurrence that no node has claimed, in ms; 0: none. */
  readonly behind: number;
}

/** Scope of a status: a whole namespace, or one owner. */
export interface StatusScope {
  readonly store: Store;
  readonly coverage: Coverage;
  readonly owner?: string | undefined;
}

/** From this many ms on an occurrence is late. */
export const LATE = 1_000;
/** Waiting runs, and due tasks, of a queue that are read for their types. */
export const SAMPLE = 50;

/** From this many ms on a task that a move holds is reported: the move was interrupted, or waits for runs. */
const HELD_PATIENCE = 60_000;
/** Tasks of a queue that are named for being held. */
const HELD_NAMED = 5;

export interface QueueReading {
  readonly queue: QueueStatus;
  /** Undefined: its keys hold foreign data. */
  readonly state: QueueState | undefined;
  /** Time since which jobs wait in it, UTC ms; undefined: none does. For a bound client, jobs of its owner. */
  readonly since: number | undefined;
  /** When the oldest run that waits for its first attempt was enqueued, UTC ms. */
  readonly enqueued: number | undefined;
  /** The types of its waiting runs and due tasks. */
  readonly works: readonly Work[];
  readonly moving: readonly Held[];
}

/** A task that a move holds. */
export interface Held {
  readonly name: TaskName;
  readonly mark: string;
  readonly since: number;
}

async function heldByMoves(
  { store, owner }: Pick<StatusScope, "store" | "owner">,
  queue: string,
  now: number,
): Promise<Held[]> {
  const held = await store.moves.held(queue, now - HELD_PATIENCE, HELD_NAMED);
  const all = await Promise.all(
    held.map(async ({ local, since }): Promise<Held[]> => {
      const name = { queue, ...parseLocalName(local) };
      if (owner !== undefined && name.owner !== owner) return [];
      const task = await store.tasks.get(name).catch(() => undefined);
      return task?.moving === undefined ? [] : [{ name, mark: task.moving, since }];
    }),
  );
  return all.flat();
}

export async function readQueue(
  { store, owner }: StatusScope,
  name: string,
  workers: number | undefined,
  now: number,
): Promise<QueueReading> {
  const [state, earliest = now] = await Promise.all([
    store.queues.state(name),
    store.claims.earliestDue(name),
  ]);
  const [moving, ids, held] = await Promise.all([
    heldByMoves({ store, owner }, name, now),
    state?.waiting ? store.queues.waiting(name, SAMPLE) : [],
    // BullMQ's workers give back the jobs of a dead one: without any, its runs go on for ever.
    workers === 0 && state?.active ? store.queues.held(name, SAMPLE) : [],
  ]);
  const [runs, tasks] = await Promise.all([
    store.runs.many(name, [...ids, ...held]),
    earliest < now ? store.tasks.listDue({ queue: name, owner }, SAMPLE).then((page) => page.tasks) : [],
  ]);
  const ours = runs.filter(({ task }) => owner === undefined || task.owner === owner);
  const dues = tasks.flatMap((task) => {
    const { due = now } = nextOf(task) ?? {};
    return due < now ? [{ due, type: task.definition.type }] : [];
  });
  const due = owner === undefined ? earliest : Math.min(now, ...dues.map((one) => one.due));
  const { paused, ...jobs } = state ?? ({} as Partial<QueueState>);
  return {
    queue: {
      name,
      behind: Math.max(0, now - due),
      ...(paused && { paused }),
      workers,
      ...(owner === undefined && jobs),
    },
    state,
    enqueued: waitsSince(
      ours.flatMap((run) => (run.state === "queued" && run.started === undefined ? [run.enqueued] : [])),
    ),
    since: waitsSince(
      owner === undefined
        ? [now - (jobs.oldestWaitingMs ?? Number.NaN)]
        : ours.map(({ enqueued }) => enqueued),
    ),
    moving,
    works: [...new Set([...ours, ...dues].map(({ type }) => type))].map((type) => ({ queue: name, type })),
  };
}

export function waitsSince(times: readonly number[]): number | undefined {
  const known = times.filter(Number.isFinite);
  return known.length > 0 ? Math.min(...known) : undefined;
}
