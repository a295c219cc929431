import { createHash, randomBytes } from "node:crypto";
import { CarillonError } from "@carillon/core";
import { invalid, quote } from "@carillon/core/internal";
import type { Scope } from "@carillon/sdk/internal";
import { type NewBackfill, newToken } from "@carillon/store";
import { z } from "zod";
import {
  type BulkRefusal,
  nameOf,
  refusalOf,
  refused as refusedShape,
  selected,
  Tally,
} from "../bulk/bulk.js";
import { checkedFilter, filter } from "../bulk/filter.js";
import { TimeSlice } from "../occurrences/time-slice.js";
import { operation } from "../operation.js";
import { count, taskName } from "../shapes.js";
import { left, othersOf, range, rangeOf, type Times, timesOf } from "./times.js";

/** Limits beyond which a call is more likely a mistake: occurrences and tasks. */
const [MOST_IN_ALL, MOST_TASKS] = [1_000_000, 10_000];
/** Backfills stored, and entries of samples, at a time. */
const [CHUNK, SAMPLE] = [100, 10];
const MINUTE = 60_000;
/** Occurrences a minute. At this pace, the end of the largest batch is still a date. */
const SLOWEST = 0.001;

/** Each task has a backfill of its own, of this `batch`. Without `perMinute` it only counts, as with `dryRun`. */
export const startBackfills = operation({
  http: "POST /backfills",
  role: "operator",
  reach: "owner",
  cost: "computes",
  logs: "backfill",
  once: { known: "new", leaves: "whole", against: [["tasks.deleteMany"]] },
  example: { tag: "due", from: "2026-01-01T00:00:00Z", to: "2026-01-01T00:08:00Z", perMinute: 60_000 },
  summary: "Backfills past occurrences of all tasks that match, evenly spread: `perMinute` in all.",
  input: z.strictObject({
    ...filter,
    ...range,
    perMinute: z
      .number("not a number")
      .optional()
      .describe("Occurrences a minute, of all tasks together: 0.001 to 60,000. Required unless `dryRun`."),
  }),
  output: z.object({
    count: count.describe("Number of tasks with such occurrences."),
    total: count.describe("Occurrences of all of them."),
    left,
    sample: z
      .array(taskName.extend({ total: count }))
      .readonly()
      .describe("The first ten of these tasks."),
    refused: refusedShape,
    batch: z.string().optional().describe("Id to list and cancel them. Missing: nothing was started."),
  }),
  status: [200, 202],
  async run(
    { scope, store, by, log },
    { from: first, to: last, overlap: how, only: which, dryRun, perMinute, ...input },
  ) {
    const given = rangeOf({ from: first, to: last, overlap: how, only: which });
    if (perMinute !== undefined || !dryRun) assertRate(perMinute);
    const checked = checkedFilter(scope, input);
    await store.calendars.refresh();
    const now = await store.freezes.time();
    if (given.to > now) throw invalid("to", "in the future.", "A backfill runs past times only.");
    const { turn, backfills } = await othersOf(store, await scope.queuesOf(checked.queue), {
      only: which,
      dryRun,
    });
    const [found, refused] = [[] as Times[], new Tally<BulkRefusal>(SAMPLE)];
    const slice = new TimeSlice(Number.POSITIVE_INFINITY);
    let [total, left] = [0, 0];
    for await (const page of selected(scope, checked, undefined, refused)) {
      for (const task of page) {
        const times = await timesOf(scope, task, { ...given, now }, backfills, slice).catch(
          (error: unknown) => refusalOf(nameOf(task), error),
        );
        if ("code" in times) {
          refused.add(times);
          continue;
        }
        left += times.left;
        total += times.total;
        if (times.total > 0) found.push(times);
        if (found.length > MOST_TASKS || total > MOST_IN_ALL) throw tooMany();
      }
    }
    const sample = found.slice(0, SAMPLE).map(({ name, total }) => ({ ...name, total }));
    const answer = {
      ...{ count: found.length, total, sample, refused: refused.result },
      ...(which && { left }),
    };
    if (dryRun || perMinute === undefined || total === 0) return answer;
    const { from, to, overlap, only } = given;
    const batch = batchId();
    const more = { overlap, by: by || scope.actor, batch };
    const all = paced(found, perMinute).map(
      ({ times: { name: task, taskCreated, ranges, total }, every, after }) => ({
        backfill: {
          ...more,
          id: newToken(),
          task,
          taskCreated,
          from,
          to,
          at: from - 1,
          total,
          every,
          ...(only && { ranges }),
        },
        after,
      }),
    );
    const { owner, tag, queue } = checked;
    const names = sample.map(({ total: _, ...name }) => name);
    const details = { batch, from, to, total, perMinute, overlap, only };
    try {
      await putAll(scope, all, turn);
    } finally {
      // Also if Redis failed halfway: the batch can be cancelled.
      log({ owner, tag, queue }, { count: found.length, sample: names, details });
    }
    return { ...answer, batch };
  },
});

/**
 * Paces such that all tasks together run `perMinute`, evenly, and end at the same time: if a task has `n` occurrences,
 * each takes an `n`-th of that time. First steps are spread over it by the golden ratio.
 */
export function paced<One extends Pick<Times, "total">>(
  all: readonly One[],
  perMinute: number,
): { readonly times: One; readonly every: number; readonly after: number }[] {
  const total = all.reduce((sum, times) => sum + times.total, 0);
  const lasts = (total / perMinute) * MINUTE;
  return all.map((times, i) => {
    const every = Math.max(1, Math.round(lasts / times.total));
    return { times, every, after: Math.floor(every * ((i * GOLDEN) % 1)) };
  });
}

const GOLDEN = (Math.sqrt(5) - 1) / 2;

export async function putAll(
  { store }: Scope,
  all: readonly { readonly backfill: NewBackfill; readonly after: number }[],
  turn?: string,
): Promise<void> {
  for (let at = 0; at < all.length; at += CHUNK)
    await Promise.all(
      all.slice(at, at + CHUNK).map(({ backfill, after }) => store.backfills.put(backfill, after, turn)),
    );
}

/** The id of a batch. @param text gives the same id each time; default: a new one */
export function batchId(text?: string): string {
  const bytes = text === undefined ? randomBytes(6) : createHash("sha256").update(text).digest();
  return `b-${bytes.toString("hex").slice(0, 12)}`;
}

/** The id of a backfill that is put once, however often its call is repeated. @param text differs for each backfill */
export function idFrom(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 13);
}

export function isBatch(id: unknown): id is string {
  return typeof id === "string" && /^b-[0-9a-f]{12}$/.test(id);
}

/** @throws `INVALID_OPTION` */
export function assertRate(perMinute: unknown): asserts perMinute is number {
  if (typeof perMinute === "number" && perMinute >= SLOWEST && perMinute <= MINUTE) return;
  const what = perMinute === undefined ? "missing." : `got ${quote(perMinute)}.`;
  throw invalid("perMinute", what, "Give the occurrences a minute of all tasks together, 0.001 to 60000.");
}

function tooMany(): CarillonError {
  const what = `more than ${MOST_TASKS} tasks, or ${MOST_IN_ALL} occurrences.`;
  return new CarillonError("INVALID_OPTION", what, {
    remedy: "Give a shorter range, or select fewer tasks.",
  });
}
