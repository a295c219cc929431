import {
  previewSchedule,
  type Run,
  type SkipReason,
  seedOf,
  type TaskDefinition,
  type TaskRef,
} from "@carillon/core";
import {
  calendarsOf,
  counted,
  covers,
  decide,
  errorOf,
  frozenAt,
  frozenText,
  type Pending,
  scheduleSteps,
  shardOf,
} from "@carillon/core/internal";
import {
  type Attempt,
  dueTask,
  isAlive,
  type LedgerEntry,
  type Store,
  type StoredTask,
} from "@carillon/store";
import { roundedInstant } from "../instant.js";
import { notFound } from "./input.js";
import { holdOf } from "./queue-hold.js";
import type { Scope } from "./scope.js";
import { TimeSlice } from "./time-slice.js";

/** The state of an occurrence, in one word. */
export type Verdict =
  | "enqueued"
  | "skipped"
  | "waiting"
  | "due"
  | "planned"
  | "held"
  | "no-occurrence"
  | "before-task"
  | "expired";

/** One thing that happened, in the order of time. */
export interface ExplainedEvent {
  /** UTC ms; undefined: it has not happened yet. */
  readonly at: number | undefined;
  readonly what: string;
  readonly text: string;
  readonly run?: string;
  /** The node, client or worker that did it. */
  readonly by?: string;
}

/** Reasons why a task did, or did not, run at a time. */
export interface Explanation {
  readonly task: string;
  /** The nominal time asked for, UTC ms. */
  readonly time: number;
  readonly verdict: Verdict;
  /** The answer in one sentence. */
  readonly summary: string;
  readonly events: readonly ExplainedEvent[];
  /**
   * Reason why no worker takes a run that waits, this one or the one in its way: the queue is paused, or has no worker, or
   * none for its type.
   */
  readonly hold?: string;
  /** The occurrences before and after, if `time` is not one. */
  readonly nearest?: { readonly before: number | undefined; readonly after: number | undefined };
}

/** An enqueue is called late from this many ms on. */
const LATE = 1_000;
/** More runs than a task may keep of one kind. */
const ALL = 100_000;

/** Everything known about one occurrence, from run records, the ledger and the task itself. */
/** @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`, `INVALID_OPTION` */
export async function explainAt(
  scope: Scope,
  ref: TaskRef,
  time: string | number | Date,
): Promise<Explanation> {
  const at = roundedInstant(time, "time");
  const name = await scope.locate(ref);
  const stored = await scope.store.tasks.get(name);
  if (!stored) throw notFound(name);
  return explain(scope.store, stored, at);
}

