import { compileSchedule, OUTCOMES, type Outcome, type Run, type Schedule } from "@carillon/core";
import type { Pending } from "@carillon/core/internal";
import type { RedisClient, Skip, Store, StoredTask } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";

/** Facts about a task that the checks need and Redis does not hold. */
export interface Known {
  /** The schedule, as long as it was never changed. */
  readonly schedule: Schedule | undefined;
  /** Whether two of its runs may overlap: its policy was `allow` at some time, or a trigger allowed it. */
  readonly mayOverlap: boolean;
  /** Whether it has been a shadow from its beginning. */
  readonly shadow: boolean;
  /** Nominal times after this one belong to the task. */
  readonly born: number;
}

/** Reasons for a skip that are final; any other decision may still change. */
const FINAL_SKIPS = new Set([
  "overlap",
  "behind",
  "missed",
  "paused",
  "excluded",
  "superseded",
  "frozen",
  "shadow",
]);
/** The ledger forgets what is beyond this many entries. */
const LEDGER_CAP = 50;

/** Checks each promise about one task against run records, ledger, jobs, the task itself, and what it was before. */
export async function checkTask(
  store: Store,
  client: RedisClient,
  task: StoredTask,
  known: Known,
  progress: Progress,
): Promise<void> {
  progress.check(task);
  const { id, owner, queue } = task.definition;
  const name = { queue, owner, id };
  const [runs, ledger, stats, open] = await Promise.all([
    store.runs.list(name, 1_000),
    store.runs.ledger(name),
    store.runs.stats(name),
    store.runs.open(name),
  ]);
  progress.ends(runs);
  decidedOnce(id, runs, ledger, task.pending);
  neverEarly(id, runs);
  if (known.shadow && runs.some(({ trigger }) => trigger === "schedule" || trigger === "catch-up"))
    fail(`${id}: a shadow enqueued a time of its schedule`);
  if (known.schedule && ledger.length < LEDGER_CAP) {
    nothingMissing(id, known.schedule, known.born, task.cursor ?? 0, runs, ledger, task.pending);
  }
  countsAgree(id, runs, stats, open.length);
  if (known.mayOverlap) return;
  const { bull } = internalsOf(store).keys.queue(queue);
  const live = await liveJobs(client, bull, runs);
  if (live.length > 1) fail(`${id}: runs beside each other: ${live.join(" ")}`);
}

/** Invariant 3, and the states of runs: final is the last one (docs/architecture/run.md). */
export class Progress {
  /** Runs whose jobs were retried from outside: each may be open again. */
  readonly retried = new Set<string>();
  readonly #ends = new Map<string, string>();
  readonly #generations = new Map<string, bigint>();
  readonly #cursors = new Map<string, number>();

  check({ definition: { id }, generation, cursor = 0 }: StoredTask): void {
    const before = this.#generations.get(id) ?? 0n;
    if (BigInt(generation) < before) fail(`${id}: the generation went back from ${before} to ${generation}`);
    this.#generations.set(id, BigInt(generation));
    const last = this.#cursors.get(id) ?? 0;
    if (cursor < last) fail(`${id}: the cursor went back from ${last} to ${cursor}`);
    this.#cursors.set(id, cursor);
  }

