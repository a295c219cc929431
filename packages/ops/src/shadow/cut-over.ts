import { setTimeout as delay } from "node:timers/promises";
import { CarillonError, type TaskName, type TaskRef } from "@carillon/core";
import { conflict } from "@carillon/core/internal";
import type { AuthorOptions, Client } from "@carillon/sdk";
import { notFound, type Scope, scopeOf } from "@carillon/sdk/internal";
import { newToken, type Store, type StoredTask } from "@carillon/store";
import {
  type FoundScheduler,
  findScheduler,
  giveBack,
  type OldScheduler,
  type Receipt,
  readReceipt,
  renewReceipt,
  takeOver,
} from "@carillon/store/internal";

/** Tries of a change of two systems, and ms between them: a scheduler that fires every second is seldom caught at rest. */
const [TRIES, PAUSE] = [50, 100];
/** In the note of each pause of ours. */
const OURS = "do not resume";

export interface CutOverOptions extends AuthorOptions {
  /** Checks what it can, says what it would do, and changes nothing. */
  readonly dryRun?: boolean | undefined;
  /** For tests. */
  readonly seams?: { readonly script?: string; readonly wait?: () => Promise<void> };
}

/** Effects of a cut-over, intended or done. Times in UTC ms. */
export interface CutOver {
  readonly task: TaskName;
  /** The first time that the new side fires. */
  readonly next: number;
  /** Whether nothing is left to do. */
  readonly done: boolean;
  /** The old scheduler as it is stored, or was. */
  readonly definition: Readonly<Record<string, string>>;
}

/**
 * Lets a shadow take over from a scheduler of BullMQ, from that one's next time on. Each step leaves a state from which the same call goes on:
 *
 * 1. The task is paused: it decides no more, and owes what comes. The old scheduler goes on.
 * 2. The old scheduler is removed, with a receipt, in one script that has no effect if it fired meanwhile. From here on nothing fires;
 *    the task owes all times from `next` on.
 * 3. The task is resumed, live, from `next` on. What it owes is late, by its catch-up policy.
 *
 * So a process that dies in between makes the next occurrence late, and never doubles or loses one.
 *
 * @throws `CONFLICT` if the task has other times, or the scheduler's job does not come to rest: the shadow then goes on as before
 */
export async function cutOver(
  client: Client,
  ref: TaskRef,
  old: OldScheduler,
  { by, dryRun, seams: { script, wait = () => delay(PAUSE) } = {} }: CutOverOptions = {},
): Promise<CutOver> {
  const { store, scope, name, author } = await located(client, ref, by);
  const [before, there, kept] = await Promise.all([read(store, name), findScheduler(old), readReceipt(old)]);
  const { next: first, definition: stored } = there ?? kept ?? {};
  if (first === undefined || !stored) throw nothingThere(old);
  const done = !there && before.definition.mode !== "shadow";
  if (there) assertShadow(before);
  assertSameNext(store, before, first);
  if (dryRun || done) return { task: name, next: first, definition: stored, done };
  assertOurs(before);
  const token = newToken();
  const note = `cut-over from BullMQ: repeat carillon cutover ${name.id}, ${OURS}`;
  let receipt: Receipt | undefined;
  for (let tries = 0; !receipt; tries++) {
    await store.tasks.pause(name, author, note);
    const [task, found] = await Promise.all([read(store, name), findScheduler(old)]);
    try {
      if (!found) receipt = await readReceipt(old);
      // An earlier call has removed it. Without a receipt it has fired for the last time, or was removed by others.
      if (!found && !receipt) throw nothingThere(old);
      if (found) {
        assertShadow(task);
        assertSameNext(store, task, found.next);
        if (isReady(task, found))
          receipt = await takeOver(old, found, { token, fired: task.fired, ...(script && { script }) });
        if (!receipt && tries >= TRIES) throw busy(old, found);
      }
    } catch (error) {
      // The pause stays if the result is unknown: the same call goes on.
      if (error instanceof CarillonError) await store.tasks.resume(name, "catch-up", author);
      throw error;
    }
    if (!receipt) await wait();
  }
  const { next, definition } = receipt;
  await goOn(scope, name, next - 1, "live", author);
  return { task: name, next, definition, done: true };
}

/**
 * Gives a schedule back to BullMQ, as its receipt has it. The task is paused, its next time becomes the old scheduler's, and it goes on as a
 * shadow. A process that dies in between leaves the task paused; the same call goes on.
 *
 * @throws `CONFLICT` if there is no receipt, or no time left
 */
