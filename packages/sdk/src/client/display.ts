import type { Run } from "@carillon/core";
import {
  covers,
  type Display,
  defined,
  type Freeze,
  frozenAt,
  grouped,
  nextThawed,
  readyAt,
  type Work,
} from "@carillon/core/internal";
import { dueTask, type LastRun, nextOf, type StoredTask } from "@carillon/store";
import type { Scope } from "./scope.js";

/** An occurrence that no node has claimed for this many ms is overdue. */
export const PATIENCE = 1_000;
/** Jobs of each kind of a queue that are read to find runs whose items are processed. */
const MOST_HELD = 1_000;

/** A task, and the runs on which its display depends. */
export interface Seen {
  readonly stored: StoredTask;
  readonly runs: readonly Run[];
  readonly failing: LastRun["failing"];
}

/** Facts of the namespace that tasks are displayed with: one round trip for any number of tasks. */
export async function readHolds({ store }: Pick<Scope, "store">) {
  const [freezes, now] = await Promise.all([store.freezes.list(), store.freezes.time()]);
  return { freezes, now };
}

/** The present state of each task. Reads queues and workers only if a run waits, once for all tasks. */
export async function displaysOf(
  scope: Pick<Scope, "store" | "coverage">,
  tasks: readonly Seen[],
  { freezes, now }: Awaited<ReturnType<typeof readHolds>>,
): Promise<Display[]> {
  const waits = await waitsOf(scope, tasks);
  if (freezes.length > 0) await scope.store.calendars.refresh();
  return tasks.map(({ stored, failing }, i): Display => {
    const { state, moving, paused, due, definition } = stored;
    const its = freezes.filter((one) => covers(one, definition));
    const planned = nextOf(stored)?.due;
    const next = its.length === 0 ? planned : thawedOf(scope, stored, its, now);
    const skips = next !== undefined && due !== undefined && due < next && !("at" in definition.schedule);
    const times = { ...defined({ next }), ...(skips && { skips }) };
    const { code, ...wait } = waits[i] ?? {};
    if (code !== undefined) return { code, ...wait, ...times };
    if (moving !== undefined) return { code: "moving" };
    if (state === "paused") return { code: "paused", ...authorOf(paused) };
    if (state === "finished") return { code: "over", ...(failing && { failures: failing.failures }) };
    const held = frozenAt(its, now);
    if (held) {
      const { id: freeze, until, by, note } = held;
      return { code: "held", freeze, ...defined({ until, by, note }), ...times };
    }
    if (failing) return { code: "fails", ...failing, ...times };
    if (planned === undefined) return { code: "never-due" };
    return planned < now - PATIENCE
      ? { code: "overdue", since: planned, ...times }
      : { code: "due", ...times };
  });
}

function authorOf({ by, note }: Partial<Record<"by" | "note", string | undefined>> = {}) {
  return defined({ by, note });
}

/** When the next occurrence starts that no freeze skips or holds. Undefined if the schedule is corrupt or foreign. */
function thawedOf(
  { store }: Pick<Scope, "store">,
  stored: StoredTask,
  freezes: readonly Freeze[],
  now: number,
): number | undefined {
  if (nextOf(stored) === undefined) return undefined;
  try {
    const timed = stored.pending.flatMap((one) => (one.at === undefined ? [] : [readyAt(one)]));
    const due = dueTask({ task: stored, running: undefined }, store.calendars.schedules);
    return nextThawed({ ...due, freezes }, timed, now);
  } catch {
    return undefined;
  }
}

type Wait = Partial<Pick<Display, "code" | "type" | "queue" | "by" | "note" | "until">>;

/** The state of each task's open runs; empty for a task without one. */
async function waitsOf(
  { store, coverage }: Pick<Scope, "store" | "coverage">,
  tasks: readonly Seen[],
): Promise<readonly Wait[]> {
  const idle = tasks.filter(({ runs }) => runs.length > 0 && runs.every(({ state }) => state === "queued"));
  const works = new Map(
    idle.map((task): [task: Seen, work: Work] => {
      const { queue, type } = task.stored.definition;
      return [task, { queue, type: task.runs[0]?.type ?? type }];
    }),
  );
  const [gaps, ...states] = await Promise.all([
    // An unreadable list of workers must not fail the call.
    works.size === 0 ? undefined : coverage.gaps([...works.values()]).catch(() => undefined),
    ...[...grouped(idle, ({ stored }) => stored.definition.queue)].map(async ([queue, waiting]) => {
      // The record of a run whose items are processed says `queued`: it waits for them.
      const begun = waiting.some(({ runs }) => runs.some(({ started }) => started !== undefined));
      const [state, held] = await Promise.all([
        store.queues.state(queue),
        begun ? store.queues.held(queue, MOST_HELD) : [],
      ]);
      return [queue, { pause: state?.paused, held: new Set(held) }] as const;
    }),
  ]);
  const byQueue = new Map(states);
  return tasks.map((task): Wait => {
    const { runs } = task;
    const work = works.get(task);
    if (work === undefined) return runs.length > 0 ? { code: "runs" } : {};
    const { queue, type } = work;
    const { pause, held } = byQueue.get(queue) ?? {};
    if (runs.some(({ id }) => held?.has(id))) return { code: "runs" };
    if (pause) return { code: "waits-for-queue", queue, ...authorOf(pause) };
    if (
      runs.every(
        ({ started, error, notBefore }) => started !== undefined && (error ?? notBefore) !== undefined,
      )
    ) {
      const ends = runs.flatMap(({ notBefore }) => notBefore ?? []);
      return { code: "waits-for-attempt", ...(ends.length > 0 && { until: Math.min(...ends) }) };
    }
    return { code: "waits-for-worker", ...(gaps?.has(work) && { type }) };
  });
}
