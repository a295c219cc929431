import { setTimeout as delay } from "node:timers/promises";
import {
  ALERTS_QUEUE,
  CarillonError,
  type Duration,
  isCarillonError,
  type TaskName,
  type TaskRef,
} from "@carillon/core";
import { assertName, conflict, durationOption, localName, MAX_DURATION } from "@carillon/core/internal";
import { notFound, type Scope } from "@carillon/sdk/internal";
import { copyOf, heldFor, moveOf, type Store, type StoredTask } from "@carillon/store";
import { z } from "zod";
import { nameOf } from "../bulk/bulk.js";
import { operation } from "../operation.js";
import { duration, given, refOf, taskName, taskRef } from "../shapes.js";

/** Time between two checks for open runs, in ms. */
const POLL = 100;
/** Number of copies after which a task that keeps changing is released. */
const TRIES = 10;

/**
 * Takes its times, pause, waiting occurrences, counters, checkpoint, skips and revisions along; records of its runs are deleted. No
 * occurrence is lost or enqueued twice. If the call dies, repeat it: the task is held until then. `CONFLICT`, and nothing changed, if the
 * other queue has such a task, its runs do not end within `wait`, or a backfill of it is running.
 */
export const moveTask = operation({
  http: "POST /tasks/:queue/:owner/:id/move",
  role: "admin",
  reach: "owner",
  logs: "move",
  once: {
    known: "state",
    leaves: "held",
    against: [
      ["tasks.pauseMany", { tag: "moved" }],
      ["tasks.move", { to: "drums" }],
    ],
  },
  example: { id: "m1", to: "gongs" },
  summary:
    "Moves a task to another queue, with its times, pause, counters and skips; records of its runs are deleted. Nothing is claimed meanwhile. Refused, and undone, if its open runs do not end. If it is interrupted, repeat it.",
  input: z.strictObject({
    ...taskRef,
    to: given.describe("The other queue."),
    wait: duration.optional().describe("Longest wait for the end of its open runs. Default: `5s`."),
  }),
  output: z.object({ task: taskName, changed: z.boolean().describe("False: it was in that queue already.") }),
  async run({ scope, by, log }, { to: given, wait: patience, ...ref }) {
    const wait = durationOption(patience as Duration | undefined, "wait", 0, MAX_DURATION) ?? 5_000;
    const queue = assertName(given, "to");
    if (queue === ALERTS_QUEUE)
      throw new CarillonError("FORBIDDEN", "only alerts go through this queue.", { field: "to" });
    const { source, target, to, queue: named } = await bothOf(scope, refOf(ref), queue);
    if (!source) {
      if (!target) throw notFound({ ...to, queue: named ?? queue });
      // An earlier call ended after it had deleted the original, or before its answer arrived.
      if (moveOf(target)?.isCopy) await scope.store.moves.end(to);
      return { task: to, changed: false };
    }
    const from = nameOf(source);
    await relocate(scope.store, from, to, wait, by);
    log(to, { details: { from: from.queue } });
    return { task: to, changed: true };
  },
});

/**
 * Gives a task another queue, another id, or both. Interrupted, it is repeated with what is stored then.
 * @throws `CONFLICT`, and nothing changed
 */
export async function relocate(
  store: Store,
  from: TaskName,
  to: TaskName,
  wait: number,
  by: string,
): Promise<void> {
  try {
    await hold(store, from, to);
    await moveHeld(store, from, to, wait, by);
  } catch (error) {
    if (!isCarillonError(error) || !(await isMoved(store, from, to))) throw error;
  }
}

async function moveHeld(store: Store, from: TaskName, to: TaskName, wait: number, by: string): Promise<void> {
  try {
    // None starts while the task is held.
    await assertNoBackfill(store, from);
    await untilIdle(store, from, wait);
    await copyAndDelete(store, from, to, by);
  } catch (error) {
    await letGo(store, from, to).catch(() => {});
    throw error;
  }
  await store.moves.end(to);
}

/** Whether the same call, made twice at once, has ended this move: only a move deletes a task that is held. */
async function isMoved(store: Store, from: TaskName, to: TaskName): Promise<boolean> {
  const [source, target] = await Promise.all([store.tasks.get(from), store.tasks.get(to)]);
  return !source && target !== undefined && target.moving === undefined;
}

/** Ends an interrupted move that will not be continued. The original goes on, or the copy if the original was deleted. */
export async function release(store: Store, name: TaskName): Promise<void> {
  const task = await store.tasks.get(name);
  const move = task && moveOf(task);
  if (move) await (move.isCopy ? letGo(store, move.other, name) : letGo(store, name, move.other));
}

interface Both {
  readonly source: StoredTask | undefined;
  readonly target: StoredTask | undefined;
  readonly to: TaskName;
  /** The queue given in the reference. */
  readonly queue: string | undefined;
}

