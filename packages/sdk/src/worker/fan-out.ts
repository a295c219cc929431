import type { Json } from "@carillon/core";
import { bullPrefix } from "@carillon/store";
import { UnrecoverableError } from "bullmq";
import type { AnyFanOutType } from "../task-type.js";
import { printingTo } from "./console-capture.js";
import { Ending } from "./ending.js";
import { LockLostError, PermanentError } from "./errors.js";
import type { ItemData } from "./item-data.js";
import { itemRetry } from "./item-options.js";
import { countItems, type ItemJob } from "./item-queues.js";
import { plainJson } from "./json.js";
import { checkedPayload } from "./payload.js";
import type { RunAttempt, Started } from "./run-attempt.js";
import type { JobEnd } from "./verdict.js";

const MOST_ITEMS = 10_000;
/** Size limit as JSON, in bytes. */
const LARGEST_ITEM = 256 * 1024;
/** Limit for the data of all items of a run together, because their records keep it. */
const LARGEST_RUN = 64 * 1024 * 1024;
/** Failed items named in a run's result. */
const FAILURES_NAMED = 20;

/** One attempt of a run that is many items: generates them, or, when all are done, sums up. */
export async function fanOut(attempt: RunAttempt, type: AnyFanOutType, started: Started): Promise<JobEnd> {
  const total = attempt.taken.job.data.items?.total;
  if (total !== undefined) return sumUp(attempt, total);
  const ended = await attempt.box.run(started, () => generate(attempt, type, started));
  if (ended.how !== "returned") return attempt.conclude(ended);
  const { told } = attempt.box;
  if (told.has("cancelled") || told.has("lost"))
    return attempt.conclude({ how: "returned", value: undefined });
  try {
    return await spread(attempt, ended.value);
  } catch (error) {
    return attempt.conclude({ how: "threw", error });
  }
}

async function generate(attempt: RunAttempt, type: AnyFanOutType, started: Started): Promise<ItemJob[]> {
  const { queue, job } = attempt.taken;
  const { occurrence } = job.data;
  const { itemsOf } = occurrence;
  const items =
    itemsOf === undefined ? await generated(attempt, type, started) : await failedOf(attempt, itemsOf);
  const { fence, limit, grace } = started;
  const parent = {
    id: occurrence.run,
    queue: `${bullPrefix(attempt.parts.store.namespace, queue)}:${queue}`,
  };
  const opts = {
    ...itemRetry(type.itemRetry),
    ...(job.opts.priority ? { priority: job.opts.priority } : {}),
    parent,
    // The run's job stores the result of each item; a failed item must not block it.
    ignoreDependencyOnFailure: true,
    removeOnComplete: true,
    removeOnFail: true,
  };
  return items.map(({ index, item }): ItemJob => {
    const bounds = limit === undefined ? { grace } : { limit, grace };
    const data: ItemData = { child: true, item, index, fence, ...bounds, occurrence };
    return { name: job.name, data, opts: { ...opts, jobId: `${occurrence.run}.${index}` } };
  });
}

interface Item {
  readonly index: number;
  readonly item: Json;
}

async function generated(attempt: RunAttempt, type: AnyFanOutType, started: Started): Promise<Item[]> {
  const payload = await checkedPayload(type, attempt.taken.job.data.payload);
  const context = attempt.context(started);
  const items: unknown = await printingTo(attempt.output, () => type.generate(payload, context));
  if (!Array.isArray(items)) throw new PermanentError("generate must return an array of items.");
  if (items.length > MOST_ITEMS) {
    throw new PermanentError(`generate returned ${items.length} items; a run has ${MOST_ITEMS} at most.`);
  }
  let bytes = 0;
  return items.map((item: unknown, index) => {
    bytes += sizeOf(item, index);
    if (bytes <= LARGEST_RUN) return { index, item: item as Json };
    throw new PermanentError(
      `generate returned items of more than ${LARGEST_RUN} bytes in all. Keep the data elsewhere, and references to it in the items.`,
    );
  });
}

/** Size of an item's JSON in bytes. */
function sizeOf(item: unknown, index: number): number {
  try {
    return Buffer.byteLength(plainJson(item, `items[${index}]`, LARGEST_ITEM));
  } catch (error) {
    throw new PermanentError((error as Error).message, { cause: error });
  }
}