async function explain(store: Store, stored: StoredTask, time: number): Promise<Explanation> {
  const { definition } = stored;
  const name = { queue: definition.queue, owner: definition.owner, id: definition.id };
  await store.calendars.refresh();
  const [now, all, ledger] = await Promise.all([
    store.tasks.time(name.queue),
    store.runs.list(name, ALL),
    store.runs.ledger(name),
  ]);
  const schedule = store.calendars.schedules.get(definition);
  const base = { task: `${name.owner}/${name.id}`, time };
  const runs = all.filter((run) => run.nominal === time).sort((a, b) => a.enqueued - b.enqueued);
  const events: ExplainedEvent[] = [];
  for (const run of runs) {
    events.push(...eventsOf(run, await store.runs.attempts(name.queue, run.id)));
    const wait = crashWait(run, stored, now);
    if (wait) events.push({ run: run.id, at: undefined, what: "crash-wait", text: wait });
    const before = run.enqueued - run.due >= LATE ? inTheWay(run, all) : undefined;
    if (before) events.push(before);
  }
  const isOccurrence =
    schedule.delay === undefined ? schedule.next(time - 1) === time : stored.nominal === time;
  // A range names the occurrences in it, not all times between its ends.
  const entries = ledger.filter(({ from, to }) =>
    from === to ? from === time : isOccurrence && from <= time && time <= to,
  );
  for (const entry of entries) events.push(await skipEvent(store, name.queue, entry));
  const skip = entries[0];
  const last = runs.at(-1);
  const pending = stored.pending.find(({ nominal }) => nominal === time);
  if (pending) events.push(pendingEvent(pending, now));
  events.sort((a, b) => (a.at ?? Number.POSITIVE_INFINITY) - (b.at ?? Number.POSITIVE_INFINITY));

  const answer = (verdict: Verdict, summary: string, more: Partial<Explanation> = {}): Explanation => ({
    ...base,
    verdict,
    summary,
    events,
    ...more,
  });
  const behind = pending !== undefined && (pending.at ?? now) <= now;
  const queued = all.find(
    ({ id, state }) => state === "queued" && (last ? id === last.id : behind || id === skip?.run),
  );
  const hold = queued && (await holdOf(store, name.queue, definition.type));
  const held = hold === undefined ? {} : { hold };
  if (last) {
    const wait = crashWait(last, stored, now);
    return answer("enqueued", runSummary(last, runs.length, { wait, hold }), held);
  }
  const then = hold === undefined ? "" : ` The run in its way waits: ${hold}.`;
  const frozen = frozenAt(
    (await store.freezes.list()).filter((one) => covers(one, definition)),
    now,
  );
  if (frozen && (pending || (isOccurrence && stored.nominal === time && time <= now))) {
    return answer("waiting", `It waits: ${frozenText(frozen)}.`);
  }
  if (pending) return answer("waiting", `It waits: ${pendingEvent(pending, now).text}.${then}`, held);
  // A retry's own end: nothing else of the occurrence is left.
  if (entries.some(({ reason }) => reason === RETRY)) {
    const why = `its retry was superseded: ${REASONS[RETRY]}`;
    return answer("enqueued", `It ran and failed, but the record of that is no longer kept; ${why}.`);
  }
  if (skip) {
    const why =
      skip.reason === "frozen" && skip.note ? skip.note : (REASONS[skip.reason as SkipReason] ?? skip.reason);
    return answer("skipped", `It was skipped: ${why}.${then}`, held);
  }

  if (!isOccurrence) {
    const nearest = { before: schedule.latest(time - 1), after: schedule.next(time) };
    const by = schedule.delay === undefined ? excluderOf(store, definition, time) : undefined;
    const summary =
      by === undefined
        ? "The schedule, as it is now, names no such time."
        : `The schedule excludes it: ${by}.`;
    return answer("no-occurrence", summary, { nearest });
  }
  if (time <= stored.created) {
    return answer("before-task", `The task was put later, at ${iso(stored.created)}.`);
  }
  if (stored.cursor !== undefined && time <= stored.cursor) {
    return answer("expired", "It was decided, but the record of it is no longer kept.");
  }
  const isBeyond = await isBeyondMaxRuns(store, stored, time, now);
  if (isBeyond) {
    return answer("no-occurrence", "It comes after the last run that maxRuns allows.");
  }
  if (stored.moving !== undefined)
    return answer(
      "held",
      "A move to another queue holds the task. If none is under way, one was interrupted: repeat it.",
    );
  if (stored.state === "paused")
    return answer("held", `The task is paused since ${iso(stored.paused?.at ?? 0)}.`);
  if (stored.nominal !== undefined && time < stored.nominal) {
    return answer("expired", "It was passed over when the task was put, edited or resumed.");
  }
  const due = schedule.due(time);
  if (due <= now) return answer("due", await overdue(store, stored, now, due));
  const unless = isBeyond === undefined ? ", unless maxRuns is reached before" : "";
  return answer("planned", `It is due at ${iso(due)}, in ${span(due - now)}${unless}.`);
}

/** The exclusion that removes this time from the schedule; undefined if there is none. */
function excluderOf({ calendars }: Store, task: TaskDefinition, time: number): string | undefined {
  const { schedule } = task;
  const named = calendarsOf(schedule);
  const { context } = calendars.schedules;
  const { excluded } = previewSchedule(schedule, { from: time - 1, count: 1, seed: seedOf(task), context });
  const by = excluded.find((one) => one.time === time)?.by;
  return by !== undefined && named.includes(by) ? `the calendar ${by}` : by;
}

/**
 * Whether `maxRuns` is used up before the given future time, if runs take no time. Pending occurrences count; occurrences that
 * catch-up passes over do not. Undefined: too many times lie in between to tell.
 */
