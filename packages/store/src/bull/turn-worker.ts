import { setTimeout } from "node:timers/promises";
import { type Job, type Processor, raw2NextJobData, type WorkerOptions } from "bullmq";
import { isUnknown, redisError } from "../redis/redis-error.js";
import type { StartReply, TurnWord } from "../run/run-scripts.js";
import { MOST_ENDS, MOST_TAKEN, type TurnAnswer, type TurnEnd, type TurnLane } from "../run/turns.js";
import { Pace } from "./pace.js";
import { PatientWorker } from "./patient-worker.js";

/** Wait before a turn that Redis refused, or did not answer, is sent again, in ms. */
const PAUSE = 1_000;

/** A job that this worker has taken. */
export interface Turn {
  /** The start of its run, if that is on record. */
  readonly start: StartReply | undefined;
  /** Ends its run and the job in one step. Unless the answer is `ASK`, the job has ended. */
  end(end: Omit<TurnEnd, "token" | "made">): Promise<TurnWord>;
}

interface PendingEnd extends TurnEnd {
  readonly resolve: (word: TurnWord) => void;
  readonly reject: (error: unknown) => void;
}

interface Lane {
  readonly turns: TurnLane;
  busy: boolean;
}

const NO_NEXT = () => false;

/**
 * BullMQ's worker with a loop of our own. BullMQ fetches jobs one after the other, each with a script, ends each with
 * another one, and knows no start of a run; here one script ends many and takes as many. Everything else is BullMQ's:
 * connections, the wait for a job, locks, the check for stalled jobs, and the end of a job that does not end with its
 * run.
 */
export class TurnWorker extends PatientWorker {
  readonly #lanes: readonly Lane[];
  readonly #taken = new Map<Job, Turn>();
  /** Jobs that have ended with their runs, and whose handler has not returned yet. */
  readonly #ended = new Set<Job>();
  /** Results of handlers, for jobs that BullMQ ends. */
  readonly #worked = new Map<Job, Promise<unknown>>();
  readonly #abandoned = new AbortController();
  /** Ends that wait for a turn. */
  #ends: PendingEnd[] = [];
  /** Jobs that count towards the concurrency: taken, and their end is in no turn yet. */
  #places = 0;
  /** Jobs whose processing has not returned. */
  #open = 0;
  /** Takes in progress. */
  #asked = 0;
  readonly #pace = new Pace();
  /** Whether the newest answer said that no job waits, or that the queue holds jobs back. */
  #empty = false;
  /** Number of times that the marker announced a waiting job. */
  #woken = 0;
  /** Whether the worker pauses its takes. */
  #rests = false;
  #armed = false;
  #over: (() => void) | undefined;

  constructor(queue: string, process: Processor, options: WorkerOptions, lanes: readonly TurnLane[]) {
    super(queue, process, { ...options, autorun: false });
    this.#lanes = lanes.map((turns) => ({ turns, busy: false }));
    // A private method: BullMQ's `run` calls it, and its `close` and `pause` wait for it.
    (this as unknown as { mainLoop: () => Promise<void> }).mainLoop = () =>
      new Promise((resolve) => {
        this.#over = resolve;
        this.#arm();
      });
  }

  turnOf(job: Job): Turn | undefined {
    return this.#taken.get(job);
  }

  /** Acts once, at the end of this turn of the event loop. */
  #arm(): void {
    if (this.#armed) return;
    this.#armed = true;
    process.nextTick(() => {
      this.#armed = false;
      this.#act();
    });
  }

