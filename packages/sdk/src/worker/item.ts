import { redisError } from "@carillon/store";
import type { ItemContext } from "../context.js";
import { PermanentError } from "../permanent-error.js";
import { type AnyFanOutType, isFanOut } from "../task-type.js";
import type { Active } from "./active.js";
import { printingTo } from "./console-capture.js";
import { errorText, isPermanent, LockLostError, resultJson } from "./errors.js";
import type { ItemData } from "./item-data.js";
import type { Taken } from "./job-end.js";
import { cutJson } from "./json.js";
import { through } from "./middleware.js";
import { Output } from "./output.js";
import type { Parts } from "./parts.js";
import { logOf } from "./run-context.js";
import type { Semaphore } from "./semaphore.js";
import { TimeBox } from "./time-box.js";
import { type JobEnd, verdictOf } from "./verdict.js";

/** Crashes after which an item is not retried. */
const MOST_CRASHES = 3;
/** In characters. */
const LONGEST_ERROR = 500;
/** Size limit as JSON, in characters: the run's job keeps the results of all its items. */
const LONGEST_RESULT = 16 * 1024;
/** Longest JSON, in characters, of a result in an item's record, and of the data of an item that did not fail. */
const LONGEST_KEPT = 1024;
/** Longest output of an attempt in the record, in bytes. */
const LARGEST_OUTPUT = 2048;

/** One attempt at one item of a run. A failure is logged: only the run as a whole has events. */
export async function workItem(
  parts: Parts,
  semaphore: Semaphore | undefined,
  taken: Taken<ItemData>,
): Promise<JobEnd> {
  const end = await attemptItem(parts, semaphore, taken);
  if (end.end === "fail") {
    const details = { ...aboutItem(taken), attempt: attemptOf(taken), error: errorText(end.error) };
    parts.logger.warn(details, "item failed");
  }
  return end;
}

async function attemptItem(
  parts: Parts,
  semaphore: Semaphore | undefined,
  taken: Taken<ItemData>,
): Promise<JobEnd> {
  const { queue, job } = taken;
  const { run } = job.data.occurrence;
  const box = new TimeBox(parts.clock);
  const output = new Output(LARGEST_OUTPUT);
  const { index } = job.data;
  const active: Active = {
    queue,
    run,
    task: aboutItem(taken).task,
    job: String(job.id),
    attempt: attemptOf(taken),
    box,
    output,
    item: { index, token: taken.token },
  };
  const leave = parts.active.enter(active);
  try {
    const end = await inTurn(parts, semaphore, taken, box, output);
    output.close();
    // Sent first: whoever reads the end finds the output.
    const saved = parts.outputs.save(active);
    await noteEnd(parts, taken, end, box);
    await saved;
    return end;
  } finally {
    leave();
    parts.items.moved(queue, run);
  }
}

async function inTurn(
  parts: Parts,
  semaphore: Semaphore | undefined,
  taken: Taken<ItemData>,
  box: TimeBox,
  output: Output,
): Promise<JobEnd> {
  const { queue, job } = taken;
  const type = parts.types.get(job.name);
  if (!type || !isFanOut(type)) {
    return {
      end: "fail",
      error: new PermanentError(`This worker has no process function for items of task type ${job.name}.`),
    };
  }
  const crashes = crashesOf(taken);
  if (crashes >= MOST_CRASHES)
    return { end: "fail", error: new PermanentError(`crashed: its worker died ${crashes} times`) };
  const wanted = await isWanted(parts, queue, job.data.occurrence.run);
  if (wanted === undefined) return LATER;
  if (!wanted) {
    box.cancel();
    return { end: "complete", value: undefined };
  }
  if (semaphore && !(await parts.clock.idle(semaphore.enter()))) return { end: "hand back" };
  try {
    const told = toldBefore(box);
    if (told) return told;
    return (await noteBegin(parts, taken)) ? await perform(parts, type, taken, box, output) : LATER;
  } finally {
    semaphore?.leave();
  }
}

/** Used if Redis did not answer. */
const LATER: JobEnd = { end: "delay", until: 0 };

/**
 * Whether the item should run: not if its task is deleted, or its run is final or cancelled. Undefined: unknown,
 * because Redis failed.
 */
async function isWanted({ store, logger }: Parts, queue: string, run: string): Promise<boolean | undefined> {
  try {
    const record = await store.runs.get(queue, run);
    return record !== undefined && record.state !== "final" && record.cancel === undefined;
  } catch (error) {
    logger.warn({ queue, run, code: redisError(error).code }, "item postponed: Redis failed");
    return undefined;
  }
}

/**
 * Number of workers that died while the item was running. The first one counts in any case, because beginnings are
 * noted only after it (`noteBegin`). Later ones count only if the item had begun, and did not just wait for a place.
 */
