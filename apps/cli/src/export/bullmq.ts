import {
  canonicalSchedule,
  compileSchedule,
  parseDuration,
  parseInstant,
  type Schedule,
  seedOf,
} from "@carillon/sdk/schedule";
import type { Task } from "../import/source.js";
import { verify } from "../import/verify.js";
import { utcIso } from "../times.js";
import { type Exported, inexpressible, lengthOf, lost, type Stored } from "./exported.js";

/** Arguments of `queue.upsertJobScheduler(id, repeat, template)`. */
export interface BullmqScheduler {
  readonly queue: string;
  readonly id: string;
  readonly repeat: Readonly<Record<string, unknown>>;
  readonly template: {
    readonly name: string;
    readonly data: unknown;
    readonly opts: Readonly<Record<string, unknown>>;
  };
}

/** A task as a job scheduler of BullMQ 6. */
export function toBullmq(stored: Stored, now: number): Exported<BullmqScheduler> {
  const { definition } = stored;
  const { id, owner, queue, type, payload, overlap } = definition;
  const task = `${owner}/${id}`;
  const notes = lost(stored);
  const left =
    definition.schedule.maxRuns === undefined ? undefined : definition.schedule.maxRuns - stored.fired;
  const rule =
    left !== undefined && left < 1
      ? "it has finished"
      : (inexpressible(stored) ?? ruleOf(stored, now, notes));
  if (typeof rule === "string") return { task, notes: [...notes, rule] };
  if (overlap !== "allow") notes.push(`overlap ${overlap}: BullMQ starts a run although another is running`);
  const template = { name: type, data: payload, opts: optionsOf(definition, notes) };
  const repeat = { ...rule, ...(left !== undefined && { limit: left }) };
  return { task, there: { queue, id: owner === "system" ? id : `${owner}-${id}`, repeat, template }, notes };
}

export function bullmqModule(all: readonly Exported<BullmqScheduler>[]): string {
  const schedulers = all.flatMap(({ there }) => (there ? [there] : []));
  const notes = all.flatMap(({ task, notes }) => notes.map((note) => `// ${task}: ${note}\n`));
  return `// REDIS_URL=redis://… node THIS_FILE, with bullmq installed: upserts ${schedulers.length} job schedulers.
${notes.join("")}import { Queue } from "bullmq";

const schedulers = ${JSON.stringify(schedulers, undefined, 2)};

const options = { connection: { url: process.env.REDIS_URL }, prefix: process.env.BULLMQ_PREFIX ?? "bull" };
for (const { queue: name, id, repeat, template } of schedulers) {
  const queue = new Queue(name, options);
  await queue.upsertJobScheduler(id, repeat, template);
  await queue.close();
}
`;
}

/** A text: why there is none. */
function ruleOf({ definition }: Stored, now: number, notes: string[]): Record<string, unknown> | string {
  const schedule = definition.schedule as Schedule;
  const compiled = compileSchedule({ ...schedule, except: undefined }, seedOf(definition));
  const [start, end] = [schedule.start, schedule.end].map((time) => time && parseInstant(time, "schedule"));
  const next = compiled.next(now);
  if (next === undefined) return "it never fires again";
  if ("every" in schedule) {
    const every = lengthOf(schedule.every);
    if (every === undefined || compiled.next(next) !== next + every) return "an interval by the calendar";
    // Without an offset, BullMQ begins with the moment of the upsert.
    const offset = next % every || every;
    const last = end && compiled.latest(Number(end));
    // It fires once more after its endDate.
    return {
      every,
      offset,
      ...(start && Number(start) > now && { startDate: next }),
      ...(last && { endDate: last - 1 }),
    };
  }
  if (!("cron" in schedule)) return "not a cron expression";
  const { cron, dialect, timezone = "UTC" } = schedule;
  const pattern = dialect
    ? cron
    : canonicalSchedule({ cron, timezone }, seedOf(definition)).replace(/ \S+\/\S+$/, "");
  // BullMQ fires after its startDate.
  const limits = { ...(start && { startDate: Number(start) - 1 }), ...(end && { endDate: Number(end) }) };
  const theirs = {
    library: "cron-parser 5",
    cron: pattern,
    timezone,
    start: limits.startDate,
    end: limits.endDate,
  } as const;
  const plain = {
    ...definition,
    schedule: { ...schedule, jitter: undefined, except: undefined, maxRuns: undefined },
  };
  const [first] =
    verify({ from: "", task: plain as unknown as Task, theirs, notes: [] }, now)?.differences ?? [];
  if (first)
    notes.push(
      `fires at other times there, first at ${utcIso(first.time)}, ${first.only === "ours" ? "only in Carillon" : "only in BullMQ"}`,
    );
  return { pattern, tz: timezone, ...limits };
}

function optionsOf(
  { priority, retry, retention }: Stored["definition"],
  notes: string[],
): Record<string, unknown> {
  const seconds = (duration: string | number | undefined) =>
    duration === undefined ? undefined : Math.ceil(parseDuration(duration) / 1_000);
  const kept = (count: number | undefined, age: string | number | undefined) =>
    count === undefined && age === undefined ? undefined : { count, age: seconds(age) };
  const type = retry?.backoff === "fixed" ? "fixed" : "exponential";
  if (retry?.backoff === "linear") notes.push("linear backoff is exponential there");
  return {
    ...(priority && { priority }),
    ...(retry && { attempts: retry.attempts, backoff: { type, delay: parseDuration(retry.delay ?? "1s") } }),
    removeOnComplete: kept(retention?.successes, retention?.successesFor),
    removeOnFail: kept(retention?.failures, retention?.failuresFor),
  };
}
