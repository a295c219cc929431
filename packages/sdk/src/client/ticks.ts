import {
  CarillonError,
  type Outcome,
  type RunState,
  type TaskName,
  type TaskRef,
  type Trigger,
} from "@carillon/core";
import { assertName, assertOptions, covers, frozenText, quote, scheduleSteps } from "@carillon/core/internal";
import type { LedgerEntry, Recent, ShortRun, Store, StoredTask } from "@carillon/store";
import { roundedInstant } from "../instant.js";
import type { Verdict } from "./explain.js";
import { foresee } from "./forecast.js";
import { assertRef, notFound, wholeNumber } from "./input.js";
import type { Scope } from "./scope.js";
import { TimeSlice } from "./time-slice.js";

/**
 * The fate of one nominal time of a task, past or future. `held`: the task is paused, or a freeze holds or skips it;
 * `due`: no node has claimed it yet; `waiting`: for a run's end, or to be tried again.
 */
export type TickState = Extract<Verdict, "enqueued" | "skipped" | "waiting" | "due" | "held" | "planned">;

/** One occurrence of a task, or several skipped ones in a row. Times in UTC ms. */
export interface Tick {
  readonly nominal: number;
  readonly state: TickState;
  /** The last nominal time of a range of skips that is not listed time by time. */
  readonly until?: number;
  /** Number of decisions that a range stands for. */
  readonly decisions?: number;
  /** Due time, past or future: later than `nominal` by the jitter. Absent: unknown. */
  readonly due?: number;
  /** Reason why it was skipped: as in the ledger. */
  readonly reason?: string;
  /** The note of the pause or freeze that skips or holds it. */
  readonly note?: string;
  /** The run; of a skip, the run in its way. */
  readonly run?: string;
  readonly trigger?: Trigger;
  readonly runState?: RunState;
  readonly outcome?: Outcome;
  readonly enqueued?: number;
  readonly started?: number;
  readonly finished?: number;
  /** From the first start to the end. */
  readonly durationMs?: number;
  /** Delay with which it was enqueued. */
  readonly lateMs?: number;
}

/** Ticks in the order of their nominal times. */
export interface TickList {
  readonly ticks: Tick[];
  /** UTC ms of Redis time: earlier occurrences are decided, or due. */
  readonly now: number;
  /** Begin the next call here: there are more than `limit`. */
  readonly next?: number;
}

/** The newest ticks of one task. */
export interface TickStrip {
  readonly task: TaskName;
  readonly ticks: Tick[];
}

export interface TickOptions {
  /** Both included: ISO 8601 with offset, a Date or epoch ms. */
  readonly from: string | number | Date;
  readonly to: string | number | Date;
  /** At most this many; default 500, at most 1,000. */
  readonly limit?: number | undefined;
}

/** Most tasks of which strips are read at once. */
const MOST_STRIPS = 200;
/** Most records of each kind that are read for one list of ticks. */
const MOST_RECORDS = 1_000;

/** All that is known of a task's occurrences in a range of time, from records, ledger and schedule. */
export async function listTicks(scope: Scope, ref: TaskRef, options: TickOptions): Promise<TickList> {
  assertOptions(options, ["from", "to", "limit"]);
  const limit = wholeNumber(options.limit ?? 500, "limit", 1, 1_000);
  const [from, to] = [roundedInstant(options.from, "from"), roundedInstant(options.to, "to")];
  if (from > to) {
    throw new CarillonError("INVALID_OPTION", "after to.", {
      field: "from",
      remedy: "Give the earlier time first.",
    });
  }
  const name = await scope.locate(ref);
  const { store } = scope;
  await store.calendars.refresh();
  const [task, now, [recent]] = await Promise.all([
    store.tasks.get(name),
    store.tasks.time(name.queue),
    // A run never ends before its nominal time.
    store.runs.recent([name], { most: MOST_RECORDS, since: from }),
  ]);
  if (!task) throw notFound(name);
  const window = { from, to, most: limit + 1 };
  const found = [
    ...pastTicks(store, task, recent ?? { runs: [], ledger: [] }, window),
    ...(await plannedTicks(store, task, now, window)),
  ].sort(inOrder);
  const rest = found[limit];
  return { ticks: found.slice(0, limit), now, ...(rest && { next: rest.nominal }) };
}

/**
 * The newest decided ticks of many tasks, for a strip of each: two round trips for each of their queues. Unknown tasks
 * have none.
 */
export async function tickStrips(
  { store, owner }: Scope,
  refs: readonly TaskName[],
  options: { limit?: number | undefined } = {},
): Promise<TickStrip[]> {
  assertOptions(options, ["limit"]);
  const limit = wholeNumber(options.limit ?? 30, "limit", 1, 100);
  if (!Array.isArray(refs) || refs.length > MOST_STRIPS) {
    const what = Array.isArray(refs) ? `more than ${MOST_STRIPS}.` : `got ${quote(refs)}.`;
    throw new CarillonError("INVALID_OPTION", what, {
      field: "tasks",
      remedy: `Give a list of at most ${MOST_STRIPS} tasks, each with queue, owner and id.`,
    });
  }
  const names = refs.map(nameOf).filter((name) => owner === undefined || name.owner === owner);
  const recent = await store.runs.recent(names, { most: limit });
  return names.map((task, i) => {
    const { runs = [], ledger = [] } = recent[i] ?? {};
    const found = [...runs.map(runTick), ...ledger.map(skipTick)].sort(inOrder);
    return { task, ticks: found.slice(-limit) };
  });
}

