import { parseDuration, type TaskDefinition, type Trigger } from "@carillon/core";
import {
  ASKED_FOR,
  type Enqueue,
  minGapOf,
  occurrenceKey,
  type ScheduleCache,
  timeLimitOf,
} from "@carillon/core/internal";
import type { JobTemplate } from "../bull/bullmq.js";
import { loadBull } from "../bull/load.js";
import { cutResult, encodeDetails } from "../run/codec.js";

/** Runs that may come too soon after another. Runs that a person, a handler or a retry asks for are wanted as they come. */
const JUDGED: ReadonlySet<Trigger> = new Set(["schedule", "catch-up"]);

/** The parts that jobs of like tasks share. */
export interface Template {
  /** Never used again, so that templates of different times can be sent together. */
  readonly number: number;
  /** As `bullTemplates` reads it; loads BullMQ, which makes it. */
  json(): Promise<string>;
}

const TEMPLATES_AT_MOST = 500;

/** Texts of jobs and run records. */
export class JobTexts {
  readonly #schedules: ScheduleCache;
  readonly #templates = new Map<string, Template>();
  #numbers = 0;

  constructor(schedules: ScheduleCache) {
    this.#schedules = schedules;
  }

  /** @param bull BullMQ's key prefix of the queue */
  template(bull: string, definition: TaskDefinition): Template {
    const { type, priority, retry } = definition;
    const key = `${bull} ${type} ${priority} ${retry === undefined ? "" : JSON.stringify(retry)}`;
    let template = this.#templates.get(key);
    if (!template) {
      let text: string | undefined;
      const json = async () => {
        const { JobPacker, jobOptions } = await loadBull();
        // The script sets the time.
        text ??= templateText(new JobPacker(bull).template(type, jobOptions({ priority, retry }, 1)));
        return text;
      };
      template = { number: ++this.#numbers, json };
      if (this.#templates.size >= TEMPLATES_AT_MOST) this.#templates.clear();
      this.#templates.set(key, template);
    }
    return template;
  }

  /** Initial fields of the run's record: `details`, whose limits, in ms, the worker enforces, and `rules`, which its start obeys: names and values. */
  texts(definition: TaskDefinition, enqueue: Enqueue): { details: string; rules: string } {
    const { timeLimit, timeLimitGrace, tolerance, retry } = definition;
    const interval =
      timeLimit === undefined && tolerance === undefined ? undefined : this.#interval(definition, enqueue);
    const details = encodeDetails(definition, {
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
      by: enqueue.by,
      trace: enqueue.trace,
      payload: enqueue.payload === undefined ? undefined : cutResult(JSON.stringify(enqueue.payload)),
    });
    const minGap = JUDGED.has(enqueue.trigger) ? minGapOf(definition, interval) : undefined;
    return { details, rules: minGap === undefined ? "" : `minGap ${minGap}` };
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

/** A job's template as `bullAdd` takes it. Text: a command with binary arguments is much slower to send. */
export function templateText({ prioritized, args, opts }: JobTemplate): string {
  return JSON.stringify([prioritized, args, opts]);
}

/** Templates by their numbers, as JSON. */
export async function templatesText(templates: Iterable<Template | undefined>): Promise<string> {
  const texts = [...new Set(templates)].map(async (one) => one && `"${one.number}":${await one.json()}`);
  return `{${(await Promise.all(texts)).filter(Boolean).join(",")}}`;
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
