import { OUTCOMES, type TaskName } from "@carillon/core";
import { assertName, frozenText, invalid, scheduleSteps } from "@carillon/core/internal";
import { notFound, roundedInstant, wholeNumber as wholeOption } from "@carillon/sdk/internal";
import type { Recent, ShortRun, Skip, Store, StoredTask } from "@carillon/store";
import { z } from "zod";
import { operation } from "../operation.js";
import { count, instant, runState, taskName, taskRef, time, wholeNumber } from "../shapes.js";
import { TimeSlice } from "./time-slice.js";
import { foresee, timesFrom } from "./walk.js";

const tick = z
  .object({
    nominal: time,
    state: z
      .enum(["enqueued", "skipped", "waiting", "due", "held", "planned"])
      .describe(
        "Waiting: for the end of a run, or to be tried again. Due: no node has claimed it yet. Held: the task is paused, or a freeze holds or skips it.",
      ),
    until: time.optional().describe("Last nominal time of a range of skips that is not listed time by time."),
    decisions: count.optional().describe("Number of decisions that a range stands for."),
    due: time.optional().describe("Later than `nominal` by the jitter. Missing: unknown."),
    reason: z.string().optional().describe("Reason of a skip, as in `runs.skips`."),
    note: z.string().optional().describe("The note of the pause or freeze that skips or holds it."),
    run: z.string().optional().describe("The run; of a skip, the run in its way."),
    trigger: z.string().optional(),
    runState: runState.optional(),
    outcome: z.enum(OUTCOMES).optional(),
    enqueued: time.optional(),
    started: time.optional(),
    finished: time.optional(),
    durationMs: count.optional().describe("From the first start to the end."),
    lateMs: count.optional().describe("Delay with which it was enqueued."),
  })
  .meta({ id: "Tick" });
type Tick = z.output<typeof tick>;

/** Most tasks of which strips are read at once. */
const MOST_STRIPS = 200;
/** Most records of each kind that are read for one list of ticks. */
const MOST_RECORDS = 1_000;

/** The past comes from run records and the skips, as far as these are kept; what is to come, from the schedule as it is now. */
export const listTicks = operation({
  http: "GET /tasks/:queue/:owner/:id/ticks",
  role: "viewer",
  reach: "owner",
  cost: "computes",
  summary:
    "Lists the occurrences of a task in a range of time, in order: skipped with the reason, enqueued with run and outcome, waiting, held, planned.",
  input: z.strictObject({
    ...taskRef,
    from: instant,
    to: instant.describe("Included, as is `from`."),
    limit: wholeNumber.optional().describe("At most 1,000; default 500."),
  }),
  output: z.object({
    ticks: z.array(tick),
    now: time.describe("Redis time: earlier occurrences are decided, or due."),
    next: time.optional().describe("Begin the next call here: there are more than `limit`."),
  }),
  async run({ scope, store }, { queue, owner, id, ...options }) {
    const limit = wholeOption(options.limit ?? 500, "limit", 1, 1_000);
    const [from, to] = [roundedInstant(options.from, "from"), roundedInstant(options.to, "to")];
    if (from > to) throw invalid("from", "after to.", "Give the earlier time first.");
    const name = await scope.locate({ queue, owner, id });
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
  },
});

/** Unknown tasks have none. Takes two round trips for each of their queues. */
export const tickStrips = operation({
  http: "GET /ticks",
  role: "viewer",
  reach: "owner",
  example: { tasks: ["bells/acme/t1", "bells/acme/f1"] },
  summary:
    "Lists the newest decided occurrences of each of these tasks, oldest first; 30 unless `limit` (at most 100) says otherwise.",
  input: z.strictObject({
    tasks: z
      .array(z.string().regex(/^[^/]+\/[^/]+\/[^/]+$/, "not queue/owner/id"), "missing")
      .max(MOST_STRIPS, `more than ${MOST_STRIPS}`)
      .describe("Each as `queue/owner/id`; at most 200."),
    limit: wholeNumber.optional(),
  }),
  output: z.object({ tasks: z.array(z.object({ task: taskName, ticks: z.array(tick) })) }),
  async run({ store, owner }, { tasks, limit: most = 30 }) {
    const limit = wholeOption(most, "limit", 1, 100);
    const names = tasks.map(nameOf).filter((name) => owner === undefined || name.owner === owner);
    const recent = await store.runs.recent(names, { most: limit });
    const strips = names.map((task, i) => {
      const { runs = [], ledger = [] } = recent[i] ?? {};
      const found = [...runs.map(runTick), ...ledger.map(skipTick)].sort(inOrder);
      return { task, ticks: found.slice(-limit) };
    });
    return { tasks: strips };
  },
});