/** @throws `INVALID_NAME` */
function nameOf(ref: TaskName): TaskName {
  assertRef(ref);
  const { queue, owner, id } = ref;
  for (const [field, value] of Object.entries({ queue, owner, id })) assertName(value, field);
  return { queue, owner, id };
}

interface Window {
  readonly from: number;
  readonly to: number;
  /** Number of ticks that are needed. */
  readonly most: number;
}

function pastTicks(
  store: Store,
  task: StoredTask,
  { runs, ledger }: Recent,
  { from, to, most }: Window,
): Tick[] {
  const inside = ({ nominal }: Tick) => nominal >= from && nominal <= to;
  const skips = ledger
    .filter((entry) => entry.to >= from && entry.from <= to)
    .flatMap((entry) => expanded(store, task, entry, { from, to, most }));
  return [...runs.map(runTick).filter(inside), ...skips];
}

/**
 * The times of a range of skips, by the present schedule; the range itself if there are too many, or if the schedule
 * does not contain its ends.
 */
function expanded(store: Store, task: StoredTask, entry: LedgerEntry, { from, to, most }: Window): Tick[] {
  const whole = skipTick(entry);
  if (entry.from === entry.to) return [whole];
  const found: Tick[] = [];
  try {
    const schedule = store.calendars.schedules.get(task.definition);
    if (schedule.delay !== undefined || schedule.next(entry.from - 1) !== entry.from) return [whole];
    const { until: _, decisions: __, ...one } = whole;
    const last = Math.min(entry.to, to);
    let at = schedule.next(Math.max(entry.from, from) - 1);
    for (; at !== undefined && at <= last; at = schedule.next(at)) {
      if (found.length >= Math.min(most, MOST_OF_RANGE)) return [whole];
      found.push({ ...one, nominal: at });
    }
  } catch {
    // A schedule that is corrupt or foreign.
    return [whole];
  }
  return found;
}

/** Times of a range that are listed one by one. */
const MOST_OF_RANGE = 200;

function skipTick({ reason, from, to, decisions, run, note }: LedgerEntry): Tick {
  return {
    nominal: from,
    state: "skipped",
    ...(to !== from && { until: to, decisions }),
    reason,
    ...(note !== undefined && { note }),
    ...(run !== undefined && { run }),
  };
}

function runTick(run: ShortRun): Tick {
  const { id, nominal, due, trigger, state, outcome, enqueued, started, finished, lateMs } = run;
  return {
    nominal,
    state: "enqueued",
    due,
    run: id,
    trigger,
    runState: state,
    ...(outcome !== undefined && { outcome }),
    enqueued,
    ...(started !== undefined && { started }),
    ...(finished !== undefined && { finished }),
    ...(started !== undefined && finished !== undefined && { durationMs: Math.max(0, finished - started) }),
    ...(lateMs !== undefined && { lateMs }),
  };
}

/** Future occurrences, as far as they are known now. */
async function plannedTicks(store: Store, task: StoredTask, now: number, window: Window): Promise<Tick[]> {
  const { from, to, most } = window;
  const waiting = task.pending.map(
    ({ nominal, trigger, at }): Tick => ({
      nominal,
      state: "waiting",
      trigger,
      ...(at !== undefined && { due: at }),
    }),
  );
  const found = waiting.filter(({ nominal }) => nominal >= from && nominal <= to);
  const known = new Set(waiting.map(({ nominal }) => nominal));
  const slice = new TimeSlice();
  const steps = scheduleSteps(task.definition.schedule);
  for (const one of task.state === "paused" ? heldBy(store, task) : await foreseen(store, task, now, to)) {
    if (slice.took(steps) && !(await slice.next())) break;
    if (one === undefined || known.has(one.nominal)) continue;
    if (one.nominal > to || found.length >= most) break;
    if (one.nominal >= from) found.push(one);
  }
  return found;
}

/** The times of a paused task, from the first owed one. */
function* heldBy(store: Store, task: StoredTask): Generator<Tick | undefined> {
  const { definition, nominal, paused } = task;
  const schedule = store.calendars.schedules.get(definition);
  const note = paused?.note;
  for (let at = nominal; at !== undefined; at = schedule.delay === undefined ? schedule.next(at) : undefined)
    yield { nominal: at, state: "held", due: schedule.due(at), ...(note !== undefined && { note }) };
}

async function foreseen(
  store: Store,
  task: StoredTask,
  now: number,
  to: number,
): Promise<Iterable<Tick | undefined>> {
  const freezes = (await store.freezes.list()).filter((one) => covers(one, task.definition));
  return (function* () {
    for (const one of foresee(store, task, now, Math.max(now, to), freezes)) {
      if (!one) yield undefined;
      else if (one.frozen)
        yield { nominal: one.nominal, state: "held", due: one.due, note: frozenText(one.frozen) };
      else
        yield {
          nominal: one.nominal,
          state: one.nominal <= now && one.due <= now ? "due" : "planned",
          due: one.due,
        };
    }
  })();
}

function inOrder(a: Tick, b: Tick): number {
  return a.nominal - b.nominal || (a.enqueued ?? 0) - (b.enqueued ?? 0);
}
