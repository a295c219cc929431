import { EventEmitter } from "node:events";
import { hostname } from "node:os";
import {
  assertEvents,
  assertOptions,
  durationOption,
  processId,
  stoppedError,
} from "@carillon/core/internal";
import {
  bullPrefix,
  type ConnectionSpec,
  failsForAll,
  type Heartbeat,
  type Logger,
  newToken,
  type RedisClient,
  redisError,
  Store,
  type TurnWorker,
  untilRedisAnswers,
} from "@carillon/store";
import { seamsOf, turnWorker } from "@carillon/store/internal";
import type { Job } from "bullmq";
import { MOST_MS } from "./options.js";
import { ActiveJobs } from "./worker/active.js";
import { backoffStrategy } from "./worker/backoff.js";
import { CancelListener } from "./worker/cancels.js";
import { monotonicClock, type WorkerClock } from "./worker/clock.js";
import { closeWorker } from "./worker/closing.js";
import { captureConsole } from "./worker/console-capture.js";
import { logEvent } from "./worker/event-log.js";
import { Lacking, workerHeartbeat } from "./worker/heartbeat.js";
import { ItemQueues } from "./worker/item-queues.js";
import {
  checked,
  type Settings,
  type StopOptions,
  WORKER_EVENTS,
  type WorkerEvents,
  type WorkerOptions,
} from "./worker/options.js";
import { OutputSaver } from "./worker/output-saver.js";
import type { Parts } from "./worker/parts.js";
import { Processor } from "./worker/processor.js";
import { runner } from "./worker/run-attempt.js";
import type { WorkerSeams } from "./worker/seams.js";

/** Interval for saving new output and polling for cancels, in ms. */
const ROUND = 4_000;

/** Time between two log lines of a stop that waits, in ms. */
const REMIND_EVERY = 10_000;

/** Carillon decides after how many crashes a run or an item ends; BullMQ's own limit must not apply first. */
const NEVER = 1_000_000;

/**
 * Runs handlers by task type, and records each run: its start before the handler, its end after it.
 *
 * @example
 * const worker = new Worker({ connection: "redis://localhost:6379", types: [report] });
 * await worker.start();
 */
export class Worker extends EventEmitter<WorkerEvents> {
  /** Its name in the list of workers, and in the records of the runs that it works. */
  readonly id = processId(hostname(), process.pid, newToken());
  readonly #settings: Settings;
  readonly #store: Store;
  /** Whether `stop` closes the store. */
  readonly #closes: boolean;
  readonly #logger: Logger;
  readonly #clock: WorkerClock;
  readonly #active = new ActiveJobs();
  readonly #lacking = new Lacking();
  readonly #outputs: OutputSaver;
  readonly #items: ItemQueues;
  readonly #processor: Processor;
  readonly #heartbeat: Heartbeat;
  readonly #workers: { readonly worker: TurnWorker; readonly connection: RedisClient }[] = [];
  /** Everything that `start` started, in stop order. */
  readonly #ends: (() => void)[] = [];
  readonly #stopping = new AbortController();
  #running = 0;
  /** Why there is no connection, as last logged. */
  #lost: string | undefined;
  #started: Promise<void> | undefined;
  /** Ends the log lines of a stop that waits. */
  #remind: (() => void) | undefined;