function crashesOf({ job }: Taken<ItemData>): number {
  const { stalledCounter: deaths, data } = job;
  return deaths === 0 ? 0 : 1 + (data.begun ?? []).filter((before) => before < deaths).length;
}

/** For log lines. */
function aboutItem({ queue, job }: Taken<ItemData>) {
  const { index, occurrence } = job.data;
  return { queue, run: occurrence.run, task: `${occurrence.owner}/${occurrence.task}`, item: index };
}

/** From 1. */
function attemptOf(taken: Taken<ItemData>): number {
  return taken.job.attemptsMade + crashesOf(taken) + 1;
}

/**
 * Notes that the item begins, for `crashesOf`; only if one of its workers has died before.
 * @returns false: Redis cannot store it
 */
async function noteBegin({ logger, store }: Parts, { queue, job, token }: Taken<ItemData>): Promise<boolean> {
  const { stalledCounter: deaths, data } = job;
  const { begun = [], index } = data;
  const { run } = data.occurrence;
  const taken = { queue, job, token };
  const crashes = crashesOf(taken);
  const by = { attempt: attemptOf(taken), pid: process.pid, worker: job.processedBy ?? "?" };
  try {
    await store.items.note(queue, run, { index, status: "active", token, crashes, by });
    if (deaths > 0 && !begun.includes(deaths)) await job.updateData({ ...data, begun: [...begun, deaths] });
    return true;
  } catch (error) {
    logger.warn({ queue, run, code: redisError(error).code }, "item postponed: Redis failed");
    return false;
  }
}

/** Keeps the end of an attempt in the item's record, before its job ends. */
async function noteEnd(
  { store, logger }: Parts,
  { queue, job, token }: Taken<ItemData>,
  end: JobEnd,
  { told }: TimeBox,
): Promise<void> {
  if (end === LATER) return;
  const { item, index, occurrence } = job.data;
  const over = end.end === "complete" || (end.end === "fail" && endsItem(job, end.error));
  const ended = end.end === "complete" ? "completed" : "failed";
  const status = !over ? "waiting" : told.has("cancelled") ? "cancelled" : ended;
  const details = {
    ...(end.end === "complete" ? { result: cutJson(end.value, LONGEST_KEPT) } : {}),
    ...(end.end === "fail" ? { error: errorText(end.error).slice(0, LONGEST_ERROR) } : {}),
  };
  const kept = cutJson(item, LONGEST_KEPT);
  // Only a failed item is retried, and needs all of its data, which an earlier attempt may have cut.
  const data = over && kept !== item ? (status === "failed" ? item : kept) : undefined;
  try {
    const crashes = crashesOf({ queue, job, token });
    await store.items.note(queue, occurrence.run, { index, status, token, crashes, details, data });
  } catch (error) {
    const { run } = occurrence;
    logger.error(
      { queue, run, item: index, code: redisError(error).code },
      "the item's end could not be recorded",
    );
  }
}

/** Whether no attempt follows one that ends with this error. */
function endsItem({ attemptsMade, opts }: Taken<ItemData>["job"], error: Error): boolean {
  return attemptsMade + 1 >= (opts.attempts ?? 1) || isPermanent(error);
}

/** End of the job if a lock loss, cancel or stop arrived while the item waited for a place. */
function toldBefore({ told }: TimeBox): JobEnd | undefined {
  if (told.has("lost")) return { end: "fail", error: new LockLostError() };
  if (told.has("cancelled")) return { end: "complete", value: undefined };
  return told.has("stopping") ? { end: "hand back" } : undefined;
}

async function perform(
  parts: Parts,
  type: AnyFanOutType,
  taken: Taken<ItemData>,
  box: TimeBox,
  output: Output,
): Promise<JobEnd> {
  const { item, index, fence, limit, grace, occurrence } = taken.job.data;
  const context: ItemContext = {
    type: taken.job.name,
    signal: box.signal,
    timeLeft: () => box.timeLeft(),
    log: logOf(parts, taken, aboutItem(taken), output),
    occurrence,
    idempotencyKey: `${occurrence.key}/${index}`,
    fence,
    attempt: attemptOf(taken),
    index,
  };
  const work = async () => type.process(item, context);
  const ended = await box.run({ limit, grace }, async () => {
    const value = await printingTo(output, () => through(parts.middleware, context, work));
    return cutJson(resultJson(value ?? undefined), LONGEST_RESULT);
  });
  return short(verdictOf(ended, box, false).job);
}

/** Shortens the error, because the run's job keeps those of all its items. */
function short(end: JobEnd): JobEnd {
  if (end.end !== "fail" || end.error.message.length <= LONGEST_ERROR) return end;
  const message = `${end.error.message.slice(0, LONGEST_ERROR)}…`;
  const Kind = isPermanent(end.error) ? PermanentError : Error;
  return { end: "fail", error: new Kind(message, { cause: end.error }) };
}