async function bothOf(scope: Scope, ref: TaskRef, queue: string): Promise<Both> {
  const { store } = scope;
  const { queue: named, owner, id } = scope.resolve(ref);
  const to = { queue, owner, id };
  const target = await store.tasks.get(to);
  const move = target && moveOf(target);
  const queues = new Set(named === undefined ? await scope.queues() : [named]);
  if (move?.isCopy) queues.add(move.other.queue);
  queues.delete(queue);
  const read = await Promise.all([...queues].map((one) => store.tasks.get({ queue: one, owner, id })));
  const [source, ...others] = read.filter((one) => one !== undefined);
  if (others.length > 0) {
    throw new CarillonError("AMBIGUOUS_TASK", `${localName(to)} exists in several queues.`, {
      field: "queue",
      remedy: "Name the queue.",
    });
  }
  return { source, target, to, queue: named };
}

/** Stops all claims of a task. If it is held for this move already, or a copy of it exists, an earlier call was interrupted: this one continues. */
async function hold(store: Store, from: TaskName, to: TaskName): Promise<void> {
  const mark = heldFor(to);
  for (;;) {
    const [source, target] = await Promise.all([store.tasks.get(from), store.tasks.get(to)]);
    if (!source) throw notFound(from);
    if (source.moving === mark) return;
    if (source.moving !== undefined)
      throw conflict(`${from.id} is being moved ${where(source.moving)}.`, "Repeat that move.");
    if (target && !isCopy(target, from))
      throw conflict(`${to.id} exists in queue ${to.queue} already.`, "Delete one of the two.");
    if ((await store.moves.hold(source, mark)) === "OK") return;
  }
}

/** Whether it is the copy of another task, made by a move that has not ended. */
export function isCopy(task: StoredTask, of: TaskName): boolean {
  return task.moving?.startsWith(`${copyOf(of)} `) ?? false;
}

async function assertNoBackfill(store: Store, name: TaskName): Promise<void> {
  for await (const page of store.backfills.all(name.queue)) {
    const running = page.find(
      ({ task, state }) => state === "running" && localName(task) === localName(name),
    );
    if (running) {
      const what = `the backfill ${running.id} of ${name.id} is running.`;
      throw conflict(what, "Wait for its end, or cancel it.");
    }
  }
}

async function untilIdle(store: Store, name: TaskName, wait: number): Promise<void> {
  const end = performance.now() + wait;
  while ((await store.runs.open(name, 1)).length > 0) {
    if (performance.now() >= end)
      throw conflict(
        `runs of ${name.id} are not over.`,
        "Wait for their end, cancel them, or give a longer wait.",
      );
    await delay(POLL);
  }
}

/** Copies the task, and deletes the original only if it did not change after it was read. */
async function copyAndDelete(store: Store, from: TaskName, to: TaskName, by: string): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    const source = await store.tasks.get(from);
    // The answer of the delete was lost: nobody else deletes a task that is held.
    if (!source) return;
    if (source.moving === undefined)
      throw conflict(`${from.id} was released while it was moved.`, "Repeat the move.");
    const { definition, payloadJson, generation: gen } = source;
    const task = { definition: { ...definition, ...to, enabled: false }, payloadJson };
    // The first write marks it as a copy: others must not act on it.
    await store.tasks.put(to.queue, [task], { once: source.fields.has("once"), by, copyOf: copyOf(from) });
    const { answer, generation } = await store.moves.adopt(from, to);
    if (answer === "TAKEN")
      throw conflict(`another ${to.id} was put in queue ${to.queue} meanwhile.`, "Delete one of the two.");
    if (answer === "OK" && generation === gen && (await store.tasks.delete(from, { gen }))) return;
  }
  throw conflict(`${from.id} kept changing while it was moved.`, "Repeat the move.");
}

/** Undoes a move that failed: the original continues, and its copy is deleted. If the original was deleted, the copy is the task. */
async function letGo(store: Store, from: TaskName, to: TaskName): Promise<void> {
  // Must come first: it invalidates a delete that is still on its way.
  await store.moves.end(from);
  for (let tries = 0; tries < TRIES; tries++) {
    const source = await store.tasks.get(from);
    const copy = await store.tasks.get(to);
    if (!copy || !isCopy(copy, from)) return;
    if (!source) return void (await store.moves.end(to));
    // Another move of it has begun, and may have copied it already.
    if (source.moving !== undefined || Number(source.generation) < (moveOf(copy)?.generation ?? 0)) return;
    if (await store.tasks.delete(to, { gen: copy.generation })) return;
  }
}

function where(moving: string): string {
  const [direction, queue] = moving.split(" ");
  return `${direction} queue ${queue}`;
}