  /** @throws `INVALID_OPTION` */
  constructor(options: WorkerOptions) {
    super();
    assertEvents(this as EventEmitter, WORKER_EVENTS);
    this.#settings = checked(options);
    this.#logger = this.#settings.logger;
    this.#closes = !options.store;
    this.#clock = seamsOf<WorkerSeams>(options).clock ?? monotonicClock;
    this.#store =
      options.store ??
      new Store({
        connection: options.connection as ConnectionSpec,
        namespace: options.namespace,
        retention: options.retention,
        onError: ({ code, message }) => {
          // Each attempt to connect fails with it again.
          this.#logger[message === this.#lost ? "debug" : "error"](
            { code, error: message },
            "Redis cannot be reached",
          );
          this.#lost = message;
        },
        onReady: () => {
          this.#lost = undefined;
          if (this.#workers.length > 0) this.#logger.info({}, "connected to Redis again");
        },
      });
    this.#outputs = new OutputSaver(this.#store, this.#logger);
    this.#items = new ItemQueues(this.#store);
    this.#processor = new Processor(this.#parts());
    this.#heartbeat = workerHeartbeat(this.#store, this.#logger, this.id, {
      queues: this.queues,
      types: [...this.#settings.types.values()],
      every: this.#settings.heartbeatEvery,
      active: this.#active,
      lacking: this.#lacking,
      stopping: () => this.#stopping.signal.aborted,
    });
  }

  #parts(): Parts {
    return {
      ...this.#settings,
      store: this.#store,
      clock: this.#clock,
      active: this.#active,
      lacking: this.#lacking,
      outputs: this.#outputs,
      items: this.#items,
      stopping: () => this.#stopping.signal.aborted,
      emit: (event, about) => {
        logEvent(this.#logger, event, about);
        this.#tell(event, about);
      },
    };
  }

  get queues(): string[] {
    return [...this.#settings.queues];
  }

  /**
   * Begins to take jobs. Resolves when Redis has answered, or when the worker is stopped before. While Redis cannot be
   * reached, or refuses the password, it keeps trying and logs that.
   *
   * @throws `CONFLICT` if it ran and was stopped: create a new one; `INVALID_OPTION` if this Redis is a cluster, and the connection does not say so
   */
  start(): Promise<void> {
    if (this.#stopping.signal.aborted && this.#started) return Promise.reject(stoppedError("worker"));
    this.#started ??= this.#begin();
    return this.#started;
  }

  async #begin(): Promise<void> {
    const { signal } = this.#stopping;
    await untilRedisAnswers(() => this.#store.info(), this.#logger, signal);
    const Bull = await turnWorker();
    if (signal.aborted) return;
    // Registers before it takes jobs, so that the worker is counted.
    await this.#heartbeat.start();
    if (signal.aborted) return;
    if (this.#settings.captureOutput) this.#ends.push(captureConsole());
    const cancels = new CancelListener(this.#store, this.#active, this.#logger);
    this.#ends.push(() => cancels.stop());
    const round = setInterval(() => {
      void cancels.poll();
      void this.#outputs.saveAll(this.#active);
    }, ROUND).unref();
    this.#ends.push(() => clearInterval(round));
    for (const queue of this.queues) this.#workers.push(this.#open(queue, Bull));
    this.#logger.info({ queues: this.queues, namespace: this.#store.namespace }, "worker is running");
  }

  #open(queue: string, Bull: typeof TurnWorker): { worker: TurnWorker; connection: RedisClient } {
    const connection = this.#store.connect("patient");
    const run = async (job: Job, token?: string) => {
      this.#running += 1;
      try {
        return await this.#processor.process(queue, job, token ?? "", worker.turnOf(job));
      } finally {
        this.#running -= 1;
      }
    };
    const { concurrency, lockDuration, stalledInterval } = this.#settings;
    const whose = { ...runner(this.id), lock: lockDuration };
    const options = {
      connection,
      name: this.id,
      prefix: bullPrefix(this.#store.namespace, queue),
      concurrency,
      lockDuration,
      stalledInterval,
      maxStalledCount: NEVER,
      settings: { backoffStrategy },
    };
    const worker: TurnWorker = new Bull(queue, run, options, this.#store.runs.lanes(queue, whose));
    worker.on("error", (error) => {
      const coded = redisError(error); // `redisError` also removes the password from the error.
      const { code, message } = coded;
      // Each queue has two connections besides the store's, which logs the same.
      const logged = this.#closes && !this.#store.ready && failsForAll(coded);
      this.#logger[logged ? "debug" : "error"]({ queue, code, error: message }, "worker");
      if (this.listenerCount("error") > 0) this.#tell("error", error);
    });
    worker.on("lockRenewalFailed", (ids) => {
      for (const id of ids) this.#active.lose(queue, id);
    });
    worker.run().catch((error: unknown) => worker.emit("error", error as Error));
    return { worker, connection };
  }

  /** Whether Redis is unreachable, so that jobs cannot be handed back or ends recorded, while no handler is running. */
  #stranded(connection: RedisClient): boolean {
    const lost = connection.status !== "ready" || !this.#store.ready;
    return lost && !this.#active.atWork;
  }

  #tell<Event extends keyof WorkerEvents>(event: Event, about: WorkerEvents[Event][0]): void {
    try {
      (this as EventEmitter).emit(event, about);
    } catch (error) {
      this.#logger.error({ event, error: String(error) }, "a listener threw");
    }
  }

  /**
   * Takes no more jobs, waits for the running ones, and closes; also if Redis cannot be reached. Called again with `within`,
   * a stop that waits hurries up.
   * @throws `INVALID_OPTION`
   */
  async stop(options: StopOptions = {}): Promise<void> {
    assertOptions(options, ["within"]);
    const within = durationOption(options.within, "within", 0, MOST_MS);
    this.#stopping.abort();
    this.#processor.stop();
    // Reports that it takes no more jobs; not before it is on the list.
    if (this.#workers.length > 0) void this.#heartbeat.beat();
    const hurry = within === undefined ? () => {} : this.#clock.after(within, () => this.#active.stop());
    if (!this.#remind) this.#remindLater();
    const closes = this.#workers.map(({ worker, connection }) =>
      closeWorker(worker, {
        busy: () => this.#running > 0,
        stranded: () => this.#stranded(connection),
      }),
    );
    await Promise.all(closes);
    hurry();
    this.#remind?.();
    await this.#heartbeat.stop();
    for (const end of this.#ends.splice(0)) end();
    for (const { connection } of this.#workers) connection.disconnect();
    this.#items.close();
    if (this.#closes) await this.#store.close();
  }

  /** A stop waits for a handler that ignores its signal, for ever if it hangs: that must not look like a hang of the worker. */
  #remindLater(): void {
    this.#remind = this.#clock.after(REMIND_EVERY, () => {
      const ignored = this.#active.underWay((box) => box.atWork && box.signal.aborted);
      const all = this.#active.underWay((box) => box.atWork);
      if (ignored.count > 0)
        this.#logger.warn({ ...ignored }, "the stop waits for runs that ignore their signal");
      else if (all.count > 0) this.#logger.info({ ...all }, "the stop waits for running handlers");
      this.#remindLater();
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
