import type { CarillonError } from "@carillon/core";
import type { Logger } from "./logger.js";
import { redisError } from "./redis/connection.js";
import type { Store } from "./store.js";

/** A member leaves the list if its last beat is further from now than this, in ms. */
const FORGET_AFTER = 3_600_000;

/** Most time that a stop waits to leave the list, in ms. */
const LEAVE_WITHIN = 3_000;

/** Longest wait for the next try after a beat that failed, in ms: until it is written, the member seems dead. */
const TRY_AGAIN = 1_000;

/** Number of beats between two searches for members that are long dead. */
const FORGET_EVERY = 60;

/** One node or worker, and the list that it is on. */
export interface Member {
  readonly id: string;
  readonly instance?: string;
  /** Time between two beats, in ms. */
  readonly every: number;
  /** Writes one beat. Resolves with the time, in UTC ms of Redis time. */
  beat(): Promise<number>;
  list(): Promise<readonly { readonly id: string; readonly instance?: string; readonly beat: number }[]>;
  remove(id: string, instance?: string): Promise<void>;
}

/** Keeps a node or a worker on its list by regular beats, and removes members that are long dead. */
export class Heartbeat {
  readonly #store: Store;
  readonly #logger: Logger;
  readonly #member: Member;
  #timer: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #stopped = false;
  #beats = 0;
  #beating: Promise<void> | undefined;
  /** Time of the last beat that was written, on the monotonic clock; undefined before the first. */
  #answered: number | undefined;
  #failure: CarillonError | undefined;

  constructor(store: Store, logger: Logger, member: Member) {
    this.#store = store;
    this.#logger = logger;
    this.#member = member;
  }

  /** Resolves after the first beat, also if that failed. */
  async start(): Promise<void> {
    await this.beat();
    if (!this.#stopped) this.#timer = setInterval(() => void this.beat(), this.#member.every).unref();
  }

  /** Reason why beats are not written, or undefined if they are: for example, this Redis is read-only. */
  get trouble(): Pick<CarillonError, "code" | "message"> | undefined {
    if (this.#failure) return this.#failure;
    // A Redis that does not answer at all causes no error.
    const answers =
      this.#answered !== undefined && performance.now() - this.#answered < 2 * this.#member.every;
    return answers ? undefined : { code: "REDIS_UNAVAILABLE", message: "Redis does not answer." };
  }

  /** Beats at once. Never rejects: logs the first of several failures, and the next beat tries again. */
  beat(): Promise<void> {
    // One at a time, so that beats do not pile up while Redis hangs.
    this.#beating ??= this.#beatOnce().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  async #beatOnce(): Promise<void> {
    try {
      const now = await this.#member.beat();
      this.#answered = performance.now();
      if (this.#beats % FORGET_EVERY === 0) await this.#forgetTheDead(now);
      this.#beats += 1;
      this.#failure = undefined;
    } catch (error) {
      const failure = redisError(error);
      const details = { code: failure.code, error: failure.message };
      if (!this.#failure) this.#logger.error(details, "the heartbeat failed");
      this.#failure = failure;
      clearTimeout(this.#retry);
      const wait = Math.min(this.#member.every, TRY_AGAIN);
      if (!this.#stopped) this.#retry = setTimeout(() => void this.beat(), wait).unref();
    }
  }

  async #forgetTheDead(now: number): Promise<void> {
    for (const { id, instance, beat } of await this.#member.list()) {
      // A beat in the future means that the server's clock was ahead, and that the member has not beaten since.
      if (Math.abs(now - beat) > FORGET_AFTER) await this.#member.remove(id, instance);
    }
  }

  /** Called last, so that the member is listed until its work is done. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    clearTimeout(this.#retry);
    const listed = this.#beating !== undefined || this.#answered !== undefined;
    if (!listed || !this.#store.ready) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LEAVE_WITHIN);
    });
    await Promise.race([this.#leave(), late]);
    clearTimeout(timer);
  }

  async #leave(): Promise<void> {
    // A beat under way would put the member back on the list.
    await this.#beating;
    const { id, instance } = this.#member;
    await this.#member.remove(id, instance).catch(() => {});
  }
}
