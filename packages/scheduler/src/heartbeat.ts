import { hostname } from "node:os";
import type { CarillonError } from "@carillon/core";
import { type NodeInfo, redisError, type Store, VERSION } from "@carillon/store";
import { AlertWatch } from "./alerts/alert-watch.js";
import type { ServerClock } from "./loop/server-clock.js";
import type { Settings } from "./options.js";

/** A node is removed from the list if its last beat is further from now than this, in ms. */
const FORGET_AFTER = 3_600_000;

/** Leaving the list of nodes must not hold up a stop for longer than this, in ms. */
const LEAVE_WITHIN = 3_000;

/** Announces regularly that this node is alive. */
export class Heartbeat {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  readonly #held: () => string | undefined;
  readonly #alerts: AlertWatch;
  #timer: NodeJS.Timeout | undefined;
  #started = 0;
  #beats = 0;
  #stopped = false;
  #beating: Promise<void> | undefined;
  /** When the last beat was written, on the monotonic clock. */
  #answered = Number.NEGATIVE_INFINITY;
  /** Why the last beat failed, for example because this Redis is read-only. */
  #trouble: CarillonError | undefined;

  /** @param held why this node claims nothing although it can write; undefined if it claims */
  constructor(store: Store, clock: ServerClock, settings: Settings, held: () => string | undefined) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
    this.#held = held;
    this.#alerts = new AlertWatch(store, settings);
  }

  async start(): Promise<void> {
    this.#started = Math.round(this.#clock.now());
    await this.#beat();
    if (this.#stopped) return;
    this.#timer = setInterval(() => void this.#beat(), this.#settings.heartbeatEvery);
  }

  /** Why beats are not written, or undefined if they are. A node that cannot write cannot claim either. */
  get trouble(): Pick<CarillonError, "code" | "message"> | undefined {
    if (this.#trouble) return this.#trouble;
    // A Redis that does not answer at all causes no error.
    const answers = performance.now() - this.#answered < 2 * this.#settings.heartbeatEvery;
    return answers ? undefined : { code: "REDIS_UNAVAILABLE", message: "Redis does not answer." };
  }

  /** Beats at once, so that a node that has reconnected is ready again without waiting for the next beat. */
  reconnected(): void {
    if (this.#trouble?.code === "REDIS_UNAVAILABLE") void this.#beat();
  }

  /** Never throws: logs the failure, and the next beat tries again. */
  #beat(): Promise<void> {
    // One at a time, so that beats do not pile up while Redis hangs.
    this.#beating ??= this.#beatOnce().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  async #beatOnce(): Promise<void> {
    try {
      await this.tick();
      this.#trouble = undefined;
      this.#answered = performance.now();
    } catch (error) {
      this.#trouble = redisError(error);
      const { code, message } = this.#trouble;
      this.#settings.logger.error({ code, error: message }, "the heartbeat failed");
    }
  }

  /** One beat. Also checks for undelivered alerts and, at every 60th beat, for nodes that are long dead. */
  async tick(): Promise<void> {
    await this.#store.registry.beat(this.info());
    // If Redis fails, the next beat reports it.
    await this.#alerts.check(this.#clock.now()).catch(() => {});
    this.#beats += 1;
    if (this.#beats % 60 === 1) await this.#forgetTheGone();
  }

  info(): NodeInfo {
    const why = this.#held();
    return {
      id: this.#settings.nodeId,
      host: hostname(),
      pid: process.pid,
      version: VERSION,
      started: this.#started,
      beat: Math.round(this.#clock.now()),
      every: this.#settings.heartbeatEvery,
      tzdata: process.versions.tz ?? "unknown",
      clockOffset: this.#clock.wallOffset,
      onAlert: this.#settings.onAlert !== undefined,
      ready: why === undefined,
      ...(why === undefined ? {} : { why }),
    };
  }

  async #forgetTheGone(): Promise<void> {
    const now = this.#clock.now();
    for (const node of await this.#store.registry.nodes()) {
      // A beat in the future means that the server's clock was ahead, and that the node has not beaten since.
      if (Math.abs(now - node.beat) > FORGET_AFTER) await this.#store.registry.removeNode(node.id);
    }
  }

  /** Called last, so that the node is listed until its work is done. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    if (!this.#store.ready) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LEAVE_WITHIN);
    });
    await Promise.race([this.#leave(), late]);
    clearTimeout(timer);
  }

  async #leave(): Promise<void> {
    // A beat under way would put the node back on the list.
    await this.#beating;
    await this.#store.registry.removeNode(this.#settings.nodeId).catch(() => {});
  }
}
