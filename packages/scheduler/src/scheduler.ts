import { EventEmitter } from "node:events";
import type { CarillonError } from "@carillon/core";
import { assertEvents, settingText, stoppedError } from "@carillon/core/internal";
import { type Heartbeat, Store, type Subscription, untilRedisAnswers } from "@carillon/store";
import { internalsOf, rememberStore } from "@carillon/store/internal";
import { AlertWatch } from "./alerts/alert-watch.js";
import { type Decided, EVENTS, emit, type Reconciled, type SchedulerEvents } from "./events.js";
import { nodeHeartbeat } from "./heartbeat.js";
import { Loop } from "./loop/loop.js";
import { ServerClock } from "./loop/server-clock.js";
import { listenForWakes } from "./loop/wake.js";
import { checked, type SchedulerOptions, type Settings } from "./options.js";
import { type NotReady, notReady, type Readiness, redisNotReady } from "./readiness.js";
import { RoundTrips } from "./round-trips.js";
import { refusal, SafetyCheck } from "./safety-check.js";

/** Results of one `tick`. */
export interface TickReport {
  readonly decided: readonly Decided[];
  readonly reconciled: readonly Reconciled[];
}

/**
 * One node. Any number may run on the same namespace: each arms a single timer for the earliest due time, and
 * the first one to take the mutex does the work.
 *
 * @example
 * const scheduler = new Scheduler({ connection: "redis://localhost:6379", namespace: "shop" });
 * await scheduler.start();
 * process.once("SIGTERM", () => scheduler.stop());
 */
export class Scheduler extends EventEmitter<SchedulerEvents> {
  readonly nodeId: string;
  readonly #store: Store;
  readonly #settings: Settings;
  readonly #ownsStore: boolean;
  readonly #clock: ServerClock;
  readonly #loop: Loop;
  readonly #heartbeat: Heartbeat;
  readonly #roundTrips = new RoundTrips();
  readonly #safety: SafetyCheck;
  #listener: Subscription | undefined;
  #state: "idle" | "starting" | "running" | "stopped" = "idle";
  #started = false;
  #stopped: Promise<void> | undefined;
  /** Reason why there is no connection, as last reported. */
  #lost: CarillonError | undefined;
  readonly #stopping = new AbortController();
  #unwatch = () => {};