  #act(): void {
    if (!this.#over) return;
    const stops = Boolean(this.closing) || this.paused;
    for (const lane of this.#lanes) {
      if (lane.busy) continue;
      if (this.#gathers) break;
      const ends = this.#ends.splice(0, MOST_ENDS);
      const take = stops ? 0 : this.#takeWith(ends.length);
      if (ends.length === 0 && take === 0) break;
      this.#begin(this.#turn(lane, ends, take));
    }
    if (stops) this.#endLoop();
    else if (this["isRateLimited"]()) this.#begin(this.#rest(this["waitForRateLimit"]()));
    else if (this.#empty && !this.#rests && !this["waiting"] && this.#free > 0)
      this.#begin(this.#waitForMarker());
  }

  /** Whether ends wait for the turns under way while no job does: what comes meanwhile joins them, and Redis pays for fewer turns. */
  get #gathers(): boolean {
    return this.#empty && this.#ends.length < MOST_ENDS && this.#lanes.some(({ busy }) => busy);
  }

  get #free(): number {
    return this.concurrency - this.#places - this.#ends.length - this.#asked;
  }

  /** Number of jobs to take in a turn with `ends` ends. */
  #takeWith(ends: number): number {
    if (this.#rests || this["isRateLimited"]()) return 0;
    // A job may have come since: fetched with ends, it needs no marker, no wake-up and no turn of its own.
    if (this.#empty) return Math.min(ends, this.#free, this.#pace.most);
    // Without ends only one turn at a time asks for jobs.
    if (ends === 0 && this.#asked > 0) return 0;
    return Math.max(0, Math.min(this.#free, this.#pace.most, ends > 0 ? MOST_ENDS : MOST_TAKEN));
  }

  #endLoop(): void {
    if (this.#open > 0 || this.#ends.length > 0 || this.#lanes.some(({ busy }) => busy)) return;
    const over = this.#over;
    this.#over = undefined;
    over?.();
  }

  async #turn(lane: Lane, ends: readonly PendingEnd[], take: number): Promise<void> {
    lane.busy = true;
    this.#asked += take;
    const woken = this.#woken;
    const answer = await this.#answerOf(lane, ends, take);
    lane.busy = false;
    this.#asked -= take;
    if (answer) {
      if (take > 0) this["updateDelays"](answer.limit, answer.delay);
      if (take > answer.jobs.length && woken === this.#woken) this.#empty = true;
      else if (take > 0) this.#empty = false;
      if (answer.jobs.length > 0) this.#pace.begin(answer.jobs.length);
      for (const taken of answer.jobs) this.#begin(this.#work(...taken));
      if (answer.error !== "") {
        this.emit("error", new Error(answer.error));
        this.#begin(this.#rest(this.#pause()));
      }
    }
    this.#arm();
  }

  /** Reports a failure instead of ending the process, as after an answer that makes no sense, and takes nothing for a moment. */
  #begin(step: Promise<void>): void {
    step.catch((error: unknown) => {
      this.emit("error", error as Error);
      void this.#rest(this.#pause());
    });
  }

  /** Sends a turn until it is answered or refused. Undefined: it took nothing. */
  async #answerOf(lane: Lane, given: readonly PendingEnd[], take: number): Promise<TurnAnswer | undefined> {
    let ends = given;
    const send = lane.turns.next(take);
    for (let unknown = false; ; ) {
      try {
        const answer = await send(ends);
        for (const [i, { resolve }] of ends.entries()) resolve(answer.words[i] as TurnWord);
        return answer;
      } catch (error) {
        this.emit("error", error as Error);
        const refused = !isUnknown(redisError(error));
        unknown ||= !refused;
        const { aborted } = this.#abandoned.signal;
        if (refused || aborted) {
          for (const { reject } of ends) reject(error);
          ends = [];
        }
        await this.#pause();
        // An earlier attempt may have taken jobs, so the turn must be asked again.
        if (aborted || (refused && (!unknown || take === 0))) return undefined;
      }
    }
  }

  async #pause(): Promise<void> {
    await setTimeout(PAUSE, undefined, { signal: this.#abandoned.signal }).catch(() => {});
  }

  async #work(id: string, token: string, hash: string[], start: StartReply | undefined): Promise<void> {
    this.#open += 1;
    this.#places += 1;
    let job: Job | undefined;
    try {
      const made = this.#jobOf(id, token, hash, start !== undefined);
      job = made instanceof Promise ? await made : made;
      if (!job) return;
      this.#taken.set(job, this.#turnFor(job, token, start));
      await this.#process(job, token).catch((error) => this.emit("error", error));
      this.#taken.delete(job);
    } finally {
      if (!job || !this.#ended.delete(job)) this.#places -= 1;
      this.#open -= 1;
      this.#arm();
    }
  }

  /** Works on a job. BullMQ ends it, unless it has ended with its run. */
  async #process(job: Job, token: string): Promise<void> {
    // BullMQ fails it without asking us.
    if (job.deferredFailure) return void (await this.processJob(job, token, NO_NEXT));
    this.lockManager.trackJob(String(job.id), token, Date.now());
    const worked = Promise.resolve(this.processFn(job, token));
    await worked.catch(() => {});
    if (this.#ended.has(job)) return;
    this.#worked.set(job, worked);
    await this.processJob(job, token, NO_NEXT).finally(() => this.#worked.delete(job));
  }

  protected override callProcessJob(...of: Parameters<PatientWorker["callProcessJob"]>): Promise<unknown> {
    return this.#worked.get(of[0]) ?? super.callProcessJob(...of);
  }

  #jobOf(id: string, token: string, hash: string[], isStarted: boolean): Promise<Job | undefined> | Job {
    const [data] = raw2NextJobData([hash, id, 0, 0]);
    // BullMQ continues its own job schedulers here; those jobs are not ours.
    if (!isStarted) return this.nextJobFromJobData(data, id, token);
    const job = this.createJob(data, id);
    job.token = token;
    return job;
  }

  #turnFor(job: Job, token: string, start: StartReply | undefined): Turn {
    // BullMQ's own end reports to a parent, and frees an id for deduplication.
    const plain = !job.parentKey && !job.deduplicationId;
    const made = job.attemptsMade + 1;
    return {
      start,
      end: (end) => (plain ? this.#end(job, { ...end, token, made }) : Promise.resolve("ASK")),
    };
  }

  async #end(job: Job, end: TurnEnd): Promise<TurnWord> {
    this.lockManager.untrackJob(end.run);
    this.#places -= 1;
    let word: TurnWord = "ASK";
    try {
      word = await new Promise<TurnWord>((resolve, reject) => {
        this.#ends.push({ ...end, resolve, reject });
        this.#arm();
      });
    } finally {
      if (word === "ASK") {
        this.#places += 1;
        this.lockManager.trackJob(end.run, end.token, Date.now());
      } else this.#ended.add(job);
    }
    return word;
  }

  /** Waits until a job was added, or a delayed one is due; some seconds at most. */
  async #waitForMarker(): Promise<void> {
    const waiting = this["waitForJob"](this["blockUntil"]);
    this["waiting"] = waiting as Promise<number>;
    const until = await waiting.finally(() => {
      this["waiting"] = null;
    });
    this["blockUntil"] = until;
    if (until <= 0 || until - Date.now() < 1) {
      this.#woken += 1;
      this.#empty = false;
    }
    this.#arm();
  }

  async #rest(until: Promise<void>): Promise<void> {
    if (this.#rests) return;
    this.#rests = true;
    await until;
    this.#rests = false;
    this.#empty = false;
    this.#arm();
  }

  override async pause(doNotWaitActive?: boolean): Promise<void> {
    const paused = super.pause(doNotWaitActive);
    this.#arm();
    await paused;
  }

  override async resume(): Promise<void> {
    await super.resume();
    this.#empty = false;
    this.#arm();
  }

  override close(force?: boolean): Promise<void> {
    if (force) this.#abandoned.abort();
    const closed = super.close(force);
    this.#arm();
    return closed;
  }

  override abandon(): Promise<void> {
    this.#abandoned.abort();
    return super.abandon();
  }
}
