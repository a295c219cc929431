import { EventEmitter } from "node:events";
import { hostname } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { CarillonError, type JobData, type Json, type Outcome, type TaskName } from "@carillon/core";
import {
  bullPrefix,
  type ConnectionSpec,
  type RedisClient,
  redisError,
  type StartResult,
  Store,
} from "@carillon/store";
import { Worker as BullWorker, type Job, UnrecoverableError } from "bullmq";
import type { Context } from "./context.js";
import { type AnyTaskType, validatePayload } from "./task-type.js";

/** pino, or anything with its methods. */
export interface WorkerLogger {
  debug(details: object, message: string): void;
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

export interface WorkerOptions {
  /** A Redis URL, several for a cluster, or an ioredis client whose options are taken over. */
  connection?: ConnectionSpec | undefined;
  /** Instead of `connection`: a store of your own; `stop` leaves it open. */
  store?: Store | undefined;
  /** Default `carillon`. */
  namespace?: string | undefined;
  /** What this worker can do; it works every queue that these types name, and `queues`. */
  types: readonly AnyTaskType[];
  /** More queues to work. */
  queues?: readonly string[] | undefined;
  /** Jobs at a time, per queue; default 10. */
  concurrency?: number | undefined;
  /** How long a job stays ours without a sign of life, in ms; default 30,000. */
  lockDuration?: number | undefined;
  logger?: WorkerLogger | undefined;
}

export interface WorkerEvents {
  started: [{ queue: string; run: string; task: string; attempt: number }];
  settled: [
    { queue: string; run: string; task: string; outcome: Outcome | "retrying"; ms: number; error?: string },
  ];
  /** An attempt ended whose word did not count: another one had taken the run over, or the task was deleted. */
  fenced: [{ queue: string; run: string; task: string }];
  error: [Error];
}

/** A close is given up when no handler has run for this many looks, 200 ms apart. */
const QUIET_LOOKS = 15;
const LOOK_EVERY = 200;

/** About a minute, with pauses that grow to 5 s. */
const START_TRIES = 16;

const SILENT: WorkerLogger = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * Runs handlers by task type, and records each run: its start before the handler, its end after it.
 *
 * @example
 * const worker = new Worker({ connection: "redis://localhost:6379", types: [report] });
 * await worker.start();
 */
export class Worker extends EventEmitter<WorkerEvents> {
  readonly #options: WorkerOptions;
  readonly #types: ReadonlyMap<string, AnyTaskType>;
  readonly #store: Store;
  readonly #ownsStore: boolean;
  readonly #logger: WorkerLogger;
  readonly #workers: BullWorker[] = [];
  readonly #connections: RedisClient[] = [];
  #running = 0;
  #stopping = false;

  /** @throws `INVALID_OPTION` */
  constructor(options: WorkerOptions) {
    super();
    if (!Array.isArray(options.types)) {
      throw new CarillonError("INVALID_OPTION", "missing.", {
        field: "types",
        remedy: "Give the task types to run.",
      });
    }
    this.#options = options;
    this.#types = new Map(options.types.map((type) => [type.type, type]));
    this.#logger = options.logger ?? SILENT;
    if (options.connection === undefined && options.store === undefined) {
      throw new CarillonError("INVALID_OPTION", "missing.", {
        field: "connection",
        remedy: "Give a Redis URL, for example redis://localhost:6379.",
      });
    }
    this.#ownsStore = options.store === undefined;
    this.#store =
      options.store ??
      new Store({
        connection: options.connection as ConnectionSpec,
        namespace: options.namespace,
        onError: (error) => this.#logger.error({ code: error.code }, error.message),
      });
  }