async function isBeyondMaxRuns(
  store: Store,
  stored: StoredTask,
  time: number,
  now: number,
): Promise<boolean | undefined> {
  const { schedule, slot, ...task } = dueTask(
    { task: stored, running: undefined },
    store.calendars.schedules,
  );
  if (!schedule.spent(Number.POSITIVE_INFINITY)) return false;
  const fired = task.fired + counted(task.pending);
  if (schedule.spent(fired)) return true;
  const { enqueue, next } = decide({ ...task, schedule, slot, fired, pending: [] }, now);
  const planned = next === "kept" ? slot : next && "nominal" in next ? next : undefined;
  const slice = new TimeSlice();
  const steps = scheduleSteps(stored.definition.schedule);
  let at = (enqueue ?? planned)?.nominal;
  for (let n = 1; at !== undefined && at < time; n++) {
    if (schedule.spent(fired + n)) return true;
    if (slice.took(steps) && !(await slice.next())) return undefined;
    at = schedule.next(at);
  }
  return false;
}

const RETRY = "retry-superseded" satisfies SkipReason;

const REASONS: Readonly<Record<SkipReason, string>> = {
  overlap: "an earlier run was not over, and the overlap policy lets none start beside it",
  behind: "an earlier run was not over, because no worker had begun it, or only just",
  "manual-overlap": "asked for by hand while an earlier run was not over",
  "manual-superseded": "asked for by hand, and again before it could go",
  missed: "it could be decided only when it was too late for it, and the catch-up policy passes it over",
  paused: "it fell due while the task was paused, and the task was resumed from then on",
  excluded: "an exclusion of the schedule takes it away",
  frozen: "a freeze held its task",
  quota: "a quota was used up: as many jobs waited as may, or it came too soon after the time before",
  superseded: "a later occurrence, or an edit of the schedule, took its place",
  "retry-superseded": "the next occurrence was due before the retry could go, and does its work",
};

/** @param wait of a crashed run @param hold of its queue */
function runSummary(
  run: Run,
  runs: number,
  { wait, hold }: { wait: string | undefined; hold: string | undefined },
): string {
  const late = `enqueued ${span(run.enqueued - run.due)} after it was due`;
  const now = wait === undefined ? `is ${run.state}` : `crashed; it ${wait}`;
  const reason = run.outcome === "dropped" && run.error !== undefined ? `, since it ${run.error}` : "";
  const end = run.state === "final" ? `ended: ${run.outcome}${reason}` : now;
  const why = hold === undefined ? "" : `: ${hold}`;
  return `It was ${late}; ${runs > 1 ? `the last of ${runs} runs` : "its run"} ${end}${why}.`;
}

/** Reason why a crashed run waits for its next attempt; undefined if it does not. */
function crashWait({ state, notBefore }: Run, task: StoredTask, now: number): string | undefined {
  if (state !== "queued" || notBefore === undefined) return undefined;
  const waits = [
    ...(now < notBefore ? [`until ${iso(notBefore)}`] : []),
    ...(task.state === "paused" ? ["until its task is resumed"] : []),
  ];
  return waits.length === 0 ? undefined : `waits ${waits.join(", and ")}`;
}

function eventsOf(run: Run, attempts: readonly Attempt[]): ExplainedEvent[] {
  const about = { run: run.id };
  const late = span(run.enqueued - run.due);
  const events: ExplainedEvent[] = [
    {
      ...about,
      at: run.enqueued,
      what: "enqueued",
      by: run.node,
      text: `${run.node} enqueued it (${run.trigger}), ${late} after it was due${
        run.missed ? `, for all since ${iso(run.missed.from)}` : ""
      }${askedBy(run)}`,
    },
  ];
  for (const { attempt, started, worker, pid, host } of attempts) {
    const text = `attempt ${attempt} started on ${host}, process ${pid}, worker ${worker}`;
    events.push({ ...about, at: started, what: "attempt", by: worker, text });
  }
  if (run.cancel) {
    events.push({
      ...about,
      at: run.cancel.at,
      what: "cancel",
      by: run.cancel.by,
      text: `${run.cancel.by} cancelled it`,
    });
  }
  if (run.crashes) {
    events.push({
      ...about,
      at: run.finished,
      what: "crashes",
      text: `${run.crashes} of its attempts lost their worker`,
    });
  }
  if (run.finished !== undefined) {
    const error = errorOf(run);
    const why = error === undefined ? "" : `: ${error.split("\n")[0]}`;
    events.push({
      ...about,
      at: run.finished,
      what: run.outcome ?? "final",
      text: `it ended: ${run.outcome}${why}`,
    });
  }
  return events;
}