export async function goBack(
  client: Client,
  ref: TaskRef,
  old: OldScheduler,
  { by, dryRun, seams: { wait = () => delay(PAUSE) } = {} }: CutOverOptions = {},
): Promise<CutOver> {
  const { store, scope, name, author } = await located(client, ref, by);
  let [receipt, found] = await Promise.all([readReceipt(old), findScheduler(old)]);
  if (!receipt && !found)
    throw conflict(`the queue ${old.queue} has no receipt of ${old.id}.`, "Put the scheduler manually.");
  let task = await read(store, name);
  const definition = (receipt ?? found)?.definition ?? {};
  // A cut-over that ended halfway owes no time before its own.
  const nextOf = ({ nominal = 0 }: StoredTask) => Math.max(nominal, receipt?.next ?? 0);
  if (dryRun)
    return {
      task: name,
      next: nextOf(task),
      definition,
      done: !receipt && task.definition.mode === "shadow",
    };
  assertOurs(task);
  if (receipt) receipt = await renewReceipt(old, receipt, newToken());
  // An earlier call may have given it back meanwhile.
  found = await findScheduler(old);
  for (let tries = 0; ; tries++) {
    await store.tasks.pause(
      name,
      author,
      `back to BullMQ: repeat carillon cutover ${name.id} --back, ${OURS}`,
    );
    const now = await store.tasks.time(name.queue);
    task = await read(store, name);
    // BullMQ catches up on a single time: what is owed by now is ours.
    if (found || task.definition.mode === "shadow" || (task.nominal ?? now + 1) > now || tries >= TRIES)
      break;
    await store.tasks.resume(name, "catch-up", author);
    await wait();
  }
  const { nominal, fired } = task;
  const next = nextOf(task);
  try {
    if (nominal === undefined) throw conflict(`${name.id} has no next time.`, "Wait for the end of its run.");
    if (!found && !(receipt && (await giveBack(old, receipt, { next, fired }))))
      throw conflict("the receipt has changed meanwhile.", "Try again.");
  } catch (error) {
    if (error instanceof CarillonError) await store.tasks.resume(name, "catch-up", author);
    throw error;
  }
  await goOn(scope, name, "catch-up", "shadow", author);
  return { task: name, next, definition, done: true };
}

async function located(client: Client, ref: TaskRef, by?: string) {
  const scope = scopeOf(client);
  const name = await scope.locate(ref);
  return { scope, store: scope.store, name, author: scope.author(by).replace(/\s/g, "_") };
}

async function read(store: Store, name: TaskName): Promise<StoredTask> {
  const [task] = await Promise.all([store.tasks.get(name), store.calendars.refresh()]);
  if (!task) throw notFound(name);
  return task;
}

/** Resumes, also if someone has resumed it meanwhile. */
async function goOn(
  scope: Scope,
  name: TaskName,
  missed: "catch-up" | number,
  mode: "live" | "shadow",
  by: string,
): Promise<void> {
  const { tasks } = scope.store;
  let paused: string = "OK";
  while (paused !== "FINISHED" && (await tasks.resume(name, missed, by, { mode })) === "UNCHANGED")
    paused = await tasks.pause(name, by);
  scope.log("resume", name, by, { details: { missed, mode } });
}

/** Whether the time is not decided, and its job is delayed. */
function isReady({ cursor = 0 }: StoredTask, { next, made }: FoundScheduler): boolean {
  return made !== undefined && cursor < next;
}

/** A pause by a person has its own end. */
function assertOurs({ definition: { id }, state, paused }: StoredTask): void {
  if (state === "paused" && !paused?.note?.endsWith(OURS))
    throw conflict(`${id} is paused.`, "Resume it first.");
}

function assertShadow({ definition: { id, mode }, state }: StoredTask): void {
  if (mode !== "shadow")
    throw conflict(
      `${id} is live, and the old scheduler fires too.`,
      "Put the task as a shadow, or remove one of the two.",
    );
  if (state === "finished") throw conflict(`${id} is finished.`, "Change its schedule.");
}

/** A task with other times would miss or double some. */
function assertSameNext(store: Store, { definition }: StoredTask, next: number): void {
  const schedule = store.calendars.schedules.get(definition);
  const ours = schedule.next(next - 1);
  if (ours === next) return;
  const time = (at: number | undefined) => (at === undefined ? "none" : new Date(at).toISOString());
  throw conflict(
    `the old scheduler fires next at ${time(next)}, and ${definition.id} at ${time(ours)}.`,
    "Compare the two with carillon shadow report, and change the schedule.",
  );
}

function nothingThere({ queue, id }: OldScheduler): CarillonError {
  return conflict(
    `BullMQ's queue ${queue} has no job scheduler ${id}, and no receipt of one.`,
    "Check queue, prefix and id.",
  );
}

function busy({ queue, id }: OldScheduler, { next }: FoundScheduler): CarillonError {
  return conflict(
    `the job of ${id} for ${new Date(next).toISOString()} is not waiting for its time: it is due, or gone.`,
    `Try again when a worker of ${queue} has taken it.`,
  );
}
