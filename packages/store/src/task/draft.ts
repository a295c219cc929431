import type { ParsedTask, TaskDefinition, TaskName, TaskState } from "@carillon/core";
import { firstNext, isOver, localName, type ScheduleCache } from "@carillon/core/internal";
import type { CalendarRepository } from "../calendars.js";
import { definitionFields, isRetired, type StoredTask } from "./codec.js";
import { nameTaken, notAsAsked } from "./errors.js";

export type PutOutcome = "created" | "updated" | "unchanged";

export interface PutResult {
  readonly name: TaskName;
  readonly outcome: PutOutcome;
  readonly state: TaskState;
  /** The next due time, UTC ms; undefined where the task is paused or finished. */
  readonly due: number | undefined;
  /** Revision of a task that was not changed. */
  readonly revision?: string | undefined;
  /** The definition that was replaced; undefined unless the outcome is `updated`. */
  readonly before?: TaskDefinition | undefined;
}

export interface PutOptions {
  /** One-off tasks of `enqueue`. */
  readonly once?: boolean | undefined;
  /** Changes the task only if it has this revision, or that of its `owner/id`; `ABSENT`: only creates it. Default: no condition. */
  readonly ifRevision?: string | ReadonlyMap<string, string> | undefined;
  /** The tasks belong to this set from now on. `filed`: queues that it names, by `owner/id`, if they are others than the tasks'. */
  readonly set?: { readonly name: string; readonly filed?: ReadonlyMap<string, string> } | undefined;
  /** The author, kept as `updatedBy` and `createdBy`. */
  readonly by?: string | undefined;
  /** Id of the entry in the change log of which this is a part; kept with the definitions that are replaced. */
  readonly change?: string | undefined;
  /** The tasks are copies that this move holds: the beginning of their marks. */
  readonly copyOf?: string | undefined;
  /** The trace of an `enqueue`. */
  readonly trace?: string | undefined;
  /** Schedules with calendars that are not stored yet, for a plan. */
  readonly schedules?: ScheduleCache | undefined;
  /** Called with the result of each task that is stored, also if the put of another one fails later. */
  readonly onPut?: ((result: PutResult, task: ParsedTask) => void) | undefined;
  /** Called again and again, with the number of tasks stored since the time before. */
  readonly onStored?: ((tasks: number) => void) | undefined;
}

/** Given as a revision: there must be no such task. */
export const ABSENT = "absent";

/** A task as a put sends it. */
export interface Draft {
  parsed: ParsedTask;
  fields: Map<string, string>;
  local: string;
  /** "": believed absent; `UNSEEN`: to be read first. */
  believed: string;
  state: TaskState;
  nominal: number | undefined;
  due: number | undefined;
  fresh: boolean;
  /** Owed times that an edited schedule gives up, both ends included. */
  superseded: { from: number; to: number } | undefined;
  /** The stored definition that it replaces. */
  before?: TaskDefinition;
}

/** Equals no generation. */
const UNSEEN = "?";

/** Drafts the tasks of a put: as new, or against what is stored. */
export class Drafts {
  constructor(private readonly calendars: CalendarRepository) {}

  first(parsed: ParsedTask, now: number, options: PutOptions): Draft {
    const draft = this.new(parsed, now, options);
    return (revisionOf(draft.local, options) ?? ABSENT) === ABSENT ? draft : { ...draft, believed: UNSEEN };
  }

  new(
    parsed: ParsedTask,
    now: number,
    { once, schedules = this.calendars.schedules }: PutOptions,
    fields = definitionFields(parsed, once),
  ): Draft {
    const { definition } = parsed;
    const { nominal, due } = firstNext(schedules.get(definition), {}, now) ?? {};
    const over = isOver({ nominal, pending: [], manual: "manual" in definition.schedule });
    const state = over ? "finished" : definition.enabled ? "scheduled" : "paused";
    const local = localName(definition);
    return { parsed, fields, local, believed: "", state, nominal, due, fresh: true, superseded: undefined };
  }

  /** The task exists. Only an edited schedule moves its times; its state is never changed from paused. */
  against(draft: Draft, stored: StoredTask | undefined, now: number, options: PutOptions): Draft {
    assertRevision(draft.local, stored, revisionOf(draft.local, options));
    if (!stored) return this.new(draft.parsed, now, options);
    const { definition } = draft.parsed;
    if (draft.fields.has("once") && !stored.fields.has("once")) throw nameTaken(draft.local);
    const { generation: believed, definition: before } = stored;
    const revived = options.set !== undefined && isRetired(stored);
    if (!revived && stored.fields.get("schedule") === draft.fields.get("schedule")) {
      const { state, nominal, due } = stored;
      return { ...draft, believed, state, nominal, due, fresh: false, superseded: undefined, before };
    }
    const superseded = owedOf(this.calendars.schedules, stored, now);
    const { schedules = this.calendars.schedules } = options;
    const { nominal, due } = firstNext(schedules.get(definition), stored, now) ?? {};
    const over = isOver({ nominal, pending: stored.pending, manual: "manual" in definition.schedule });
    const paused = revived ? !definition.enabled : stored.state === "paused";
    const state = paused ? "paused" : over ? "finished" : "scheduled";
    return { ...draft, believed, state, nominal, due, fresh: true, superseded, before };
  }

  /** A task that was planned with newer calendars is not replanned with older ones. */
  async learnCalendars(task: StoredTask | undefined): Promise<void> {
    if (task && task.calendarRevision > this.calendars.revision) await this.calendars.refresh();
  }
}

/** Past times of a stored task that are not decided yet. */
export function owedOf(
  schedules: ScheduleCache,
  { definition, nominal }: StoredTask,
  now: number,
): { from: number; to: number } | undefined {
  if (nominal === undefined || nominal > now) return undefined;
  let last: number | undefined;
  try {
    last = schedules.get(definition).latest(now);
  } catch {
    // Its calendar was deleted; this edit may remove the reference.
  }
  return { from: nominal, to: Math.max(last ?? nominal, nominal) };
}

export function revisionOf(local: string, { ifRevision }: PutOptions): string | undefined {
  return typeof ifRevision === "object" ? ifRevision.get(local) : ifRevision;
}

export function assertRevision(
  local: string,
  stored: StoredTask | undefined,
  asked: string | undefined,
): void {
  if (asked === undefined) return;
  if (!stored && asked !== ABSENT) throw notAsAsked(local, "no longer exists");
  if (stored && asked === ABSENT) throw notAsAsked(local, "already exists");
  if (stored && asked !== stored.revision) throw notAsAsked(local, "has changed since");
}
