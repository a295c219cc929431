import type { ItemState, Json, RunItem } from "@carillon/core";
import { itemOf } from "@carillon/core/internal";
import type { NewItem } from "@carillon/store";
import { PermanentError } from "../permanent-error.js";
import type { AnyFanOutType } from "../task-type.js";
import { printingTo } from "./console-capture.js";
import { Ending } from "./ending.js";
import { LockLostError } from "./errors.js";
import type { ItemData } from "./item-data.js";
import { itemRetry } from "./item-options.js";
import { countItems } from "./item-queues.js";
import { plainJson } from "./json.js";
import { through } from "./middleware.js";
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
  const { received } = attempt.box;
  if (received.has("cancelled") || received.has("lost"))
    return attempt.conclude({ how: "returned", value: undefined });
  try {
    return await spread(attempt, type, started, ended.value);
  } catch (error) {
    return attempt.conclude({ how: "threw", error });
  }
}

/** The items of a run: first those that the time limit of an earlier run left, then the new ones. */
async function generate(attempt: RunAttempt, type: AnyFanOutType, started: Started): Promise<NewItem[]> {
  const { itemsOf } = attempt.taken.job.data.occurrence;
  const left = await itemsLeft(attempt, itemsOf);
  if (itemsOf !== undefined) {
    const failed = await recordsOf(attempt, itemsOf, "failed");
    if (failed.length + left.length === 0)
      throw new PermanentError(`the items of run ${itemsOf} are no longer kept.`);
    return [...failed.map(newItem), ...left].sort((a, b) => a.index - b.index);
  }
  const added = without(await generated(attempt, type, started), left);
  if (left.length + added.length > MOST_ITEMS)
    throw new PermanentError(
      `generate returned ${added.length} items, and an earlier run left ${left.length} others; a run has ${MOST_ITEMS} at most.`,
    );
  return [...left, ...added.map((item) => ({ item }))].map((item, index) => ({ ...item, index }));
}

