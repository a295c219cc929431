import {
  describeSchedule,
  type Json,
  type Outcome,
  type Run,
  type Schedule,
  seedOf,
  type TaskDefinition,
  type TaskInput,
  type TaskState,
  taskSchema,
} from "@carillon/core";
import { type Display, errorOf, type Pending, scheduleZone } from "@carillon/core/internal";
import { nextOf, type Revision, type StoredTask } from "@carillon/store";

/** A task as clients see it. Times in UTC ms. */
export interface Task extends Omit<TaskDefinition, "enabled"> {
  /** The schedule in words; computed, never stored. */
  readonly humanized: string;
  /** The zone on whose clock the times of the schedule are. Absent: on none, or on those of several. Computed, never stored. */
  readonly timezone?: string | undefined;
  readonly state: TaskState;
  /**
   * Time at which it is next acted on: its schedule's due time, or that of an occurrence which was asked for or is tried again
   * before, also if a freeze will skip or hold it then: `display.next` is when it really runs. Undefined while paused, finished or moving.
   * Computed, never stored.
   */
  readonly nextExecution: number | undefined;
  /** The last decided nominal time. */
  readonly cursor: number | undefined;
  readonly nominal: number | undefined;
  readonly due: number | undefined;
  /** Occurrences that wait for a run's end, or for a time of their own. */
  readonly pending: readonly Pending[];
  readonly generation: number;
  /** Occurrences of the schedule that were enqueued, catch-up and backfills among them: what `maxRuns` counts. */
  readonly fired: number;
  /**
   * Revision of the definition, for `ifRevision` of a put. Each put that changes the definition gives it a new one, which
   * tells nothing about it; runs and pauses do not.
   */
  readonly revision: string;
  readonly paused?: { at: number; by?: string; note?: string } | undefined;
  /**
   * Set while a move holds it: nothing is claimed, whatever its state. One that stays so has a move that was interrupted: repeat it, or
   * move the task back.
   */
  readonly moving?: { readonly to: string } | { readonly from: string } | undefined;
  /** The set that defines it, and who has changed its definition since. `filed`: the queue that the set names, if a person moved it. Absent: none. */
  readonly set?: { readonly name: string; readonly filed?: string; readonly drift?: Drift } | undefined;
  /** The last run that is over and did something; computed, never written by a client. Times in UTC ms. */
  readonly lastStatus?:
    | {
        readonly run: string;
        readonly executedAt: number | undefined;
        readonly finishedAt: number | undefined;
        /** The worker that ran it. */
        readonly node: string | undefined;
        readonly outcome: Outcome | undefined;
        /** Absent if it succeeded, even if an earlier attempt failed. */
        readonly error?: string;
        readonly result?: Json;
      }
    | undefined;
  /** End of the last run that had nothing to do, if no other run has ended since; UTC ms. Computed, never stored. */
  readonly lastChecked?: number | undefined;
  /** Number of open runs, among the oldest hundred; absent if there are none. Computed, never stored. */
  readonly openRuns?: { readonly queued: number; readonly running: number } | undefined;
  /**
   * TimescaleDB's word for a task and its runs, for display: a run is `STARTING` while it runs, and a paused or finished
   * task is `DISABLED`. Present in results of `get` and `list`. Computed, never stored.
   */
  readonly displayState?: "SCHEDULED" | "STARTING" | "TERMINATING" | "DISABLED" | undefined;
  /**
   * Its present state, and when it really runs next; `displayText` says it in words. Present in results of `get` and `list`.
   * Computed, never stored.
   */
  readonly display?: Display | undefined;
  readonly created: number;
  readonly updated: number;
  /** `by` of the put that created it; absent if not given. */
  readonly createdBy?: string | undefined;
  /** `by` of the last put that changed or created it; absent if not given. */
  readonly updatedBy?: string | undefined;
}

type DisplayState = NonNullable<Task["displayState"]>;
type LastStatus = NonNullable<Task["lastStatus"]>;

/** Derived from the two machines of a task and its runs, which are never mixed. */
export function displayState(task: Pick<Task, "state">, runs: readonly Pick<Run, "state">[]): DisplayState {
  if (runs.some(({ state }) => state === "terminating")) return "TERMINATING";
  if (runs.some(({ state }) => state === "running")) return "STARTING";
  return task.state === "scheduled" ? "SCHEDULED" : "DISABLED";
}

