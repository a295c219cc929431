import { EventEmitter } from "node:events";
import { type CarillonError, SHARDS, shardOf } from "@carillon/core";
import { redisError, Store, type TestSeams } from "@carillon/store";
import { Agenda, type Appointment } from "./agenda.js";
import { Claimer } from "./claimer.js";
import type { Decided, Reconciled, SchedulerEvents } from "./events.js";
import { Heartbeat } from "./heartbeat.js";
import { type SchedulerOptions, type Settings, settle } from "./options.js";
import { Reconciler } from "./reconciler.js";
import { inspectRedis, refusal } from "./safety-check.js";
import { ServerClock } from "./server-clock.js";
import { Timer } from "./timer.js";
import { WakeListener } from "./wake.js";

/** After losing a mutex: whoever holds it is usually done by then, in ms. */
const GLANCE_AFTER = 150;
/** A shard without progress is left alone this long, in ms. */
const REST = 1_000;
/** Shards worked on side by side. */
const SIDE_BY_SIDE = 4;
/** Longest wait after Redis failed, in ms. */
const LONGEST_BACKOFF = 2_000;

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
  readonly #agenda = new Agenda();
  readonly #claimer: Claimer;
  readonly #reconciler: Reconciler;
  readonly #heartbeat: Heartbeat;
  readonly #timer = new Timer(() => this.#wakeUp());
  #listener: WakeListener | undefined;
  #state: "idle" | "starting" | "running" | "stopped" = "idle";
  #round: Promise<void> | undefined;
  #again = false;
  #rereadAt = 0;
  #failures = 0;
  #glances = new Map<string, number>();

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
          onError: (error) => this.#connectionLost(error),
          onReady: () => this.#connectionBack(),
        },
        seams,
      );
    if (seams.sabotage?.length) {
      this.#settings.logger.warn({ sabotage: seams.sabotage }, "TEST ONLY: safety parts are switched off");
    }
    // A test's clock jumps as it likes.
    this.#clock = new ServerClock(undefined, this.store.virtualTime ? Number.POSITIVE_INFINITY : undefined);
    this.#claimer = new Claimer(this.store, this.#clock, this.#settings);
    this.#reconciler = new Reconciler(this.store);
    this.#heartbeat = new Heartbeat(this.store, this.#clock, this.#settings);
  }

  /** Connected, checked, armed, and able to write. */
  get ready(): boolean {
    return this.#state === "running" && this.store.link.ready && this.#heartbeat.healthy;
  }

  /** How far this machine's clock is ahead of the server's, in ms. It does no harm; it is worth a warning. */
  get clockOffset(): number {
    return this.#clock.wallOffset;
  }

  /**
   * Resolves when the node runs. While Redis cannot be reached it keeps trying, and says so.
   *
   * @throws `REDIS_UNSAFE` where this Redis would lose tasks (see `unsafeRedis`)
   */
  async start(): Promise<void> {
    if (this.#state !== "idle") return;
    this.#state = "starting";
    await this.#untilRedisAnswers();
    if ((this.#state as string) === "stopped") return;
    await this.#heartbeat.start();
    this.#listener = new WakeListener(
      this.store,
      (queue, part, at) => this.#heard(queue, part, at),
      () => this.#rereadSoon(),
    );
    this.#state = "running";
    this.#settings.logger.info(
      { node: this.nodeId, namespace: this.#settings.namespace, clockOffset: this.clockOffset },
      "node is running",
    );
    this.#rereadSoon();
  }

  /** Clock, then the safety check; again and again until Redis answers both. */
  async #untilRedisAnswers(): Promise<void> {
    for (let failures = 0; this.#state === "starting"; failures++) {
      try {
        await this.#readClock();
        await this.#checkSafety();
        return;
      } catch (error) {
        const coded = redisError(error);
        if (coded.code === "REDIS_UNSAFE") throw coded;
        this.#settings.logger.error({ code: coded.code, failures }, `waiting for Redis: ${coded.message}`);
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

  async #readClock(): Promise<void> {
    const sentAt = this.#clock.mark();
    this.#clock.observe(await this.store.serverTime(), sentAt);
    if (this.#clock.holding) {
      this.#settings.logger.error(
        { confirmIn: this.#clock.confirmIn },
        "the Redis clock jumped forward; claims are held until a second read agrees",
      );
    }
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
      for (const queue of await this.store.registry.queues()) {
        const parts = [...(await this.store.claims.next(queue)).keys()];
        for (const part of parts) await this.#work({ queue, part, at: 0 });
      }
    } finally {
      this.off("decided", onDecided).off("reconciled", onReconciled);
    }
    return { decided, reconciled };
  }

  #heard(queue: string, part: string, at: number): void {
    this.#agenda.nearer(queue, part, at);
    this.#arm();
  }

  #rereadSoon(): void {
    this.#rereadAt = 0;
    this.#wakeUp();
  }

  /** The timer fired, or there is news: one round at a time, and another if something came up meanwhile. */
  #wakeUp(): void {
    if (this.#state !== "running") return;
    if (this.#round) {
      this.#again = true;
      return;
    }
    this.#round = this.#runRound().finally(() => {
      this.#round = undefined;
      if (this.#again) {
        this.#again = false;
        this.#wakeUp();
      } else this.#arm();
    });
  }

  /** Never throws: a failure is logged, and the next round comes after a while. */
  async #runRound(): Promise<void> {
    try {
      if (performance.now() >= this.#rereadAt) await this.#reread();
      await this.#glance();
      if (!this.#clock.holding) await this.#workAll(this.#agenda.due(this.#clock.now()));
      this.#failures = 0;
    } catch (error) {
      const coded = redisError(error);
      this.#failures += 1;
      this.#rereadAt = 0;
      this.#settings.logger.error({ code: coded.code, failures: this.#failures }, coded.message);
    }
  }

  async #reread(): Promise<void> {
    // In one burst: the client sends these without waiting for each other.
    const [, queues] = await Promise.all([this.#readClock(), this.store.registry.queues()]);
    const parts = await Promise.all(queues.map((queue) => this.store.claims.next(queue)));
    this.#agenda.keepOnly(queues);
    queues.forEach((queue, i) => {
      this.#agenda.set(queue, parts[i] as Map<string, number>);
    });
    const { rereadEvery } = this.#settings;
    this.#rereadAt = performance.now() + (this.#clock.holding ? this.#clock.confirmIn + 10 : rereadEvery);
  }

  /** Queues in which another node was first: has it done what was due? */
  async #glance(): Promise<void> {
    const now = performance.now();
    const due = [...this.#glances].filter(([, at]) => at <= now).map(([queue]) => queue);
    for (const queue of due) this.#glances.delete(queue);
    await Promise.all(
      due.map(async (queue) => {
        this.#agenda.set(queue, await this.store.claims.next(queue));
        this.#agenda.releaseDone(queue, this.#clock.now());
      }),
    );
  }

  async #workAll(appointments: readonly Appointment[]): Promise<void> {
    // Nodes begin at different shards, so that a burst finds each of them at another one.
    const first = shardOf(this.nodeId);
    const rank = ({ part }: Appointment) =>
      part === "r" ? SHARDS : (Number(part) + SHARDS - first) % SHARDS;
    const open = [...appointments].sort((a, b) => rank(a) - rank(b));
    const worker = async () => {
      for (let next = open.shift(); next; next = open.shift()) await this.#work(next);
    };
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, worker));
  }

  async #work({ queue, part }: Appointment): Promise<void> {
    const { mutexTtl } = this.#settings;
    const mutexKey = this.store.keys.queue(queue).mutex(part === "r" ? "r" : Number(part));
    const lease = await this.store.mutex.take(mutexKey, mutexTtl);
    if (!lease) return this.#lost(queue, part);
    this.#agenda.release(queue, part);
    let progress = false;
    try {
      progress = part === "r" ? await this.#reconcile(queue) : await this.#claim(queue, Number(part), lease);
    } finally {
      // Sent together with the read that re-arms.
      const [, parts] = await Promise.all([lease.release(), this.store.claims.next(queue)]);
      this.#agenda.set(queue, parts);
      if (!progress) this.#agenda.hold(queue, part, this.#clock.now() + REST);
    }
  }

  async #claim(queue: string, shard: number, lease: Parameters<Claimer["claim"]>[2]): Promise<boolean> {
    const report = await this.#claimer.claim(queue, shard, lease);
    const { logger } = this.#settings;
    for (const decided of report.decided) {
      logger.debug(decided, decided.outcome);
      this.emit("decided", decided);
    }
    for (const { task, status } of report.refused) {
      if (status.startsWith("ERROR")) logger.error({ queue, task, status }, "could not be enqueued");
      else logger.debug({ queue, task, status }, "claim refused");
      this.emit("refused", { queue, task, status });
    }
    return report.progress;
  }

  async #reconcile(queue: string): Promise<boolean> {
    for (const seen of await this.#reconciler.reconcile(queue)) {
      this.#settings.logger.debug(seen, "reconciled");
      this.emit("reconciled", seen);
    }
    return true;
  }

  /** Someone is on it. A glance shortly after shows whether it is done; otherwise its time-to-live must pass. */
  #lost(queue: string, part: string): void {
    this.emit("lost", { queue, part });
    this.#agenda.hold(queue, part, this.#clock.now() + this.#settings.mutexTtl);
    if (!this.#glances.has(queue)) this.#glances.set(queue, performance.now() + GLANCE_AFTER);
  }

  #arm(): void {
    if (this.#state !== "running") return;
    if (this.#failures > 0) return this.#timer.arm(backoff(this.#failures));
    const now = this.#clock.now();
    const earliest = this.#clock.holding ? undefined : this.#agenda.earliest();
    let wait = this.#rereadAt - performance.now();
    for (const at of this.#glances.values()) wait = Math.min(wait, at - performance.now());
    if (earliest !== undefined) wait = Math.min(wait, earliest - now);
    this.#timer.arm(wait);
  }

  #connectionLost(error: CarillonError): void {
    if (this.#state === "stopped") return;
    this.emit("connection", { ready: false, message: error.message });
    this.#settings.logger.error({ code: error.code }, error.message);
  }

  #connectionBack(): void {
    this.emit("connection", { ready: true });
    if (this.#state !== "running") return;
    this.#settings.logger.info({}, "connected to Redis again");
    this.#heartbeat.reconnected();
    this.#failures = 0;
    this.#rereadSoon();
  }

  /** In order: no new work; finish what is under way; then leave the list of nodes; then the connection. */
  async stop(): Promise<void> {
    if (this.#state === "stopped") return;
    this.#state = "stopped";
    this.#timer.disarm();
    this.#listener?.stop();
    await this.#round;
    await this.#heartbeat.stop();
    if (this.#ownsStore) await this.store.close();
  }
}

function backoff(failures: number): number {
  return Math.min(50 * 2 ** Math.min(failures, 10), LONGEST_BACKOFF);
}
