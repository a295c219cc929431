import type { JobData } from "@carillon/core";
import { isName, itemId } from "@carillon/core/internal";
import type { Turn } from "@carillon/store";
import type { Job } from "bullmq";
import { PermanentError } from "../permanent-error.js";
import { type AnyTaskType, isFanOut, type TaskType } from "../task-type.js";
import { adoptBackoff } from "./backoff.js";
import { printingTo } from "./console-capture.js";
import { Ending } from "./ending.js";
import { resultJson } from "./errors.js";
import { endItems, fanOut } from "./fan-out.js";
import { workItem } from "./item.js";
import type { ItemData, RunData } from "./item-data.js";
import { endJob, type Taken } from "./job-end.js";
import { through } from "./middleware.js";
import type { Parts } from "./parts.js";
import { checkedPayload } from "./payload.js";
import { RunAttempt, type Started } from "./run-attempt.js";
import { Semaphore } from "./semaphore.js";
import { Suspects } from "./suspects.js";
import type { JobEnd } from "./verdict.js";

/** Processes jobs of BullMQ: runs, and items of runs. */
export class Processor {
  readonly #suspects = new Suspects();
  readonly #semaphores = new Map<string, Semaphore>();

  constructor(private readonly parts: Parts) {
    for (const type of parts.types.values()) {
      if (isFanOut(type) && type.concurrency !== undefined)
        this.#semaphores.set(type.type, new Semaphore(type.concurrency));
    }
  }

  /** Its result and its errors go to BullMQ. */
  async process(queue: string, job: Job, token: string, turn?: Turn): Promise<unknown> {
    const data = (job.data ?? {}) as Partial<JobData> & Partial<ItemData>;
    const { logger } = this.parts;
    const id = String(job.id);
    const taken: Taken = { queue, job, token, turn };
    const fault = faultOf(queue, job, data);
    if (fault) {
      const error = `This job was not added by Carillon: ${fault}.`;
      logger.error({ queue, job: id, error }, "job refused");
      return endJob(taken, { end: "fail", error: new PermanentError(error) }, logger);
    }
    adoptBackoff(job);
    if (this.parts.active.isWorked(queue, id)) {
      // The attempt before lost its lock, and has its grace to end. No second attempt may run here meanwhile: BullMQ
      // identifies locks by job, so the end of one attempt would release the other's lock.
      this.parts.active.lose(queue, id);
      return endJob(taken, { end: "delay", until: 0 }, logger);
    }
    const suspect = job.stalledCounter > 0;
    const until = suspect ? this.#suspects.admit(id, Date.now()) : undefined;
    if (until !== undefined) return endJob(taken, { end: "delay", until }, logger);
    try {
      const end = data.child
        ? await workItem(this.parts, this.#semaphores.get(job.name), taken as Taken<ItemData>)
        : await workRun(this.parts, taken as Taken<RunData>);
      return await endJob(taken, end, logger);
    } finally {
      if (suspect) this.#suspects.ended(id);
    }
  }

  /** Returns items that wait for a place to the queue. */
  stop(): void {
    for (const semaphore of this.#semaphores.values()) semaphore.close();
  }
}

/**
 * Validates the job, because any Redis client can add one: its names become parts of keys, and it may only affect its
 * own run.
 */
function faultOf(
  queue: string,
  { id }: Job,
  { occurrence, child, index }: Partial<ItemData>,
): string | undefined {
  if (!occurrence?.run) return "it has no occurrence";
  const { key, run, owner, task } = occurrence;
  const named = isName(owner) && isName(task) && typeof run === "string" && typeof key === "string";
  const own = occurrence.queue === queue && named && id === (child ? itemId(run, Number(index)) : run);
  return own ? undefined : "its occurrence is not its own";
}

/** Record started, resolve, run, normalise, record finished. */
async function workRun(parts: Parts, taken: Taken<RunData>): Promise<JobEnd> {
  const type = parts.types.get(taken.job.name);
  if (!type) parts.lacking.note(taken.queue, taken.job.name);
  const attempt = new RunAttempt(parts, taken);
  try {
    const started = await attempt.start();
    if (!started) return { end: "hand back" };
    if (type && isFanOut(type)) {
      const end = started.word === "OK" ? await fanOut(attempt, type, started) : attempt.notStarted(started);
      return await endItems(attempt, end);
    }
    return started.word === "OK" ? await handle(attempt, type, started) : attempt.notStarted(started);
  } finally {
    attempt.close();
  }
}

async function handle(attempt: RunAttempt, type: TaskType | undefined, started: Started): Promise<JobEnd> {
  const { parts, taken, output, box } = attempt;
  const ended = await box.run(started, async () => {
    const context = attempt.context(started);
    const work = async () => {
      if (!type) throw unknownType(taken.job.name, parts.types);
      return type.handler(await checkedPayload(type, taken.job.data.payload), context);
    };
    const value = (await printingTo(output, () => through(parts.middleware, context, work))) ?? undefined;
    if (!(value instanceof Ending)) return resultJson(value);
    resultJson(value.result);
    return value;
  });
  return attempt.conclude(ended);
}

function unknownType(name: string, types: ReadonlyMap<string, AnyTaskType>): PermanentError {
  return new PermanentError(
    `No handler for task type ${name}; this worker has ${[...types.keys()].join(", ")}.`,
  );
}
