import { MAX_TIME } from "./civil.js";
import type { CompiledSchedule } from "./types.js";

/** Fixed rate: `origin + k * interval` for k = 0, 1, 2, …, in ms. */
export class EveryInterval implements CompiledSchedule {
  readonly interval: number;
  readonly origin: number;

  constructor(interval: number, origin: number) {
    this.interval = interval;
    this.origin = origin;
  }

  /** Whether each of its times, from that one's origin on, is a time of another as well. */
  isWithin(other: EveryInterval): boolean {
    return this.interval % other.interval === 0 && (this.origin - other.origin) % other.interval === 0;
  }

  next(after: number): number | undefined {
    const k = Math.max(0, Math.floor((after - this.origin) / this.interval) + 1);
    const time = this.origin + k * this.interval;
    return time <= MAX_TIME ? time : undefined;
  }

  latest(at: number): number | undefined {
    if (!(at >= this.origin)) return undefined;
    const k = Math.floor((Math.min(at, MAX_TIME) - this.origin) / this.interval);
    return this.origin + k * this.interval;
  }
}

/** One time, once. */
export class AtOnce implements CompiledSchedule {
  readonly #time: number;

  constructor(time: number) {
    this.#time = time;
  }

  next(after: number): number | undefined {
    return after < this.#time ? this.#time : undefined;
  }

  latest(at: number): number | undefined {
    return at >= this.#time ? this.#time : undefined;
  }
}
