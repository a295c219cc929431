import {
  type Decision,
  type Occurrence,
  type OverlapPolicy,
  parseDuration,
  readyAt,
  runId,
  type ScheduleCache,
  type TaskDefinition,
  timeLimitOf,
} from "@carillon/core";
import { type JobPacker, type JobTemplate, jobOptions } from "./bullmq.js";
import { type DueEntry, type Writes, writesOf } from "./commit.js";
import type { QueueKeys } from "./keys.js";
import { encodeDetails, type RunDetails } from "./run-codec.js";
import { DEFAULT_LINGER, type StoredTask } from "./task-codec.js";

export interface ClaimItem {
  readonly entry: DueEntry & { readonly task: StoredTask };
  readonly decision: Decision;
}

/** A step of a backfill, made together with the occurrence that it decides. */
export interface BackfillStep {
  readonly id: string;
  readonly at: number;
  readonly set: readonly (readonly [field: string, value: string | number])[];
}

/** What a commit must know besides the decision. */
export interface CommitOptions {
  /** The claim's identity. */
  readonly token: string;
  /** Whether the task must be scheduled: what is asked for by hand works while it is paused. */
  readonly held: boolean;
  /** Instead of the task's policy. */
  readonly overlap?: OverlapPolicy | undefined;
  /** The backfill that it is of: where it must stand, and what becomes of it. */
  readonly backfill?: BackfillStep | undefined;
}

/** What few items have. A name that is absent says no. */
interface CommitExtras {
  /** The run whose end is waited for. */
  awaited?: string;
  /** All runs that are open are cancelled. */
  cancel?: true;
  /** What comes next hangs on this run's end. */
  waits?: true;
  /** Finished from here on, and stays for (ms). */
  lingers?: number;
  /** Fields of the task that are set and removed, besides those that each item may set. */
  set?: string[];
  remove?: readonly string[];
  /** Reason, from, to, run in the way of each, one after the other. */
  skips?: string[];
  backfillAt?: string;
  backfillSet?: string[];
}

/** Between the parts of a text: nothing that is stored has a control character in it. */
export const SEPARATOR = "\x1f";

/** To Lua, DEL is a control character too, and JSON leaves it as it is. */
function printable(json: string): string {
  return json.replaceAll("\x7f", "\\u007f");
}

/** Packs decisions about tasks of one queue for `commit.lua`, which says what is where. */
export class CommitItems {
  /** The keys of all items, one after the other. */
  readonly keys: string[] = [];
  readonly #queue: QueueKeys;
  readonly #jobs: JobTexts;
  readonly #items: string[] = [];

  constructor(queue: QueueKeys, jobs: JobTexts) {
    this.#queue = queue;
    this.#jobs = jobs;
  }

  /** What follows the script's own arguments. */
  get args(): string[] {
    const { templates } = this.#jobs;
    return [templatesText(templates), ...this.#items];
  }

  /** @param now the time of the read @returns the run that is enqueued, if one is */
  add(
    { entry, decision }: ClaimItem,
    { token, held, overlap, backfill }: CommitOptions,
    now: number,
  ): string | undefined {
    const { task, local } = entry;
    const { enqueue } = decision;
    const run = enqueue && runId(task.definition.id, enqueue.nominal, token);
    const writes = writesOf(entry, decision, now, run);
    const { cursor = "", nominal = "", fired = "", ...others } = Object.fromEntries(writes.set);
    const extras = extrasOf(entry, decision, writes, others, backfill);
    const guarded = (overlap ?? overlapOf(entry, decision)) !== "allow";
    const generation = String(Number(task.generation) + 1);
    let [template, details, data] = [0, "", ""];

    const keys = this.#queue;
    this.keys.push(keys.task(local), keys.open(local));
    if (enqueue && run !== undefined) {
      this.keys.push(keys.run(run), keys.job(run));
      const { definition } = task;
      const { due, trigger, missed, key } = enqueue;
      const occurrence = {
        key,
        ...identity(definition),
        nominal: enqueue.nominal,
        due,
        generation: Number(generation),
        trigger,
        ...(missed ? { missed } : {}),
        run,
        ...references(definition),
      };
      template = this.#jobs.template(definition);
      details = this.#jobs.details(definition, occurrence);
      data = dataText(task.payloadJson, occurrence);
    }
    if (extras?.skips) this.keys.push(keys.ledger(local));
    if (backfill) this.keys.push(keys.backfill(backfill.id));
    for (const id of entry.over) this.keys.push(keys.job(id));

    const item = [
      ...[local, task.generation, generation, notBefore(task, decision), held ? "1" : "", guarded ? "1" : ""],
      ...[writes.lookAt ?? "", cursor, nominal, fired, entry.over.join(" ")],
      ...[extras ? printable(JSON.stringify(extras)) : "", run ?? "", template, printable(details), data],
    ];
    this.#items.push(item.join(SEPARATOR));
    return run;
  }
}

/** The texts of jobs and run records of one queue; what many of one commit have in common is made once. */
export class JobTexts {
  readonly templates: JobTemplate[] = [];
  readonly #packer: JobPacker;
  readonly #schedules: ScheduleCache;
  readonly #now: number;
  readonly #known = new Map<string, number>();

