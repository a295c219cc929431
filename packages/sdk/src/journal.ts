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
  if (from > to) {
    throw new CarillonError("INVALID_FILTER", "after to.", {
      field: "from",
      remedy: "Give the earlier time first.",
    });
  }
  const start = filter.cursor === undefined ? undefined : decode(filter.cursor);
  const only = filter.task?.queue ?? filter.queue;
  const queues = only === undefined ? await store.registry.queues() : [only];
  const runs: Run[] = [];
  for (const queue of queues) {
    if (start && queue < start.queue) continue;
    // Where the reading is: what is added later, or goes meanwhile, moves nothing that is still to come.
    let here: Pick<Position, "at" | "id"> | undefined = start?.queue === queue ? start : undefined;
    for (let offset = 0; ; ) {
      const found = await store.runs.journal(queue, { from, to: here?.at ?? to }, STEP, offset);
      const next = found.filter(({ id, at }) => here === undefined || at !== here.at || id < here.id);
      const records = await store.runs.many(
        queue,
        next.map(({ id }) => id),
      );
      const byId = new Map(records.map((run) => [run.id, run]));
      for (const { id, at } of next) {
        const run = byId.get(id);
        if (!run || !matches(run, filter)) continue;
        runs.push(run);
        if (runs.length === filter.limit) return { runs, cursor: encode({ queue, at, id }) };
      }
      const last = found.at(-1);
      if (found.length < STEP || !last) break;
      // Very many ended in one millisecond: only there it goes by their number.
      offset = last.at === here?.at ? offset + STEP : 0;
      here = last.at === here?.at && here.id < last.id ? here : last;
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
