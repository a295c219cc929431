import type { Duration, Outcome, Run, TaskName } from "@carillon/core";
import { grouped, invalid, quote, roundedInstant } from "@carillon/core/internal";
import type { Store } from "@carillon/store";
import { assertCursor, outcomesOf } from "./input.js";

/** Selects the final runs to list. */
export interface JournalFilter {
  readonly queue?: string | undefined;
  /** Owner of the tasks. Default: the client's, or any. */
  readonly owner?: string | undefined;
  /** Only runs with this text in the task's name, its type or the error, in any case. */
  readonly text?: string | undefined;
  /** Only runs that took at least this time, from start to end. */
  readonly took?: Duration | undefined;
  /** `end`, the default: newest first. `took`: slowest first, one page; refused if more than 50,000 runs of all owners ended in the range. */
  readonly sort?: "end" | "took" | undefined;
  /** One outcome, or several: `["failed", "timed-out", "crashed", "lost"]` are the failures. */
  readonly outcome?: Outcome | readonly Outcome[] | undefined;
  /** The node that enqueued it, or the worker that ran it. */
  readonly node?: string | undefined;
  /** The end of the run, both included: ISO 8601 with offset, a Date or epoch ms. */
  readonly from?: string | number | Date | undefined;
  readonly to?: string | number | Date | undefined;
  /** At most this many; default 100, at most 1,000. */
  readonly limit?: number | undefined;
  /** The cursor of the previous page. */
  readonly cursor?: string | undefined;
}

export interface JournalPage {
  readonly runs: Run[];
  /** The start of the next page; undefined: this was the last. */
  readonly cursor: string | undefined;
}

/** Runs read at once while looking for those that match. */
const STEP = 200;

/** Runs that a search for the slowest reads. */
const MOST_SORTED = 50_000;

type Filter = Pick<JournalFilter, "queue" | "node" | "text" | "sort"> & {
  limit: number;
  /** Least duration, ms. */
  least: number;
  task?: TaskName | undefined;
  owner?: string | undefined;
};

/**
 * Final runs of all queues by their end, newest first; within one millisecond by queue, then by id. Pages are stable
 * while runs are added, because the cursor names a run.
 * @throws `INVALID_OPTION`
 */
export async function journal(
  store: Store,
  filter: Filter,
  { start, outcomes, ...window }: JournalWindow,
): Promise<JournalPage> {
  const only = filter.task?.queue ?? filter.queue;
  const queues = only === undefined ? await store.registry.queues() : [only];
  const ends = newestFirst(queues.map((queue) => endsOf(store, queue, window, start)));
  const isSorted = filter.sort === "took";
  let runs: Run[] = [];
  for (let seen = 0; ; ) {
    const positions = await take(ends, STEP);
    if (positions.length === 0) return { runs, cursor: undefined };
    seen += positions.length;
    if (isSorted && seen > MOST_SORTED)
      throw invalid("sort", `more than ${MOST_SORTED} runs.`, "Give a shorter range of time, or a queue.");
    const records = await read(store, positions);
    for (const [i, position] of positions.entries()) {
      const run = records[i];
      if (!run || !matches(run, filter)) continue;
      if (outcomes && !(run.outcome && outcomes.has(run.outcome))) continue;
      runs.push(run);
      if (!isSorted && runs.length === filter.limit) return { runs, cursor: encode(position) };
    }
    if (isSorted) runs = runs.sort((a, b) => tookOf(b) - tookOf(a)).slice(0, filter.limit);
  }
}

interface Window {
  readonly from: number;
  readonly to: number;
}

/** The part of the journal that a filter asks for. @throws `INVALID_OPTION` */
export function journalWindow(filter: JournalFilter): JournalWindow {
  const outcomes = outcomesOf(filter.outcome);
  assertCursor(filter.cursor);
  const from = filter.from === undefined ? 0 : roundedInstant(filter.from, "from");
  const to = filter.to === undefined ? Number.MAX_SAFE_INTEGER : roundedInstant(filter.to, "to");
  if (from > to) throw invalid("from", "after to.", "Give the earlier time first.");
  return { from, to, outcomes, start: filter.cursor === undefined ? undefined : decode(filter.cursor) };
}

