import { CarillonError, OUTCOMES, type Outcome, quote, type Run, type TaskName } from "@carillon/core";
import type { Store } from "@carillon/store";
import { assertCursor } from "./client-input.js";
import { roundedInstant } from "./instant.js";

/** Which final runs to list. */
export interface JournalFilter {
  readonly queue?: string | undefined;
  readonly outcome?: Outcome | undefined;
  /** The node that enqueued it, or the worker that ran it. */
  readonly node?: string | undefined;
  /** The end of the run, both included: ISO 8601 with offset, a Date or epoch ms. */
  readonly from?: string | number | Date | undefined;
  readonly to?: string | number | Date | undefined;
  /** At most this many; default 100, at most 1,000. */
  readonly limit?: number | undefined;
  /** Of the page before. */
  readonly cursor?: string | undefined;
}

export interface JournalPage {
  readonly runs: Run[];
  /** Where the next page begins; undefined: this was the last. */
  readonly cursor: string | undefined;
}

/** Runs read at once while looking for those that match. */
const STEP = 200;

/**
 * Final runs by their end, newest first, queue by queue. Pages hold still while runs are added: the cursor names a time.
 *
 * @throws `INVALID_FILTER`, `INVALID_OPTION` for what is no time
 */
export async function journal(
  store: Store,
  filter: JournalFilter & { limit: number; task?: TaskName | undefined; owner?: string | undefined },
): Promise<JournalPage> {
  if (filter.outcome !== undefined && !OUTCOMES.includes(filter.outcome)) {
    throw new CarillonError("INVALID_FILTER", `got ${quote(filter.outcome)}.`, {
      field: "outcome",
      remedy: `Use one of ${OUTCOMES.join(", ")}.`,
    });
  }
  assertCursor(filter.cursor);
  const from = filter.from === undefined ? 0 : roundedInstant(filter.from, "from");
  const to = filter.to === undefined ? Number.MAX_SAFE_INTEGER : roundedInstant(filter.to, "to");
  const start = filter.cursor === undefined ? undefined : decode(filter.cursor);
  const only = filter.task?.queue ?? filter.queue;
  const queues = only === undefined ? await store.registry.queues() : [only];
  const runs: Run[] = [];
  for (const queue of queues) {
    if (start && queue < start.queue) continue;
    const here = start?.queue === queue ? start : undefined;
    const window = { from, to: here?.at ?? to };
    // Of the runs that ended in the cursor's millisecond, those up to the cursor's were listed before.
    let skipping = here !== undefined;
    for (let offset = 0; ; offset += STEP) {
      const found = await store.runs.journal(queue, window, STEP, offset);
      const records = await store.runs.many(
        queue,
        found.map(({ id }) => id),
      );
      const byId = new Map(records.map((run) => [run.id, run]));
      for (const { id, at } of found) {
        if (skipping && here && at === here.at) {
          if (id === here.id) skipping = false;
          continue;
        }
        skipping = false;
        const run = byId.get(id);
        if (!run || !matches(run, filter)) continue;
        runs.push(run);
        if (runs.length === filter.limit) return { runs, cursor: encode({ queue, at, id }) };
      }
      if (found.length < STEP) break;
    }
  }
  return { runs, cursor: undefined };
}

function matches(
  run: Run,
  filter: JournalFilter & { task?: TaskName | undefined; owner?: string | undefined },
): boolean {
  const { task, owner, outcome, node } = filter;
  if (task && (run.task.id !== task.id || run.task.owner !== task.owner)) return false;
  if (owner !== undefined && run.task.owner !== owner) return false;
  if (outcome !== undefined && run.outcome !== outcome) return false;
  return node === undefined || run.node === node || run.worker === node;
}

interface Position {
  readonly queue: string;
  readonly at: number;
  readonly id: string;
}

function encode({ queue, at, id }: Position): string {
  return Buffer.from(`${queue} ${at} ${id}`).toString("base64url");
}

function decode(cursor: string): Position {
  const [queue, at, id] = Buffer.from(cursor, "base64url").toString().split(" ");
  if (!queue || !id || !Number.isSafeInteger(Number(at))) {
    throw new CarillonError("INVALID_FILTER", `got ${quote(cursor)}.`, {
      field: "cursor",
      remedy: "Give back the cursor of the page before.",
    });
  }
  return { queue, at: Number(at), id };
}