/** The items that are not left already: one that is left twice may be generated twice. */
function without(items: readonly Json[], left: readonly NewItem[]): readonly Json[] {
  if (left.length === 0) return items;
  const counts = new Map<string, number>();
  for (const { item } of left) {
    const text = JSON.stringify(item);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return items.filter((item) => {
    const text = JSON.stringify(item);
    const count = counts.get(text) ?? 0;
    counts.set(text, count - 1);
    return count <= 0;
  });
}

/** Items that the time limit of an earlier run left, with their crashes, waits and idempotency keys. */
async function itemsLeft(attempt: RunAttempt, itemsOf: string | undefined): Promise<NewItem[]> {
  const { parts, taken, name } = attempt;
  const from = await parts.store.items.takeLeft(name, taken.job.data.occurrence.run, itemsOf);
  const before = from === undefined ? undefined : await parts.store.runs.get(name.queue, from);
  if (!before || before.type !== taken.job.name) return [];
  const records = await recordsOf(attempt, before.id, "cancelled");
  return records.map((record) => {
    const { index, crashes, notBefore, key = `${before.key}/${index}` } = record;
    return { ...newItem(record), crashes, notBefore, key };
  });
}

function newItem({ index, data, key }: RunItem): NewItem {
  return { index, item: data, key };
}

async function recordsOf({ parts, taken }: RunAttempt, run: string, status: ItemState): Promise<RunItem[]> {
  const all = { from: 0, limit: MOST_ITEMS };
  return (await parts.store.items.page(taken.queue, run, (one) => one === status, all)).items;
}

async function generated(attempt: RunAttempt, type: AnyFanOutType, started: Started): Promise<Json[]> {
  const context = attempt.context(started);
  const work = async () => type.generate(await checkedPayload(type, attempt.taken.job.data.payload), context);
  const { middleware } = attempt.parts;
  const items = await printingTo(attempt.output, () => through(middleware, context, work));
  if (!Array.isArray(items)) throw new PermanentError("generate must return an array of items.");
  if (items.length > MOST_ITEMS)
    throw new PermanentError(`generate returned ${items.length} items; a run has ${MOST_ITEMS} at most.`);
  let bytes = 0;
  return items.map((item: unknown, index) => {
    bytes += sizeOf(item, index);
    if (bytes <= LARGEST_RUN) return item as Json;
    throw new PermanentError(
      `generate returned items of more than ${LARGEST_RUN} bytes in all. Keep the data elsewhere, and references to it in the items.`,
    );
  });
}

function sizeOf(item: unknown, index: number): number {
  try {
    return Buffer.byteLength(plainJson(item, `items[${index}]`, LARGEST_ITEM));
  } catch (error) {
    throw new PermanentError((error as Error).message, { cause: error });
  }
}

/** Stores the items. Once all are stored, the run only waits for them to be done. */
async function spread(
  attempt: RunAttempt,
  type: AnyFanOutType,
  started: Started,
  items: readonly NewItem[],
): Promise<JobEnd> {
  const { taken, parts, box, nextAt } = attempt;
  const { queue, job, token } = taken;
  const { occurrence } = job.data;
  const { fence, limit, grace, now } = started;
  if (job.data.items === undefined && items.length === 0)
    return attempt.conclude({ how: "returned", value: new Ending("nothing-to-do", undefined) });
  const { round } = job.data.items ?? { round: fence };
  if (job.data.items === undefined)
    await parts.items.patiently(queue, () => job.updateData({ ...job.data, items: { round } }));
  const common: Omit<ItemData, "child" | "index" | "item"> = {
    fence,
    grace,
    occurrence,
    ...(limit === undefined ? {} : { limit }),
  };
  const priority = job.opts.priority ? { priority: job.opts.priority } : {};
  const adding = {
    queue,
    run: occurrence.run,
    type: job.name,
    fence,
    round,
    token,
    ends: limit === undefined ? undefined : now + limit,
    data: common,
    options: { ...itemRetry(type.itemRetry), ...priority },
  };
  const total = await parts.items.patiently(queue, () => parts.store.items.add(adding, items));
  if (total === undefined) {
    box.lose();
    throw new LockLostError();
  }
  // A connection that is lost here must not fail a run whose items are stored.
  const progress = { round, total, ...(nextAt === undefined ? {} : { nextAt }) };
  await parts.items.patiently(queue, () => job.updateData({ ...job.data, items: progress }));
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
  const { store } = attempt.parts;
  const { left: cut, torn } = await items.patiently(queue, () =>
    store.items.left(queue, job.data.occurrence.run),
  );
  const failed = total - succeeded;
  const failures = namedFailures(await items.patiently(queue, () => job.getIgnoredChildrenFailures()));
  const result = { total, succeeded: succeeded - cut, failed, ...(cut > 0 ? { left: cut } : {}), failures };
  // Only displayed, so a failure does not matter.
  await job.updateProgress({ done: total, failed, total }).catch(() => {});
  attempt.nextAt = job.data.items?.nextAt;
  if (failed + torn === 0) {
    await attempt.settle({ outcome: cut > 0 ? "partial" : "succeeded", result });
    return { end: "complete", value: result };
  }
  const [first] = failures;
  const errors = [
    cut > 0 ? `The time limit left ${cut} of ${total} items, ${torn} of them under way.` : "",
    failed > 0 ? `${failed} of ${total} items failed.` : "",
    first ? `The first, item ${first.index}: ${first.error}` : "",
  ];
  const error = errors.filter(Boolean).join(" ");
  await attempt.settle({ outcome: torn > 0 ? "timed-out" : "failed", error, result });
  // Its items have used up their attempts, or its time is up.
  return { end: "fail", error: new PermanentError(error) };
}

function namedFailures(errors: Record<string, string>): { index: number; error: string }[] {
  return Object.entries(errors)
    .map(([key, error]) => ({
      index: itemOf(key.slice(key.lastIndexOf(":") + 1))?.index ?? Number.NaN,
      error,
    }))
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
  if (!items || !over || attempt.box.received.has("lost")) return end;
  if (end.end === "complete") {
    // The remaining items do nothing, because the run is final.
    if ((await countItems(job)).left > 0) return { end: "await items" };
  }
  // The job may have been deleted with its task.
  await job.updateData(data).catch(() => {});
  return end;
}