/** The run that delayed a late run: the last one still open when that was due. */
function inTheWay(run: Run, all: readonly Run[]): ExplainedEvent | undefined {
  const before = all
    .filter(({ id }) => id !== run.id)
    .filter(
      ({ enqueued, finished }) => enqueued <= run.due && (finished ?? Number.POSITIVE_INFINITY) > run.due,
    )
    .sort((a, b) => b.enqueued - a.enqueued)[0];
  if (!before) return undefined;
  const end = before.outcome ?? before.state;
  const text = `due, but the run of ${iso(before.nominal)} was not over (now ${end})`;
  return { at: run.due, what: "waited", text };
}

async function skipEvent(store: Store, queue: string, entry: LedgerEntry): Promise<ExplainedEvent> {
  const { reason, from, to, at, by, run, note } = entry;
  const range = from === to ? "" : `, with all from ${iso(from)} to ${iso(to)}`;
  const seen = run === undefined ? undefined : await store.runs.get(queue, run);
  const way = seen
    ? `; in the way was the run of ${iso(seen.nominal)}, then not over (now ${seen.outcome ?? seen.state})`
    : "";
  const ofRetry = reason === RETRY;
  // The run whose end decided: that of this occurrence, or of the last one in the range.
  if (ofRetry && by.includes("@")) {
    return { at, what: "skipped", text: `its retry was given up (${reason})${range}` };
  }
  const what = ofRetry ? "gave up its retry" : "skipped it";
  // Notes of freezes say "frozen by …" themselves.
  const why = note === undefined ? reason : note.startsWith(`${reason} `) ? note : `${reason}: ${note}`;
  const text = `${by === "-" ? "a client" : by} ${what} (${why})${range}${way}`;
  return { at, what: "skipped", text, by, ...(run === undefined ? {} : { run }) };
}

function askedBy({ by }: { by?: string | undefined }): string {
  return by === undefined ? "" : `, asked for by ${by}`;
}

function pendingEvent({ at, trigger, by }: Pending, now: number): ExplainedEvent {
  const when = at === undefined || at <= now ? "until no run is in its way" : `until ${iso(at)}`;
  return { at: undefined, what: "pending", text: `kept (${trigger}) ${when}${askedBy({ by })}` };
}

async function overdue(store: Store, stored: StoredTask, now: number, due: number): Promise<string> {
  const nodes = await store.registry.nodes();
  const alive = nodes.filter((node) => isAlive(node, now));
  const shard = shardOf(`${stored.definition.owner}/${stored.definition.id}`);
  const late = `It is due since ${iso(due)}, ${span(now - due)} ago, and not decided yet`;
  const { owner, queue } = stored.definition;
  const { held, waits } = await store.queues.place(stored.definition);
  if (waits)
    return `${late}: ${owner} has ${held} runs in queue ${queue}, as many as it may. It waits for one to end.`;
  return alive.length === 0
    ? `${late}: no scheduler node is alive. Start one; the catch-up policy then decides.`
    : `${late}; ${alive.length === 1 ? "1 node is" : `${alive.length} nodes are`} alive (shard ${shard}).`;
}

function iso(time: number): string {
  return new Date(time).toISOString().replace(".000Z", "Z");
}

/** A length of time for people: the two largest units. */
function span(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  const units: [string, number][] = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
    ["s", 1_000],
  ];
  const at = units.findIndex(([, size]) => ms >= size);
  const [first, second] = units.slice(at, at + 2) as [[string, number], [string, number] | undefined];
  const rest = second ? Math.floor((ms % first[1]) / second[1]) : 0;
  const head = `${Math.floor(ms / first[1])} ${first[0]}`;
  return second && rest > 0 ? `${head} ${rest} ${second[0]}` : head;
}