export function openView(
  task: Pick<Task, "state">,
  runs: readonly Pick<Run, "state">[],
): Pick<Task, "openRuns" | "displayState"> {
  const queued = runs.filter(({ state }) => state === "queued").length;
  const running = runs.filter(({ state }) => state === "running" || state === "terminating").length;
  const openRuns = queued + running > 0 ? { openRuns: { queued, running } } : {};
  return { ...openRuns, displayState: displayState(task, runs) };
}

export function lastStatus(run: Run): LastStatus {
  const { id, started, finished, worker, outcome, result } = run;
  const error = errorOf(run);
  return {
    run: id,
    executedAt: started,
    finishedAt: finished,
    node: worker,
    outcome,
    ...(error === undefined ? {} : { error }),
    ...(result === undefined ? {} : { result }),
  };
}

/** Foreign data may have no meaning, and lists must not fail for it. */
function inWords(task: TaskDefinition): Pick<Task, "humanized" | "timezone"> {
  try {
    const timezone = scheduleZone(task.schedule);
    const humanized = describeSchedule(task.schedule, seedOf(task));
    return { humanized, ...(timezone === undefined ? {} : { timezone }) };
  } catch {
    return { humanized: "a schedule that cannot be read" };
  }
}

/** A change of a task's definition after its set put it. `at`: UTC ms. */
export interface Drift {
  readonly by?: string | undefined;
  readonly at: number;
}

/** Undefined if the definition is still the one that the set put. */
export function driftOf({ set, revision, updatedBy, updated }: StoredTask): Drift | undefined {
  return set?.revision === undefined || set.revision === revision
    ? undefined
    : { by: updatedBy, at: updated };
}

function setOf(stored: StoredTask): Pick<Task, "set"> {
  const { set, definition } = stored;
  if (set?.revision === undefined) return {};
  const drift = driftOf(stored);
  const { name, filed } = set;
  return { set: { name, ...(filed !== definition.queue && { filed }), ...(drift && { drift }) } };
}

export function taskView(stored: StoredTask): Task {
  const { definition } = stored;
  const { enabled: _, ...rest } = definition;
  return {
    ...rest,
    ...inWords(definition),
    state: stored.state,
    nextExecution: nextOf(stored)?.due,
    cursor: stored.cursor,
    nominal: stored.nominal,
    due: stored.due,
    pending: stored.pending,
    generation: Number(stored.generation),
    fired: stored.fired,
    revision: stored.revision,
    ...(stored.paused ? { paused: stored.paused } : {}),
    ...setOf(stored),
    ...(stored.moving === undefined ? {} : { moving: movingOf(stored.moving) }),
    created: stored.created,
    updated: stored.updated,
    ...(stored.createdBy === undefined ? {} : { createdBy: stored.createdBy }),
    ...(stored.updatedBy === undefined ? {} : { updatedBy: stored.updatedBy }),
  };
}

function movingOf(mark: string): Task["moving"] {
  const [direction, queue = ""] = mark.split(" ");
  return direction === "to" ? { to: queue } : { from: queue };
}

/** The stored definition of a task, in the form that a put accepts. */
export type Definition = Omit<TaskInput, "schedule" | "owner"> & { schedule: Schedule; owner: string };

/**
 * A task as `put` takes it, without what is computed: to change it, to export it, or to put it elsewhere. A paused one
 * has `enabled: false`.
 */
export function definitionOf(task: Task): Definition {
  return { ...inputOf(task), enabled: task.state !== "paused" };
}

/** Fields of a definition as a put takes them, but for `enabled`. */
export function inputOf(task: Task | TaskDefinition): Definition {
  const fields = Object.keys(taskSchema.shape).flatMap((field) => {
    const value = (task as unknown as Record<string, unknown>)[field];
    return value === undefined || field === "enabled" ? [] : [[field, value] as const];
  });
  return Object.fromEntries(fields) as unknown as Definition;
}

/** A definition of a task that another one has replaced, or that was deleted. */
export interface TaskRevision {
  /** Counts the definitions of the task from 1; the one in force is not listed. */
  readonly number: number;
  /** Time of its replacement or deletion, UTC ms. */
  readonly until: number;
  /** The task was deleted in this state. */
  readonly deleted?: TaskState | undefined;
  /** Id of the change of many tasks that replaced it, if that can be undone; of an apply `set:NAME:GENERATION`. */
  readonly change?: string | undefined;
  /** `by` of the put that stored it; absent if not given. */
  readonly by?: string | undefined;
  /** In the form that a put accepts. */
  readonly definition: Definition;
}

export function revisionView({ definition, ...rest }: Revision): TaskRevision {
  return { ...rest, definition: inputOf(definition) };
}
