import { parseDuration, type TaskDefinition, type Trigger } from "@carillon/core";
import {
  ASKED_FOR,
  type Enqueue,
  minGapOf,
  occurrenceKey,
  type ScheduleCache,
  timeLimitOf,
} from "@carillon/core/internal";
import { type JobPacker, type JobTemplate, jobOptions } from "../bull/bullmq.js";
import { cutResult, encodeDetails } from "../run/codec.js";

/** Runs that may come too soon after another. Runs that a person, a handler or a retry asks for are wanted as they come. */
const JUDGED: ReadonlySet<Trigger> = new Set(["schedule", "catch-up"]);

/** Texts of jobs and run records of one queue; parts shared within a commit are made once. */
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

  /** Initial fields of the run's record; the limits, in ms, are enforced by the worker. */
  details(definition: TaskDefinition, enqueue: Enqueue): string {
    const { timeLimit, timeLimitGrace, tolerance, retry } = definition;
    const interval =
      timeLimit === undefined && tolerance === undefined ? undefined : this.#interval(definition, enqueue);
    return encodeDetails(definition, {
      type: definition.type,
      key: enqueue.key,
      nominal: enqueue.nominal,
      due: enqueue.due,
      trigger: enqueue.trigger,
      missed: enqueue.missed,
      itemsOf: enqueue.itemsOf,
      most: retry?.attempts,
      limit: timeLimit === undefined ? undefined : timeLimitOf(timeLimit, interval),
      grace: timeLimitGrace === undefined ? undefined : parseDuration(timeLimitGrace),
      minGap: JUDGED.has(enqueue.trigger) ? minGapOf(definition, interval) : undefined,
      by: enqueue.by,
      payload: enqueue.payload === undefined ? undefined : cutResult(JSON.stringify(enqueue.payload)),
    });
  }

  /** From the occurrence to the one that follows it, in ms; undefined if none does. */
  #interval(definition: TaskDefinition, { trigger, nominal }: Enqueue): number | undefined {
    const schedule = this.#schedules.get(definition);
    // A run that was asked for takes the interval between the schedule's next two times.
    const from = ASKED_FOR.has(trigger) ? (schedule.next(nominal) ?? Number.NaN) : nominal;
    const following = schedule.delay ?? (schedule.next(from) ?? Number.NaN) - from;
    return Number.isNaN(following) ? undefined : following;
  }
}

/** Job templates as `bullAdd` takes them. Text: a command with binary arguments is much slower to send. */
export function templatesText(templates: readonly JobTemplate[]): string {
  return JSON.stringify(templates.map(({ prioritized, args, opts }) => [prioritized, args, opts]));
}

/** Parts of a job's data for `jobData` in `lib/enqueue.lua`. Defaults are undefined. */
export function dataParts(
  definition: TaskDefinition,
  { key, nominal, due, trigger, missed, itemsOf, payload }: Enqueue,
  payloadJson: string,
) {
  const { subject, submitter, group } = definition;
  const few = missed ?? itemsOf ?? subject ?? submitter ?? group;
  return {
    key: key === occurrenceKey(definition, nominal) ? undefined : JSON.stringify(key),
    nominal,
    jobDue: due === nominal ? undefined : due,
    trigger,
    more:
      few === undefined
        ? undefined
        : `,${JSON.stringify({ missed, itemsOf, subject, submitter, group }).slice(1, -1)}`,
    payload: payload === undefined ? payloadJson : JSON.stringify(payload),
  };
}
