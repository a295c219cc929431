import { hostname } from "node:os";
import type { Json, Outcome, TaskName } from "@carillon/core";
import { isFailure } from "@carillon/core/internal";
import { begunOf, type EndWord, failsForAll, redisError, type StartResult } from "@carillon/store";
import type { Context } from "../context.js";
import { PermanentError } from "../permanent-error.js";
import type { Active } from "./active.js";
import type { Ending } from "./ending.js";
import { isPermanent, LockLostError } from "./errors.js";
import type { RunData } from "./item-data.js";
import type { Taken } from "./job-end.js";
import type { RunEvent } from "./options.js";
import { Output } from "./output.js";
import type { Parts } from "./parts.js";
import { pauseAfter } from "./pause-after.js";
import { runContext } from "./run-context.js";
import { type Ended, TimeBox } from "./time-box.js";
import { type JobEnd, type RunEnd, verdictOf } from "./verdict.js";

export type Started = Extract<StartResult, { word: "OK" }>;

/** Attempts to record a start or an end: about a minute. */
const TRIES = 16;

/** Cached, because each call of `hostname` is a system call. */
const HOST = hostname();

/** This process, as the starts of runs record it. */
export const runner = (worker: string) => ({ worker, pid: process.pid, host: HOST });

const FORGOTTEN =
  "This run is over, and its record is no longer kept: it cannot be done again. Trigger its task instead.";

/** One attempt of a run; records its start and its end. */
export class RunAttempt {
  readonly parts: Parts;
  readonly taken: Taken<RunData>;
  readonly box: TimeBox;
  /** Time at which the handler wants to run again, UTC ms. */
  nextAt: number | undefined;
  readonly name: TaskName;
  readonly #about: RunEvent;
  readonly #active: Active;
  readonly output: Output;
  readonly #leave: () => void;
  #fence = 0;
  #begun = 0;

  constructor(parts: Parts, taken: Taken<RunData>) {
    this.parts = parts;
    this.taken = taken;
    const { queue, job } = taken;
    const { owner, task, run } = job.data.occurrence;
    this.name = { queue, owner, id: task };
    this.#about = { queue, run, task: `${owner}/${task}` };
    this.output = new Output(parts.maxOutput);
    this.box = new TimeBox(parts.clock, () => this.#terminating());
    const { task: local } = this.#about;
    this.#active = {
      queue,
      run,
      task: local,
      job: String(job.id),
      attempt: 0,
      box: this.box,
      output: this.output,
    };
    this.#leave = parts.active.enter(this.#active);
  }

