import { type ItemStart, redisError, type TakenItem } from "@carillon/store";
import type { ItemContext } from "../context.js";
import { PermanentError } from "../permanent-error.js";
import { isFanOut } from "../task-type.js";
import type { Active } from "./active.js";
import { shortenBackoff } from "./backoff.js";
import { printingTo } from "./console-capture.js";
import { errorText, isPermanent, LockLostError, resultJson } from "./errors.js";
import type { ItemData } from "./item-data.js";
import type { Taken } from "./job-end.js";
import { cutJson } from "./json.js";
import { through } from "./middleware.js";
import { Output } from "./output.js";
import type { Parts } from "./parts.js";
import { clockOffset } from "./run-attempt.js";
import { logOf } from "./run-context.js";
import type { Semaphore } from "./semaphore.js";
import { TimeBox } from "./time-box.js";
import { type JobEnd, verdictOf } from "./verdict.js";

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
  const { queue, job, token } = taken;
  const { index, occurrence } = job.data;
  const { run, owner, task } = occurrence;
  const item = { name: { queue, owner, id: task }, run, index, token };
  const box = new TimeBox(parts.clock);
  const active: Active = {
    queue,
    run,
    task: `${owner}/${task}`,
    job: String(job.id),
    attempt: 0,
    box,
    output: new Output(LARGEST_OUTPUT),
    item,
  };
  const leave = parts.active.enter(active);
  try {
    const end = await inTurn(parts, semaphore, taken, active, item);
    active.output.close();
    // Sent first: whoever reads the end finds the output.
    const saved = parts.outputs.save(active);
    const recorded = await recordEnd(parts, taken, item, end, box);
    await saved;
    if (!recorded && end === LEFT) return LATER;
    if (end.end === "fail") {
      const details = { ...aboutItem(taken), attempt: active.attempt, error: errorText(end.error) };
      parts.logger.warn(details, "item failed");
    }
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
  active: Active,
  item: TakenItem,
): Promise<JobEnd> {
  if (semaphore && !(await parts.clock.idle(semaphore.enter()))) return { end: "hand back" };
  try {
    return receivedBefore(active.box) ?? (await start(parts, taken, active, item));
  } finally {
    semaphore?.leave();
  }
}

/** Used if Redis did not answer. */
const LATER: JobEnd = { end: "delay", until: 0 };
/** The run's time limit left the item for the next run: its record must say so. */
const LEFT: JobEnd = { end: "complete", value: undefined };

/** Record started, then process. */
async function start(parts: Parts, taken: Taken<ItemData>, active: Active, item: TakenItem): Promise<JobEnd> {
  const { attemptsMade: made, processedBy: worker = "?" } = taken.job;
  const { box } = active;
  let started: ItemStart;
  try {
    started = await parts.store.items.start(item, { made, pid: process.pid, worker });
  } catch (error) {
    const { queue, run } = active;
    parts.logger.warn({ queue, run, code: redisError(error).code }, "item postponed: Redis failed");
    return LATER;
  }
  switch (started.word) {
    case "OK":
      active.attempt = started.attempt;
      return perform(parts, taken, active, started);
    case "LOST":
      return { end: "fail", error: new LockLostError() };
    case "CRASHED":
      return { end: "fail", error: new PermanentError(`crashed: its worker died ${started.deaths} times`) };
    case "WAIT":
      return { end: "delay", until: started.until + clockOffset(started.now) };
    case "LIMIT":
      return LEFT;
    case "OVER":
      box.cancel();
      return { end: "complete", value: undefined };
  }
}

/** For log lines. */
function aboutItem({ queue, job }: Taken<ItemData>) {
  const { index, occurrence } = job.data;
  return { queue, run: occurrence.run, task: `${occurrence.owner}/${occurrence.task}`, item: index };
}

/** Keeps the end of an attempt in the item's record, before its job ends. Returns false if that failed. */
async function recordEnd(
  { store, logger }: Parts,
  { job }: Taken<ItemData>,
  taken: TakenItem,
  end: JobEnd,
  { received }: TimeBox,
): Promise<boolean> {
  const { item } = job.data;
  const over = end.end === "complete" || (end.end === "fail" && endsItem(job, end.error));
  const ended = end.end === "complete" ? "completed" : "failed";
  const left = end === LEFT;
  const status = !over ? "waiting" : left || received.has("cancelled") ? "cancelled" : ended;
  const details = {
    ...(end.end === "complete" ? { result: cutJson(end.value, LONGEST_KEPT) } : {}),
    ...(end.end === "fail" ? { error: errorText(end.error).slice(0, LONGEST_ERROR) } : {}),
  };
  const kept = cutJson(item, LONGEST_KEPT);
  // Only items that did not complete are done again, and need all of their data, which an earlier attempt may have cut.
  const data = over && kept !== item ? (status === "completed" ? kept : item) : undefined;
  try {
    await store.items.end(taken, { status, left, details, data });
    return true;
  } catch (error) {
    const { run, index, name } = taken;
    const code = redisError(error).code;
    logger.error({ queue: name.queue, run, item: index, code }, "the item's end could not be recorded");
    return false;
  }
}

/** Whether no attempt follows one that ends with this error. */
function endsItem({ attemptsMade, opts }: Taken<ItemData>["job"], error: Error): boolean {
  return attemptsMade + 1 >= (opts.attempts ?? 1) || isPermanent(error);
}

/** End of the job if a lock loss, cancel or stop arrived while the item waited for a place. */
function receivedBefore({ received }: TimeBox): JobEnd | undefined {
  if (received.has("lost")) return { end: "fail", error: new LockLostError() };
  if (received.has("cancelled")) return { end: "complete", value: undefined };
  return received.has("stopping") ? { end: "hand back" } : undefined;
}

async function perform(
  parts: Parts,
  taken: Taken<ItemData>,
  { box, output }: Active,
  { attempt, left, key }: Extract<ItemStart, { word: "OK" }>,
): Promise<JobEnd> {
  const { job } = taken;
  const { item, index, fence, limit, grace, occurrence } = job.data;
  const context: ItemContext = {
    type: job.name,
    signal: box.signal,
    timeLeft: () => box.timeLeft(),
    log: logOf(parts, taken, aboutItem(taken), output),
    occurrence,
    idempotencyKey: key ?? `${occurrence.key}/${index}`,
    fence,
    attempt,
    index,
  };
  const ended = await box.run({ limit, left, grace }, async () => {
    const type = parts.types.get(job.name);
    if (!type || !isFanOut(type))
      throw new PermanentError(`This worker has no process function for items of task type ${job.name}.`);
    const work = async () => type.process(item, context);
    const value = await printingTo(output, () => through(parts.middleware, context, work));
    return cutJson(resultJson(value ?? undefined), LONGEST_RESULT);
  });
  const end = verdictOf(ended, box, false).job;
  if (
    box.received.has("timed-out") &&
    end.end === "fail" &&
    !isPermanent(end.error) &&
    !box.received.has("lost")
  )
    return LEFT;
  // An item that waits for its next attempt must not hold its run beyond the limit.
  shortenBackoff(job, box.timeLeft());
  return short(end);
}

/** Shortens the error, because the run's job keeps those of all its items. */
function short(end: JobEnd): JobEnd {
  if (end.end !== "fail" || end.error.message.length <= LONGEST_ERROR) return end;
  const message = `${end.error.message.slice(0, LONGEST_ERROR)}…`;
  const Kind = isPermanent(end.error) ? PermanentError : Error;
  return { end: "fail", error: new Kind(message, { cause: end.error }) };
}
