import { hostname } from "node:os";
import type { CarillonError } from "@carillon/core";
import { type NodeInfo, redisError, type Store } from "@carillon/store";
import type { Settings } from "./options.js";
import type { ServerClock } from "./server-clock.js";
import { VERSION } from "./version.js";

/** A node whose last beat is so far from now is taken off the list, in ms. */
const FORGET_AFTER = 3_600_000;

/** Leaving the list of nodes must not hold up a stop for longer than this, in ms. */
const LEAVE_WITHIN = 3_000;

/** Tells the others, every few seconds, that this node is alive. */
export class Heartbeat {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  #timer: NodeJS.Timeout | undefined;
  #started = 0;
  #beats = 0;
  #stopped = false;
  #beating: Promise<void> | undefined;
  /** When the last beat was written, on the monotonic clock. */
  #answered = Number.NEGATIVE_INFINITY;
  /** Why the last beat failed: this Redis takes no writes, say. */
  #trouble: CarillonError | undefined;

  constructor(store: Store, clock: ServerClock, settings: Settings) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
  }

  async start(): Promise<void> {
    this.#started = Math.round(this.#clock.now());
    await this.#beat();
    if (this.#stopped) return;
    this.#timer = setInterval(() => void this.#beat(), this.#settings.heartbeatEvery);
  }

  /** Why beats are not written: a node that cannot write cannot claim either. Undefined: they are. */
  get trouble(): string | undefined {
    if (this.#trouble) return this.#trouble.message;
    // Of a Redis that does not answer at all one hears no error.
    const answers = performance.now() - this.#answered < 2 * this.#settings.heartbeatEvery;
    return answers ? undefined : "Redis does not answer.";
  }

  /** The connection is there again: no need to wait for the next beat to know that all is well. */
  reconnected(): void {
    if (this.#trouble?.code === "REDIS_UNAVAILABLE") void this.#beat();
  }

  /** A beat that fails is followed by another one; what is wrong is said each time. */
  #beat(): Promise<void> {
    // One at a time: a Redis that hangs must not gather them.
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

  /** One beat; now and then also a look for nodes that are long gone. */
  async tick(): Promise<void> {
    await this.#store.registry.beat(this.info());
    this.#beats += 1;
    if (this.#beats % 60 === 1) await this.#forgetTheGone();
  }

  info(): NodeInfo {
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
    };
  }

  async #forgetTheGone(): Promise<void> {
    const now = this.#clock.now();
    for (const node of await this.#store.registry.nodes()) {
      // From the future: the server's clock was ahead, and the node has not beaten since.
      if (Math.abs(now - node.beat) > FORGET_AFTER) await this.#store.registry.removeNode(node.id);
    }
  }

  /** Last of all, so that the node is listed until its work is done. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    if (!this.#store.link.ready) return;
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