/** The failed items of an earlier run, to be done again under their indexes. */
async function failedOf({ parts, taken }: RunAttempt, run: string): Promise<Item[]> {
  const { items } = await parts.store.items.page(taken.queue, run, (status) => status === "failed", {
    from: 0,
    limit: MOST_ITEMS,
  });
  if (items.length === 0) throw new PermanentError(`the items of run ${run} are no longer kept.`);
  return items.map(({ index, data }) => ({ index, item: data }));
}

/** Stores the items. Once all are stored, the run only waits for them to be done. */
async function spread(attempt: RunAttempt, jobs: readonly ItemJob[]): Promise<JobEnd> {
  const { taken, parts, box, nextAt } = attempt;
  const { queue, job, token } = taken;
  const { run } = job.data.occurrence;
  if (job.data.items === undefined) {
    if (jobs.length === 0)
      return attempt.conclude({ how: "returned", value: new Ending("nothing-to-do", undefined) });
    await parts.items.forget(queue, run);
    await parts.items.patiently(queue, () => job.updateData({ ...job.data, items: {} }));
  }
  const total = await parts.items.add(queue, run, jobs, async (chunk) => {
    // A process that was frozen must not add items that others have processed meanwhile.
    if ((await job.extendLock(token, parts.lockDuration)) !== 1) box.lose();
    if (box.told.has("lost")) throw new LockLostError();
    const [{ data, opts }] = chunk as [ItemJob];
    const by = { fence: data.fence, most: opts.attempts ?? 1 };
    const items = chunk.map((one) => one.data);
    if (await parts.store.items.plan(queue, run, by, items)) return;
    box.lose();
    throw new LockLostError();
  });
  // A connection that is lost here must not fail a run whose items are stored.
  const items = { total, ...(nextAt === undefined ? {} : { nextAt }) };
  await parts.items.patiently(queue, () => job.updateData({ ...job.data, items }));
  if (await attempt.record({ outcome: undefined })) attempt.generated(total);
  return { end: "await items" };
}

async function sumUp(attempt: RunAttempt, total: number): Promise<JobEnd> {
  const { queue, job } = attempt.taken;
  const { items } = attempt.parts;
  const { succeeded, left } = await items.patiently(queue, () => countItems(job));
  if (left > 0) {
    await attempt.record({ outcome: undefined });
    return { end: "await items" };
  }
  const failed = total - succeeded;
  const failures = namedFailures(await items.patiently(queue, () => job.getIgnoredChildrenFailures()));
  const result = { total, succeeded, failed, failures };
  // Only displayed, so a failure does not matter.
  await job.updateProgress({ done: total, failed, total }).catch(() => {});
  attempt.nextAt = job.data.items?.nextAt;
  if (failed === 0) {
    await attempt.settle({ outcome: "succeeded", result });
    return { end: "complete", value: result };
  }
  const first = failures[0];
  const which = first ? ` The first, item ${first.index}: ${first.error}` : "";
  const error = `${failed} of ${total} items failed.${which}`;
  await attempt.settle({ outcome: "failed", error, result });
  // Its items have used up their attempts.
  return { end: "fail", error: new UnrecoverableError(error) };
}

function namedFailures(errors: Record<string, string>): { index: number; error: string }[] {
  return Object.entries(errors)
    .map(([key, error]) => ({ index: Number(key.slice(key.lastIndexOf(".") + 1)), error }))
    .sort((a, b) => a.index - b.index)
    .slice(0, FAILURES_NAMED);
}

/**
 * Call it before the job of a run with items ends. BullMQ does not complete a job that has items left, so it waits for
 * those. Deletes the job's data about its items: if it is retried from outside, it generates them again.
 */
export async function endItems(attempt: RunAttempt, end: JobEnd): Promise<JobEnd> {
  const { job } = attempt.taken;
  const { items, ...data } = job.data;
  const over = end.end === "complete" || (end.end === "fail" && attempt.endsRun(end.error));
  if (!items || !over || attempt.box.told.has("lost")) return end;
  if (end.end === "complete") {
    // The remaining items do nothing, because the run is final.
    if ((await countItems(job)).left > 0) return { end: "await items" };
  }
  // The job may have been deleted with its task.
  await job.updateData(data).catch(() => {});
  return end;
}