  ends(runs: readonly Run[]): void {
    for (const { id, state, outcome, finished } of runs) {
      const [before, end] = [this.#ends.get(id), `${state} ${outcome} ${finished}`];
      if (before !== undefined && before !== end && !this.retried.delete(id))
        fail(`the final run ${id} was ${before}, and is ${end}`);
      if (state === "final") this.#ends.set(id, end);
      else this.#ends.delete(id);
    }
  }

  /** Call this when a task is deleted: a new task of the same name has its own cursor. */
  deleted(id: string): void {
    this.#cursors.delete(id);
  }
}

/** Invariant 1: an occurrence is enqueued once, or skipped, or waits. */
function decidedOnce(
  id: string,
  runs: readonly Run[],
  ledger: readonly Skip[],
  pending: readonly Pending[],
): void {
  const seen = new Set<string>();
  for (const run of runs) {
    if (run.trigger === "retry" || run.itemsOf !== undefined) continue;
    if (seen.has(run.key)) fail(`${id}: enqueued twice: ${run.key}`);
    seen.add(run.key);
  }
  for (const one of pending) {
    if (one.trigger !== "retry" && seen.has(one.key)) fail(`${id}: enqueued and waiting: ${one.key}`);
  }
  // Manual runs have no nominal time of the schedule; backfills decide a time again.
  const again = new Set(["retry", "manual", "backfill", "items"]);
  const first = runs.filter(({ trigger }) => !again.has(trigger));
  const skips = ledger.filter(({ reason }) => FINAL_SKIPS.has(reason));
  for (const [i, a] of skips.entries()) {
    for (const run of first) {
      if (a.from <= run.nominal && run.nominal <= a.to)
        fail(`${id}: enqueued and skipped (${a.reason}): ${run.key}`);
    }
    for (const b of skips.slice(i + 1)) {
      if (a.from <= b.to && b.from <= a.to)
        fail(`${id}: skipped twice (${a.reason}, ${b.reason}): ${a.from}`);
    }
  }
}

/** Invariant 4. */
function neverEarly(id: string, runs: readonly Run[]): void {
  // A run of items has the due time of the run whose items it does again, a backfill those of times that were past: the clock may have gone
  // back since.
  for (const run of runs)
    if (run.itemsOf === undefined && run.trigger !== "backfill" && run.enqueued < run.due)
      fail(`${id}: enqueued before it was due: ${run.key}`);
}

/** Invariant 2, for a task whose schedule was never edited. */
function nothingMissing(
  id: string,
  stored: Schedule,
  born: number,
  cursor: number,
  runs: readonly Run[],
  ledger: readonly Skip[],
  pending: readonly Pending[],
): void {
  if ("anchor" in stored) return;
  const schedule = compileSchedule(stored, id);
  const own = [...runs, ...pending].filter(({ trigger }) => trigger !== "backfill");
  const decided = new Set(own.map(({ nominal }) => nominal));
  for (let at = schedule.next(born); at !== undefined && at <= cursor; at = schedule.next(at)) {
    const time = at;
    const skipped = ledger.some(
      ({ reason, from, to }) => FINAL_SKIPS.has(reason) && from <= time && time <= to,
    );
    if (!decided.has(time) && !skipped) fail(`${id}: nothing is known of ${new Date(time).toISOString()}`);
  }
}

/** Invariant 5: jobs that are not finished, by their own state. */
export async function liveJobs(client: RedisClient, bull: string, runs: readonly Run[]): Promise<string[]> {
  const states = await Promise.all(
    runs.map(({ id }) => client.hmget(`${bull}${id}`, "timestamp", "finishedOn")),
  );
  return runs.flatMap(({ id }, i) => {
    const [timestamp, finished] = states[i] as (string | null)[];
    return timestamp && !finished ? [id] : [];
  });
}

/** Invariant 6. */
function countsAgree(id: string, runs: readonly Run[], stats: Record<string, string>, open: number): void {
  const final = runs.filter(({ state }) => state === "final");
  for (const outcome of OUTCOMES) {
    const records = final.filter((run) => run.outcome === (outcome as Outcome)).length;
    if (records !== Number(stats[outcome] ?? 0))
      fail(`${id}: ${records} runs ${outcome}, counted ${stats[outcome]}`);
  }
  if (runs.length !== final.length + open)
    fail(`${id}: ${runs.length} runs, ${final.length} final, ${open} open`);
  for (const field of ["crashes", "consecutiveCrashes"]) {
    if (Number(stats[field] ?? 0) < 0) fail(`${id}: ${field} is ${stats[field]}`);
  }
}

export function fail(message: string): never {
  throw new Error(message);
}