  get queues(): string[] {
    const named = this.#options.types.map((type) => type.queue);
    return [...new Set([...named, ...(this.#options.queues ?? [])])].sort();
  }

  /** Begins to take jobs. While Redis cannot be reached it waits. */
  async start(): Promise<void> {
    if (this.#workers.length > 0) return;
    for (const queue of this.queues) {
      const connection = this.#store.connect("patient");
      this.#connections.push(connection);
      const run = async (job: Job, _token: string | undefined, signal: AbortSignal | undefined) => {
        this.#running += 1;
        try {
          return await this.#process(queue, job, signal);
        } finally {
          this.#running -= 1;
        }
      };
      const worker = new BullWorker(queue, run, {
        connection,
        name: `${hostname()}-${process.pid}`,
        prefix: bullPrefix(this.#store.namespace, queue),
        concurrency: this.#options.concurrency ?? 10,
        lockDuration: this.#options.lockDuration ?? 30_000,
      });
      worker.on("error", (error) => {
        this.#logger.error({ queue, error: error.message }, "worker");
        if (this.listenerCount("error") > 0) this.emit("error", error);
      });
      // The lock is gone: another worker will take the job over, so this attempt must end.
      worker.on("lockRenewalFailed", (ids) => {
        for (const id of ids) worker.cancelJob(id, "the job's lock was lost");
      });
      this.#workers.push(worker);
    }
  }

  /** Record started, resolve, run, normalise, record finished. */
  async #process(queue: string, job: Job, signal: AbortSignal | undefined): Promise<unknown> {
    const { occurrence } = (job.data ?? {}) as Partial<JobData>;
    if (!occurrence?.run) {
      throw new UnrecoverableError("This job was not added by Carillon: it has no occurrence.");
    }
    const name = { queue, owner: occurrence.owner, id: occurrence.task };
    const attempt = job.attemptsStarted || job.attemptsMade + 1;
    const started = await this.#start(name, job, attempt, signal);
    // A deleted task's job does nothing; a run that is over is not done again.
    if (started.word !== "OK") return null;

    const about = { queue, run: occurrence.run, task: `${occurrence.owner}/${occurrence.task}` };
    this.emit("started", { ...about, attempt });
    const begun = performance.now();
    const { fence } = started;
    const context: Context = {
      occurrence,
      idempotencyKey: occurrence.key,
      fence,
      attempt,
      signal: signal ?? new AbortController().signal,
      log: (message, details) => {
        this.#logger.info({ ...about, ...details }, message);
        job.log(details ? `${message} ${inLine(details)}` : message).catch(() => {});
      },
    };
    const settle = async (outcome: Outcome | undefined, error?: string, result?: Json) => {
      try {
        const answer = await this.#store.runs.settle(name, occurrence.run, {
          fence,
          made: job.attemptsMade,
          outcome,
          error,
          result,
        });
        // Another attempt took over, or the task is gone: this end is nobody's news.
        if (answer !== "OK") {
          this.emit("fenced", about);
          return;
        }
      } catch (failure) {
        // The job itself will tell the reconciler.
        this.#logger.error(
          { ...about, code: redisError(failure).code },
          "the run's end could not be recorded",
        );
      }
      const ms = Math.round(performance.now() - begun);
      this.emit("settled", { ...about, outcome: outcome ?? "retrying", ms, ...(error ? { error } : {}) });
    };
    try {
      const result = await this.#run(job, context);
      await settle("succeeded", undefined, result);
      return result ?? null;
    } catch (error) {
      const last = job.attemptsMade + 1 >= (job.opts.attempts ?? 1) || error instanceof UnrecoverableError;
      await settle(
        last ? "failed" : undefined,
        error instanceof Error ? (error.stack ?? error.message) : String(error),
      );
      throw error;
    }
  }

  /**
   * Records the attempt's start. While Redis cannot take it, it is tried again: failing here would end a run whose handler
   * never ran. The job stays ours meanwhile, or its lock is lost and the signal says so.
   */
  async #start(
    name: TaskName,
    job: Job,
    attempt: number,
    signal: AbortSignal | undefined,
  ): Promise<StartResult> {
    const by = {
      worker: job.processedBy ?? `${hostname()}-${process.pid}`,
      pid: process.pid,
      host: hostname(),
      attempt,
      made: job.attemptsMade,
    };
    for (let tries = 1; ; tries++) {
      try {
        return await this.#store.runs.start(name, (job.data as JobData).occurrence.run, by);
      } catch (error) {
        if (tries === START_TRIES || signal?.aborted || this.#stopping) throw error;
        this.#logger.error(
          { run: job.id, code: redisError(error).code, tries },
          "the start could not be recorded",
        );
        await pause(Math.min(100 * 2 ** tries, 5_000));
      }
    }
  }

  async #run(job: Job, context: Context): Promise<Json | undefined> {
    const type = this.#types.get(job.name);
    if (!type) {
      throw new UnrecoverableError(
        `No handler for task type ${job.name}; this worker has ${[...this.#types.keys()].join(", ")}.`,
      );
    }
    let payload: unknown;
    try {
      payload = await validatePayload(type, (job.data as JobData).payload);
    } catch (error) {
      // The payload will not get better by trying again.
      throw new UnrecoverableError(error instanceof Error ? error.message : String(error));
    }
    return asJson((await type.handler(payload, context)) ?? undefined);
  }

  /**
   * Takes no more jobs, waits for the running ones as long as they take, and closes; also where Redis cannot be reached.
   */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#workers.map((worker) => this.#close(worker)));
    for (const connection of this.#connections) connection.disconnect();
    if (this.#ownsStore) await this.#store.close();
  }

  /**
   * BullMQ's close can wait for ever on a connection that was lost. Once no handler has run for a while there is nothing left
   * to wait for: whatever was not said, the job itself will tell.
   */
  async #close(worker: BullWorker): Promise<void> {
    const closed = worker.close().catch(() => {});
    let done = false;
    void closed.then(() => {
      done = true;
    });
    for (let quiet = 0; !done && quiet < QUIET_LOOKS; ) {
      await Promise.race([closed, pause(LOOK_EVERY, undefined, { ref: false })]);
      quiet = this.#running > 0 ? 0 : quiet + 1;
    }
  }
}

/** BullMQ would fail the job for a result that it cannot write; then the run must say the same. */
function asJson(result: Json | undefined): Json | undefined {
  try {
    const text = JSON.stringify(result) as string | undefined;
    return text === undefined ? undefined : result;
  } catch (error) {
    throw new UnrecoverableError(`The handler's result is not JSON: ${String(error).split("\n")[0]}.`);
  }
}

function inLine(details: object): string {
  try {
    return JSON.stringify(details);
  } catch {
    return "(details that are not JSON)";
  }
}