  /** @throws `INVALID_OPTION` */
  constructor(options: SchedulerOptions) {
    super();
    assertEvents(this as EventEmitter, EVENTS);
    this.#settings = checked(options);
    this.nodeId = this.#settings.nodeId;
    this.#ownsStore = options.store === undefined;
    this.#store =
      options.store ??
      new Store({
        connection: options.connection as NonNullable<SchedulerOptions["connection"]>,
        namespace: this.#settings.namespace,
        retention: options.retention,
      });
    rememberStore(this, this.#store);
    const { time, sabotage } = internalsOf(this.#store).seams;
    if (sabotage?.length) {
      this.#settings.logger.warn({ sabotage }, "TEST ONLY: safety parts are switched off");
    }
    // A test's clock may jump by any amount.
    this.#clock = new ServerClock(undefined, time && Number.POSITIVE_INFINITY);
    this.#loop = new Loop(this.#store, this.#clock, this.#settings, this);
    this.#safety = new SafetyCheck(this.#store, this.#settings.logger);
    const watch = new AlertWatch(this.#store, this.#settings);
    this.#heartbeat = nodeHeartbeat(
      this.#store,
      this.#clock,
      this.#settings,
      this.#roundTrips,
      () => this.#held()?.why,
      (now) => watch.check(now),
      this.#safety,
    );
  }

  get ready(): boolean {
    return this.readiness.ready;
  }

  /** Whether the node is connected, checked, armed, able to write, and claiming; if not, why. */
  get readiness(): Readiness {
    if (this.#state !== "stopped") {
      if (!this.#store.ready) return this.#disconnected();
      if (this.#state !== "running") return notReady("STARTING", "starting");
      const { trouble } = this.#heartbeat;
      if (trouble) return redisNotReady(trouble);
    }
    return this.#held() ?? { ready: true };
  }

  #disconnected(): NotReady {
    if (this.#lost) return redisNotReady(this.#lost);
    if (this.#state !== "running") return notReady("STARTING", "waiting for Redis");
    // The connection may have been closed because of an answer, for example a read-only replica's.
    const { trouble } = this.#heartbeat;
    return trouble ? redisNotReady(trouble) : notReady("REDIS_UNAVAILABLE", "Redis cannot be reached.");
  }

  /** Reason why a node that can write does not claim; undefined if it claims. */
  #held(): NotReady | undefined {
    if (this.#state === "stopped") return notReady("STOPPING", "stopping");
    if (!this.#clock.holding) return undefined;
    return notReady(
      "CLOCK_HELD",
      "The clock of Redis jumped forward; claims are held until a second read agrees.",
    );
  }

  /** Lead of this machine's clock over the server's, in ms. Harmless, but worth a warning. */
  get clockOffset(): number {
    return this.#clock.wallOffset;
  }

  /** The usual round trip of a command to Redis, in ms: the median of the last five heartbeats. Undefined before the first. */
  get roundTrip(): number | undefined {
    return this.#roundTrips.usual;
  }

  /**
   * Resolves when the node runs, or when it is stopped first. While Redis cannot be reached it keeps trying, and logs that.
   *
   * @throws `REDIS_UNSAFE` if this Redis would lose tasks (see `unsafeRedis`); `INVALID_OPTION` if it is a cluster, and the
   * connection does not say so; `CONFLICT` if the node ran and was stopped: create a new one
   */
  async start(): Promise<void> {
    if (this.#state === "stopped" && this.#started) throw stoppedError("node");
    if (this.#state !== "idle") return;
    this.#state = "starting";
    this.#started = true;
    this.#unwatch = this.#store.watch({
      lost: (error) => this.#connectionLost(error),
      back: () => this.#connectionBack(),
      functionsRefused: ({ code, message }) =>
        this.#settings.logger.info({ code, error: message }, "Redis refuses functions: sending scripts"),
    });
    try {
      await untilRedisAnswers(() => this.#askRedis(), this.#settings.logger, this.#stopping.signal);
    } catch (error) {
      this.#unwatch();
      if ((this.#state as string) === "starting") this.#state = "idle";
      throw error;
    }
    if ((this.#state as string) === "stopped") return;
    await this.#heartbeat.start();
    // If it was stopped meanwhile, nothing may be opened or armed any more.
    if ((this.#state as string) === "stopped") return;
    this.#listener = listenForWakes(this.#store, {
      received: (queue, part, at) => this.#loop.received(queue, part, at),
      missed: () => this.#loop.rereadSoon(),
      failed: (error) =>
        this.#settings.logger.warn(
          { code: error.code, error: error.message },
          "cannot listen for wake messages",
        ),
    });
    this.#state = "running";
    this.#settings.logger.info(
      { node: this.nodeId, namespace: this.#settings.namespace, clockOffset: this.clockOffset },
      "node is running",
    );
    this.#loop.start();
  }

  /** @throws `REDIS_UNSAFE` */
  async #askRedis(): Promise<void> {
    await this.#loop.readClock();
    const settings = await this.#safety.atStart();
    const error = refusal(settings);
    if (error && this.#settings.unsafeRedis === "refuse") throw error;
    const { logger, namespace } = this.#settings;
    for (const setting of settings) logger.warn({ what: setting.code }, settingText(setting));
    if ((await this.#store.registry.queues()).length === 0) {
      logger.warn(
        { what: "empty", namespace },
        "this namespace holds no tasks: expected if it is new; after a restore, its data is missing",
      );
    }
  }

  /**
   * Does everything that is due now and returns the results. A started node does this by itself; tests with a clock of
   * their own call it.
   */
  async tick(): Promise<TickReport> {
    const decided: Decided[] = [];
    const reconciled: Reconciled[] = [];
    const onDecided = (one: Decided) => decided.push(one);
    const onReconciled = (one: Reconciled) => reconciled.push(one);
    this.on("decided", onDecided).on("reconciled", onReconciled);
    try {
      await this.#loop.tick();
    } finally {
      this.off("decided", onDecided).off("reconciled", onReconciled);
    }
    return { decided, reconciled };
  }

  #connectionLost(error: CarillonError): void {
    if (this.#state === "stopped") return;
    // Each attempt to connect fails with it again.
    const known = this.#lost?.message === error.message;
    this.#lost = error;
    emit(this, this.#settings.logger, "connection", { ready: false, message: error.message });
    const details = { code: error.code, error: error.message };
    this.#settings.logger[known ? "debug" : "error"](details, "Redis cannot be reached");
  }

  #connectionBack(): void {
    this.#lost = undefined;
    emit(this, this.#settings.logger, "connection", { ready: true });
    if (this.#state !== "running") return;
    this.#settings.logger.info({}, "connected to Redis again");
    // The node is ready again without waiting for the next beat.
    void this.#heartbeat.beat();
    this.#loop.connectionBack();
  }

  /**
   * In this order: accepts no new work, finishes the work in progress, leaves the list of nodes, closes the connection. Each call
   * resolves when all of it is done.
   */
  stop(): Promise<void> {
    this.#stopped ??= this.#end();
    return this.#stopped;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #end(): Promise<void> {
    this.#state = "stopped";
    this.#stopping.abort();
    this.#listener?.stop();
    await this.#loop.stop();
    await this.#heartbeat.stop();
    this.#unwatch();
    if (this.#ownsStore) await this.#store.close();
  }
}