/** @throws `INVALID_NAME` */
function nameOf(text: string): TaskName {
  const [queue = "", owner = "", id = ""] = text.split("/");
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
function expanded(store: Store, task: StoredTask, entry: Skip, { from, to, most }: Window): Tick[] {
  const whole = skipTick(entry);
  if (entry.from === entry.to) return [whole];
  const found: Tick[] = [];
  try {
    const schedule = store.calendars.schedules.get(task.definition);
    if (schedule.delay !== undefined || schedule.next(entry.from - 1) !== entry.from) return [whole];
    const { until: _, decisions: __, ...one } = whole;
    const first = schedule.next(Math.max(entry.from, from) - 1);
    for (const nominal of timesFrom(schedule, first, Math.min(entry.to, to))) {
      if (found.length >= Math.min(most, MOST_OF_RANGE)) return [whole];
      found.push({ ...one, nominal });
    }
  } catch {
    // A schedule that is corrupt or foreign.
    return [whole];
  }
  return found;
}

/** Times of a range that are listed one by one. */
const MOST_OF_RANGE = 200;

function skipTick({ reason, from, to, decisions, run, note }: Skip): Tick {
  return { nominal: from, state: "skipped", ...(to !== from && { until: to, decisions }), reason, note, run };
}

function runTick({ id: run, nominal, due, trigger, state: runState, outcome, ...times }: ShortRun): Tick {
  const { enqueued, started, finished, lateMs } = times;
  const over = started !== undefined && finished !== undefined;
  return {
    nominal,
    state: "enqueued",
    due,
    run,
    trigger,
    runState,
    outcome,
    enqueued,
    started,
    finished,
    lateMs,
    ...(over && { durationMs: Math.max(0, finished - started) }),
  };
}

/** Future occurrences, as far as they are known now. */
async function plannedTicks(store: Store, task: StoredTask, now: number, window: Window): Promise<Tick[]> {
  const { from, to, most } = window;
  const waiting = task.pending.map(
    ({ nominal, trigger, at: due }): Tick => ({ nominal, state: "waiting", trigger, due }),
  );
  const found = waiting.filter(({ nominal }) => nominal >= from && nominal <= to);
  const known = new Set(waiting.map(({ nominal }) => nominal));
  const coming = task.state === "paused" ? heldBy(store, task) : await foreseen(store, task, now, to);
  for await (const one of new TimeSlice().over(coming, scheduleSteps(task.definition.schedule))) {
    if (one === undefined || known.has(one.nominal)) continue;
    if (one.nominal > to || found.length >= most) break;
    if (one.nominal >= from) found.push(one);
  }
  return found;
}

/** The times of a paused task, from the first owed one. */
function* heldBy(store: Store, task: StoredTask): Generator<Tick> {
  const { definition, nominal, paused } = task;
  const schedule = store.calendars.schedules.get(definition);
  const note = paused?.note;
  for (const at of timesFrom(schedule, nominal, schedule.delay === undefined ? undefined : nominal))
    yield { nominal: at, state: "held", due: schedule.due(at), note };
}

async function foreseen(
  store: Store,
  task: StoredTask,
  now: number,
  to: number,
): Promise<Iterable<Tick | undefined>> {
  const freezes = await store.freezes.list();
  return (function* () {
    for (const one of foresee(store, task, now, Math.max(now, to), freezes)) {
      if (!one) yield undefined;
      else {
        const { nominal, due, frozen } = one;
        if (frozen) yield { nominal, state: "held", due, note: frozenText(frozen) };
        else yield { nominal, state: nominal <= now && due <= now ? "due" : "planned", due };
      }
    }
  })();
}

function inOrder(a: Tick, b: Tick): number {
  return a.nominal - b.nominal || (a.enqueued ?? 0) - (b.enqueued ?? 0);
}