  /** Records the start, before any handler runs. Undefined: this failed, and the job is handed back. */
  async start(): Promise<StartResult | undefined> {
    const { turn } = this.taken;
    const started = turn?.start ? begunOf(this.name, turn.start) : await this.#recordStart();
    if (started?.word === "OK") {
      this.#fence = started.fence;
      this.#active.attempt = started.attempt;
      this.#begun = performance.now();
      if (started.goesOn) await this.parts.outputs.goOn(this.#active);
      const { attempt, now, goesOn } = started;
      const { enqueued } = this.taken.job.data.occurrence;
      const first = attempt === 1 && !goesOn;
      // The clock of Redis may have gone back.
      const waited = first ? { waited: Math.max(0, now - enqueued) } : {};
      this.parts.emit("started", { ...this.#about, attempt, ...waited });
    }
    return started;
  }

  /**
   * Retries while Redis refuses the write: a failure here would end a run whose handler never ran. Meanwhile the job
   * stays ours, or its lock is lost and this attempt is aborted.
   */
  async #recordStart(): Promise<StartResult | undefined> {
    const { job, token } = this.taken;
    const by = {
      ...runner(job.processedBy ?? `${HOST}-${process.pid}`),
      attempt: startNumber(this.taken),
      made: job.attemptsMade,
      token,
    };
    for (let tries = 1; ; tries++) {
      try {
        return await this.parts.store.runs.start(this.name, this.#about.run, by);
      } catch (error) {
        if (this.box.received.has("lost")) throw error;
        if (this.parts.stopping()) return undefined;
        const details = { run: this.#about.run, code: redisError(error).code, tries };
        this.parts.logger.error(details, "the start could not be recorded");
        if (tries < TRIES) await pauseAfter(tries);
        else if (failsForAll(error)) return undefined;
        else throw error;
      }
    }
  }

  /** Ends a job whose handler must not run. */
  notStarted(started: Exclude<StartResult, Started>): JobEnd {
    switch (started.word) {
      case "LOST":
        this.box.lose();
        this.parts.emit("fenced", this.#about);
        return { end: "fail", error: new LockLostError() };
      case "NEWER": {
        const { format } = started;
        const remedy =
          "A newer version wrote this run: it waits for a worker of that version. Update this worker.";
        this.parts.logger.error({ ...this.#about, format, remedy }, "run of a newer format left alone");
        return { end: "delay", until: started.until + clockOffset(started.now) };
      }
      case "WAIT":
        return { end: "delay", until: started.until + clockOffset(started.now) };
      case "FORGOTTEN":
        this.parts.logger.error({ ...this.#about, error: FORGOTTEN }, "run not repeated");
        return { end: "fail", error: new PermanentError(FORGOTTEN) };
      case "CRASHED":
        this.parts.emit("crashed", { ...this.#about, error: started.error });
        return { end: "fail", error: new PermanentError(started.error) };
      case "DROPPED":
        this.parts.emit("dropped", this.#about);
        break;
      case "CANCELLED":
        this.parts.emit("cancelled", this.#about);
    }
    // A deleted task's job does nothing, and a final run is not repeated.
    return { end: "complete", value: undefined };
  }

  context(started: Started): Context {
    const { parts, taken, box } = this;
    const runNextAt = (time: number) => {
      this.nextAt = time;
    };
    const tools = { parts, taken, name: this.name, about: this.#about, box, runNextAt };
    return runContext({ ...tools, output: this.output }, started);
  }

  /** Records the result of the handler, and returns how the job ends. */
  async conclude(ended: Ended<Json | undefined | Ending>): Promise<JobEnd> {
    if (ended.how === "stuck") {
      const details = { ...this.#about, attempt: this.#active.attempt, error: ended.error.message };
      this.parts.logger.error(details, "handler ignores its signal");
    }
    const verdict = verdictOf(ended, this.box, this.#last);
    const thrown = ended.how === "returned" ? {} : { thrown: ended.error };
    if (verdict.run) await this.settle(verdict.run, verdict.job, thrown);
    else {
      this.output.close();
      await this.parts.outputs.save(this.#active);
      this.parts.emit("fenced", this.#about);
    }
    return verdict.job;
  }

  get #last(): boolean {
    const { attemptsMade, opts } = this.taken.job;
    return attemptsMade + 1 >= (opts.attempts ?? 1);
  }

  /** Whether no attempt follows one that ends with this error. */
  endsRun(error: Error): boolean {
    return this.#last || isPermanent(error);
  }

  /**
   * Records the end and reports it.
   * @param job how its job ends; done in the same step if possible
   */
  async settle(end: RunEnd, job?: JobEnd, thrown: { thrown?: unknown } = {}): Promise<void> {
    const outcome = await this.record(end, job);
    if (!outcome) return;
    const ms = Math.round(performance.now() - this.#begun);
    const { attempt } = this.#active;
    const { error } = end;
    this.parts.emit("settled", {
      ...this.#about,
      attempt,
      outcome,
      ms,
      ...(error ? { error, ...thrown } : {}),
    });
  }

  /**
   * Records the end of this attempt. Returns the outcome for its run; undefined: the attempt's report does not count.
   */
  async record(end: RunEnd, job?: JobEnd): Promise<Outcome | "retrying" | undefined> {
    this.output.close();
    this.#active.ending = true;
    const word = await this.#recordEnd(end, job?.end === "complete");
    if (word === "CANCELLED") return "cancelled";
    // Unknown: the reconciler will settle the run from the job's state.
    if (word === "OK" || word === undefined) return end.outcome ?? "retrying";
    // Another attempt took over, or the task was deleted: this end is not reported.
    this.parts.emit("fenced", this.#about);
    return undefined;
  }

  /**
   * Retries while Redis refuses the write, because the job alone records less, and may record a wrong end. Undefined:
   * the end cannot be recorded, or the job is no longer ours.
   */
  async #recordEnd({ outcome, error, result }: RunEnd, withJob: boolean): Promise<EndWord | undefined> {
    const { store, outputs, logger, stopping } = this.parts;
    const nextAt = outcome === undefined ? undefined : this.nextAt;
    const end = { fence: this.#fence, outcome, error, result, nextAt };
    for (let tries = 1; ; tries++) {
      // Saves the last output first, so that listeners of the end can read it.
      if (this.#active.saving) await this.#active.saving;
      const saved = this.output.unsaved ? outputs.save(this.#active) : undefined;
      try {
        const both = withJob && nextAt === undefined && outcome !== undefined && !isFailure(outcome);
        if (
          both &&
          (await this.taken.turn?.end({ ...end, outcome, name: this.name, run: this.#about.run })) === "OK"
        )
          return "OK";
        return await store.runs.settle(this.name, this.#about.run, end);
      } catch (failure) {
        const details = { ...this.#about, code: redisError(failure).code, tries };
        logger.error(details, "the run's end could not be recorded");
        const over = tries === TRIES || stopping() || this.box.received.has("lost");
        if (over || !failsForAll(failure)) return undefined;
        await pauseAfter(tries);
      } finally {
        if (saved) await saved;
      }
    }
  }

  /** Reports that the items are stored. */
  generated(items: number): void {
    this.parts.emit("generated", { ...this.#about, items });
  }

  close(): void {
    this.output.close();
    this.#leave();
  }

  #terminating(): void {
    this.parts.store.runs.terminating(this.name, this.#about.run, this.#fence).catch((error: unknown) => {
      const details = { ...this.#about, code: redisError(error).code };
      this.parts.logger.warn(details, "the run could not be marked as terminating");
    });
  }
}

/**
 * A new number at each start of this job, so that a resent start is recognised. It is not the number of the attempt:
 * BullMQ also counts a worker that died and had only postponed the job.
 */
function startNumber({ job }: Taken): number {
  return job.attemptsMade + job.stalledCounter + 1;
}

/**
 * Lead of this machine's clock, which BullMQ uses for delays, over Redis, in ms. Less than a second counts as 0:
 * it may be the round trip.
 */
export function clockOffset(redisTime: number): number {
  const offset = Date.now() - redisTime;
  return Math.abs(offset) < 1_000 ? 0 : offset;
}
