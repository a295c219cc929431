import { EventEmitter } from "node:events";
import type { CarillonError } from "@carillon/core";
import { redisError, Store, type Subscription, type TestSeams } from "@carillon/store";
import { backoff } from "./backoff.js";
import { type Decided, type Reconciled, type SchedulerEvents, tell } from "./events.js";
import { Heartbeat } from "./heartbeat.js";
import { Loop } from "./loop.js";
import { type SchedulerOptions, type Settings, settle } from "./options.js";
import { inspectRedis, refusal } from "./safety-check.js";
import { ServerClock } from "./server-clock.js";
import { listenForWakes } from "./wake.js";

/** What one `tick` has done. */
export interface TickReport {
  readonly decided: readonly Decided[];
  readonly reconciled: readonly Reconciled[];
}

/**
 * One node. Any number may run on the same namespace; each arms a single timer for the earliest due time, and
 * whichever comes first does the work.
 *
 * @example
 * const scheduler = new Scheduler({ connection: "redis://localhost:6379", namespace: "shop" });
 * await scheduler.start();
 * process.once("SIGTERM", () => scheduler.stop());
 */
export class Scheduler extends EventEmitter<SchedulerEvents> {
  readonly nodeId: string;
  readonly store: Store;
  readonly #settings: Settings;
  readonly #ownsStore: boolean;
  readonly #clock: ServerClock;
  readonly #loop: Loop;
  readonly #heartbeat: Heartbeat;
  #listener: Subscription | undefined;
  #state: "idle" | "starting" | "running" | "stopped" = "idle";
  #stopped: Promise<void> | undefined;
  readonly #onReady = () => this.#connectionBack();
  readonly #onError = (error: unknown) => this.#connectionLost(redisError(error));

  /** @param seams for tests only @throws `INVALID_OPTION` */
  constructor(options: SchedulerOptions, seams: TestSeams = {}) {
    super();
    this.#settings = settle(options);
    this.nodeId = this.#settings.nodeId;
    this.#ownsStore = options.store === undefined;
    this.store =
      options.store ??
      new Store(
        {
          connection: options.connection as NonNullable<SchedulerOptions["connection"]>,
          namespace: this.#settings.namespace,
          retention: options.retention,
          onError: this.#onError,
          onReady: this.#onReady,
        },
        seams,
      );
    if (seams.sabotage?.length) {
      this.#settings.logger.warn({ sabotage: seams.sabotage }, "TEST ONLY: safety parts are switched off");
    }
    // A test's clock jumps as it likes.
    this.#clock = new ServerClock(undefined, this.store.virtualTime ? Number.POSITIVE_INFINITY : undefined);
    this.#loop = new Loop(this.store, this.#clock, this.#settings, this);
    this.#heartbeat = new Heartbeat(this.store, this.#clock, this.#settings);
  }

  /** Connected, checked, armed, and able to write. */
  get ready(): boolean {
    return this.#state === "running" && this.store.link.ready && this.trouble === undefined;
  }

  /** Why a node that runs cannot write: its Redis takes no writes, say, or does not answer. Undefined: it can, or does not run. */
  get trouble(): string | undefined {
    return this.#state === "running" ? this.#heartbeat.trouble : undefined;
  }

  /** How far this machine's clock is ahead of the server's, in ms. It does no harm; it is worth a warning. */
  get clockOffset(): number {
    return this.#clock.wallOffset;
  }

  /**
   * Resolves when the node runs, or when it is stopped before. While Redis cannot be reached it keeps trying, and logs that. A node
   * that was stopped stays so: make another one.
   *
   * @throws `REDIS_UNSAFE` where this Redis would lose tasks (see `unsafeRedis`)
   */
  async start(): Promise<void> {
    if (this.#state !== "idle") return;
    this.#state = "starting";
    this.#watchGivenStore();
    try {
      await this.#untilRedisAnswers();
    } catch (error) {
      this.#unwatch();
      if ((this.#state as string) === "starting") this.#state = "idle";
      throw error;
    }
    if ((this.#state as string) === "stopped") return;
    await this.#heartbeat.start();
    // Stopped meanwhile: nothing may be opened or armed any more.
    if ((this.#state as string) === "stopped") return;
    this.#listener = listenForWakes(this.store, {
      heard: (queue, part, at) => this.#loop.heard(queue, part, at),
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

  /** A store of our own tells by the options that it got. */
  #watchGivenStore(): void {
    if (this.#ownsStore) return;
    const { client } = this.store.link;
    // As many as there are nodes on this store, which is no leak.
    client.setMaxListeners(0);
    client.on("error", this.#onError).on("ready", this.#onReady);
  }

  #unwatch(): void {
    this.store.link.client.off("error", this.#onError).off("ready", this.#onReady);
  }

  /** Clock, then the safety check; again and again until Redis answers both. */
  async #untilRedisAnswers(): Promise<void> {
    for (let failures = 0; this.#state === "starting"; failures++) {
      try {
        await this.#loop.readClock();
        await this.#checkSafety();
        return;
      } catch (error) {
        const coded = redisError(error);
        if (coded.code === "REDIS_UNSAFE") throw coded;
        const { code, message } = coded;
        this.#settings.logger.error({ code, failures, error: message }, "waiting for Redis");
        await new Promise((resolve) => setTimeout(resolve, backoff(failures)));
      }
    }
  }

  async #checkSafety(): Promise<void> {
    const findings = await inspectRedis(this.store);
    const error = refusal(findings);
    if (error && this.#settings.unsafeRedis === "refuse") throw error;
    for (const { what, message } of findings) this.#settings.logger.warn({ what }, message);
  }

  /**
   * Does everything that is due now and returns what was done. `start` does this by itself; tests with a clock of
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
    tell(this, this.#settings.logger, "connection", { ready: false, message: error.message });
    this.#settings.logger.error({ code: error.code, error: error.message }, "Redis cannot be reached");
  }

  #connectionBack(): void {
    tell(this, this.#settings.logger, "connection", { ready: true });
    if (this.#state !== "running") return;
    this.#settings.logger.info({}, "connected to Redis again");
    this.#heartbeat.reconnected();
    this.#loop.connectionBack();
  }

  /**
   * In order: no new work; finish what is under way; then leave the list of nodes; then the connection. Each call resolves
   * when that is done.
   */
  stop(): Promise<void> {
    this.#stopped ??= this.#end();
    return this.#stopped;
  }

  async #end(): Promise<void> {
    this.#state = "stopped";
    this.#listener?.stop();
    await this.#loop.stop();
    await this.#heartbeat.stop();
    this.#unwatch();
    if (this.#ownsStore) await this.store.close();
  }
}
