import { randomBytes } from "node:crypto";
import {
  assertOverlap,
  CarillonError,
  type OverlapPolicy,
  parseDuration,
  quote,
  type TaskName,
} from "@carillon/core";
import type { Backfill, Store } from "@carillon/store";
import { instant } from "./instant.js";

export interface BackfillOptions {
  /** The nominal times, both included: ISO 8601, a Date or epoch ms. Neither may be in the future. */
  readonly from: string | number | Date;
  readonly to: string | number | Date;
  /** Count only. */
  readonly dryRun?: boolean | undefined;
  /** Instead of the task's overlap policy. */
  readonly overlap?: OverlapPolicy | undefined;
  /** At most one occurrence in this time, `10s`; default: as fast as they can be. */
  readonly every?: string | undefined;
  /** Who asks for it. */
  readonly by?: string | undefined;
}

/** What a backfill was asked to do. */
export interface PutBackfill {
  /** Undefined for a dry run. */
  readonly id: string | undefined;
  /** Occurrences in the range. */
  readonly total: number;
}

/** More would be a mistake more often than a wish. */
const MOST = 100_000;

/** @throws `TASK_NOT_FOUND`, `INVALID_OPTION`, `INVALID_DURATION` */
export async function putBackfill(
  store: Store,
  name: TaskName,
  options: BackfillOptions,
  by: string,
): Promise<PutBackfill> {
  const [from, to] = [instant(options.from, "from"), instant(options.to, "to")];
  const { overlap } = options;
  assertOverlap(overlap);
  const every = options.every === undefined ? 0 : parseDuration(options.every, "every");
  await store.calendars.refresh();
  const [now, stored] = await Promise.all([store.tasks.time(name.queue), store.tasks.get(name)]);
  if (!stored) throw new CarillonError("TASK_NOT_FOUND", `there is no task ${name.owner}/${name.id}.`);
  if (from > to) throw fault("from", "after to.", "Give the earlier time first.");
  if (to > now) throw fault("to", "in the future.", "A backfill is of times that are past.");
  const schedule = store.calendars.schedules.get(stored.definition.schedule, name.id);
  if (schedule.delay !== undefined) {
    throw fault("task", "its times follow from its runs.", "Trigger it instead.");
  }
  let total = 0;
  for (let at = schedule.next(from - 1); at !== undefined && at <= to; at = schedule.next(at)) {
    total += 1;
    if (total > MOST) throw fault("to", `more than ${MOST} occurrences.`, "Give a shorter range.");
  }
  if (options.dryRun || total === 0) return { id: undefined, total };
  const id = randomBytes(8).toString("hex");
  await store.backfills.put({
    id,
    task: name,
    from,
    to,
    at: from - 1,
    total,
    enqueued: 0,
    skipped: 0,
    every,
    overlap,
    by,
  });
  return { id, total };
}

/** A backfill by its id. @throws `BACKFILL_NOT_FOUND` */
export async function findBackfill(store: Store, queues: readonly string[], id: string): Promise<Backfill> {
  const known = typeof id === "string" && /^[0-9a-f]{16}$/.test(id) ? queues : [];
  const found = await Promise.all(known.map((queue) => store.backfills.get(queue, id)));
  const backfill = found.find((one) => one !== undefined);
  if (backfill) return backfill;
  throw new CarillonError("BACKFILL_NOT_FOUND", `there is no backfill ${quote(id)}.`, {
    remedy: "It may be over for more than 7 days, or its task was deleted.",
  });
}

function fault(field: string, what: string, remedy: string): CarillonError {
  return new CarillonError("INVALID_OPTION", what, { field, remedy });
}