  /** @param now for the jobs' own timestamps */
  constructor(packer: JobPacker, schedules: ScheduleCache, now: number) {
    this.#packer = packer;
    this.#schedules = schedules;
    this.#now = now;
  }

  /** The place of its template, from 1. */
  template(definition: TaskDefinition): number {
    const { type, priority, retry } = definition;
    const key = `${type} ${priority} ${retry === undefined ? "" : JSON.stringify(retry)}`;
    let place = this.#known.get(key);
    if (place === undefined) {
      place = this.templates.push(this.#packer.template(type, jobOptions(definition, this.#now)));
      this.#known.set(key, place);
    }
    return place;
  }

  /** What the run's record says of it from the start. */
  details(definition: TaskDefinition, occurrence: Omit<Occurrence, "enqueued">): string {
    const { key, nominal, due, trigger, missed } = occurrence;
    return encodeDetails(definition, {
      type: definition.type,
      key,
      nominal,
      due,
      trigger,
      ...(missed ? { missed } : {}),
      ...this.#limits(definition, trigger === "manual" ? undefined : nominal, nominal),
    });
  }

  /** What the worker keeps to, in ms. */
  #limits(
    definition: TaskDefinition,
    slot: number | undefined,
    around: number,
  ): Pick<RunDetails, "limit" | "grace" | "minGap"> {
    const { timeLimit, timeLimitGrace, minGap } = definition;
    let limit: number | undefined;
    if (timeLimit !== undefined) {
      const schedule = this.#schedules.get(definition.schedule, definition.id);
      // By hand, the interval is that of the schedule's next two times.
      const from = slot ?? schedule.next(around) ?? Number.NaN;
      const following = schedule.delay ?? (schedule.next(from) ?? Number.NaN) - from;
      limit = timeLimitOf(timeLimit, Number.isNaN(following) ? undefined : following);
    }
    return {
      ...(limit === undefined ? {} : { limit }),
      ...(timeLimitGrace === undefined ? {} : { grace: parseDuration(timeLimitGrace) }),
      ...(minGap === undefined ? {} : { minGap: parseDuration(minGap) }),
    };
  }
}

/** As `bullAdd` takes them. Text: a command with binary arguments is much slower to send. */
export function templatesText(templates: readonly JobTemplate[]): string {
  return JSON.stringify(templates.map(({ prioritized, args, opts }) => [prioritized, args, opts]));
}

/** The job's data up to the time of the commit: the script appends that and closes both objects. */
export function dataText(payloadJson: string, occurrence: Omit<Occurrence, "enqueued">): string {
  return `{"payload":${payloadJson},"occurrence":${JSON.stringify(occurrence).slice(0, -1)},"enqueued":`;
}

export function identity(definition: TaskDefinition): { task: string; owner: string; queue: string } {
  return { task: definition.id, owner: definition.owner, queue: definition.queue };
}

export function references(definition: TaskDefinition): Pick<Occurrence, "subject" | "submitter" | "group"> {
  const { subject, submitter, group } = definition;
  return {
    ...(subject === undefined ? {} : { subject }),
    ...(submitter === undefined ? {} : { submitter }),
    ...(group === undefined ? {} : { group }),
  };
}

function extrasOf(
  { task, running }: ClaimItem["entry"],
  { cancel, skipped }: Decision,
  { awaited, waits, finished, remove }: Writes,
  set: Record<string, string | number>,
  backfill: BackfillStep | undefined,
): CommitExtras | undefined {
  const extras: CommitExtras = {};
  if (awaited !== undefined) extras.awaited = awaited;
  if (cancel) extras.cancel = true;
  if (waits) extras.waits = true;
  if (finished) extras.lingers = lingerOf(task);
  if (Object.keys(set).length > 0)
    extras.set = Object.entries(set).flatMap(([name, value]) => [name, String(value)]);
  if (remove.length > 0) extras.remove = remove;
  if (skipped.length > 0) {
    extras.skips = skipped.flatMap(({ reason, from, to }) => {
      const seen = reason.endsWith("overlap") ? (running?.run ?? "-") : "-";
      return [reason, String(from), String(to), seen];
    });
  }
  if (backfill) {
    extras.backfillAt = String(backfill.at);
    extras.backfillSet = backfill.set.flatMap(([field, value]) => [field, String(value)]);
  }
  return Object.keys(extras).length > 0 ? extras : undefined;
}

/** The policy that holds for what is enqueued: for all but `allow` there must be no live run at the commit either. */
function overlapOf({ task }: ClaimItem["entry"], { enqueue }: Decision): OverlapPolicy {
  const own = task.pending.find(({ key }) => key === enqueue?.key)?.overlap;
  return own ?? task.definition.overlap;
}

/**
 * The time before which the decision must not be committed. It may reach beyond the due time that was read: to the newest of the
 * times that were missed.
 */
function notBefore(task: StoredTask, { enqueue, cursor }: Decision): string {
  if (cursor !== undefined) return String(Math.max(task.due ?? 0, cursor, enqueue?.due ?? 0));
  const waited = task.pending.find(({ key }) => key === enqueue?.key);
  return waited === undefined ? "" : String(readyAt(waited));
}

function lingerOf({ definition }: StoredTask): number {
  return definition.linger === undefined ? DEFAULT_LINGER : parseDuration(definition.linger);
}