interface JournalWindow extends Window {
  readonly outcomes: ReadonlySet<Outcome> | undefined;
  /** The last position of the page before. */
  readonly start: Position | undefined;
}

/** The end of a run, and its place in the journal. */
interface Position {
  readonly queue: string;
  readonly at: number;
  readonly id: string;
}

/** Negative: `a` is listed before `b`. */
function order(a: Position, b: Position): number {
  if (a.at !== b.at) return b.at - a.at;
  if (a.queue !== b.queue) return a.queue < b.queue ? -1 : 1;
  return a.id === b.id ? 0 : a.id > b.id ? -1 : 1;
}

/** The ends of one queue's runs that are listed after `start`. */
async function* endsOf(
  store: Store,
  queue: string,
  { from, to }: Window,
  start: Position | undefined,
): AsyncGenerator<Position> {
  for await (const page of store.runs.ends(queue, { from, to: start?.at ?? to }, STEP))
    for (const end of page) {
      const position = { queue, ...end };
      if (start === undefined || order(start, position) < 0) yield position;
    }
}

/** Merges the ends of many queues. */
async function* newestFirst(queues: readonly AsyncGenerator<Position>[]): AsyncGenerator<Position> {
  const heads = await Promise.all(queues.map(async (ends) => ({ ends, next: await ends.next() })));
  for (;;) {
    let first: (typeof heads)[number] | undefined;
    for (const head of heads) {
      if (!head.next.done && (!first || order(head.next.value, first.next.value) < 0)) first = head;
    }
    if (!first) return;
    yield first.next.value;
    first.next = await first.ends.next();
  }
}

async function take(positions: AsyncGenerator<Position>, most: number): Promise<Position[]> {
  const taken: Position[] = [];
  while (taken.length < most) {
    const { value, done } = await positions.next();
    if (done) break;
    taken.push(value);
  }
  return taken;
}

/** The run at each position; undefined if its record was deleted. */
async function read(store: Store, positions: readonly Position[]): Promise<(Run | undefined)[]> {
  const byQueue = [...grouped(positions, ({ queue }) => queue)];
  const ids = (some: readonly Position[]) => some.map(({ id }) => id);
  const found = await Promise.all(byQueue.map(([queue, some]) => store.runs.many(queue, ids(some))));
  const byId = new Map(found.flat().map((run) => [run.id, run]));
  return positions.map(({ id }) => byId.get(id));
}

/** Duration in ms; below 0 for a run that never started. */
function tookOf({ started, finished }: Run): number {
  return started === undefined || finished === undefined ? -1 : finished - started;
}

export function matches(
  run: Run,
  { task, owner, node, text, least = 0, sort }: Partial<Omit<Filter, "queue" | "limit">>,
): boolean {
  if ((least > 0 || sort === "took") && tookOf(run) < least) return false;
  const texts = [`${run.task.owner}/${run.task.id}`, run.type, run.error ?? ""];
  if (text !== undefined && !texts.some((one) => one.toLowerCase().includes(text.toLowerCase())))
    return false;
  if (task && (run.task.id !== task.id || run.task.owner !== task.owner)) return false;
  if (owner !== undefined && run.task.owner !== owner) return false;
  return node === undefined || run.node === node || run.worker === node;
}

function encode({ queue, at, id }: Position): string {
  return Buffer.from(`${queue} ${at} ${id}`).toString("base64url");
}

function decode(cursor: string): Position {
  const [queue, at, id] = Buffer.from(cursor, "base64url").toString().split(" ");
  if (!queue || !id || !Number.isSafeInteger(Number(at)))
    throw invalid("cursor", `got ${quote(cursor)}.`, "Give the cursor of the previous page.");
  return { queue, at: Number(at), id };
}
