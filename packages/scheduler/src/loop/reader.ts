import type { CarillonError, ErrorCode } from "@carillon/core";
import { redisError, type Store } from "@carillon/store";
import type { Settings } from "../options.js";
import type { Repairs } from "../upkeep/repairs.js";
import type { Agenda } from "./agenda.js";
import { backoff, LONGEST_BACKOFF } from "./backoff.js";
import type { ServerClock } from "./server-clock.js";

export interface ReaderEvents {
  /** The agenda changed, or a read ended. */
  news(): void;
  /** The connection is lost. */
  lost(error: unknown): void;
  /** The due times of a queue could not be read. */
  unreadable(queue: string, code: ErrorCode): void;
}

/** Keeps the agenda up to date with Redis. Each queue is read separately, so that one that cannot be read delays no other. */
export class Reader {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  readonly #agenda: Agenda;
  readonly #repairs: Repairs;
  readonly #events: ReaderEvents;
  /** Queues that could not be read, and when to try again; infinite while that is under way. */
  readonly #troubled = new Map<string, number>();
  readonly #reads = new Set<Promise<void>>();
  #rereadAt = 0;
  #rereading = false;
  #failures = 0;
  #stopped = false;

  constructor(
    store: Store,
    clock: ServerClock,
    settings: Settings,
    agenda: Agenda,
    repairs: Repairs,
    events: ReaderEvents,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
    this.#agenda = agenda;
    this.#repairs = repairs;
    this.#events = events;
  }

  /** The next `read` reads everything again, including queues that could not be read. */
  rereadSoon(): void {
    this.#rereadAt = 0;
    this.#troubled.clear();
  }

  /** Everything is read again within `ms`. */
  rereadWithin(ms: number): void {
    this.#rereadAt = Math.min(this.#rereadAt, performance.now() + ms);
  }

  /** Begins all reads whose time has come. */
  read(): void {
    if (!this.#rereading && performance.now() >= this.#rereadAt) this.#begin(this.#reread());
    for (const queue of take(this.#troubled)) {
      this.#troubled.set(queue, Number.POSITIVE_INFINITY);
      this.#begin(this.#readNext([queue]));
    }
  }

  /** Time of the next read, as of `performance.now()`. */
  get nextAt(): number {
    const reread = this.#rereading ? Number.POSITIVE_INFINITY : this.#rereadAt;
    return Math.min(reread, ...this.#troubled.values());
  }

  /** Resolves when no read is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#reads);
  }

  async readClock(): Promise<void> {
    const sentAt = this.#clock.mark();
    this.#clock.observe(await this.#store.serverTime(), sentAt);
  }

  #begin(read: Promise<void>): void {
    const end = read
      .catch((error: unknown) => {
        if (!this.#store.ready) this.#events.lost(error);
        else this.#say(redisError(error), "due times could not be read");
      })
      .finally(() => {
        this.#reads.delete(end);
        this.#events.news();
      });
    this.#reads.add(end);
  }

  async #reread(): Promise<void> {
    this.#rereading = true;
    const mark = this.#agenda.mark();
    // Set before the reads: a `rereadSoon` that comes while they are under way must lead to another one.
    this.#rereadAt = performance.now() + this.#settings.rereadEvery;
    try {
      // Pipelined: the client sends these without waiting for each other.
      const [, queues] = await Promise.all([this.readClock(), this.#store.registry.queues()]);
      this.#failures = 0;
      this.#agenda.keepOnly(queues, mark);
      this.#repairs.begin(queues);
      for (const queue of this.#troubled.keys()) if (!queues.includes(queue)) this.#troubled.delete(queue);
      await this.#readNext(queues.filter((queue) => !this.#troubled.has(queue)));
    } catch (error) {
      // In a cluster the list of queues may be on another server: if that one fails, the times read before still hold.
      this.#failures += 1;
      this.rereadWithin(backoff(this.#failures));
      throw error;
    } finally {
      this.#rereading = false;
    }
  }

  /** Reads the next times of these queues, and reports each answer as soon as it arrives. */
  async #readNext(queues: readonly string[]): Promise<void> {
    const mark = this.#agenda.mark();
    const failed: string[] = [];
    let reason: unknown;
    await Promise.all(
      queues.map(async (queue) => {
        try {
          this.#agenda.set(queue, await this.#store.claims.next(queue), mark);
          this.#troubled.delete(queue);
          this.#events.news();
        } catch (error) {
          failed.push(queue);
          reason = error;
        }
      }),
    );
    if (failed.length === 0) return;
    const { ready } = this.#store;
    for (const queue of failed) {
      // Without a connection all reads fail, which does not mean that this queue is unreadable.
      if (!ready && !this.#troubled.has(queue)) continue;
      this.#agenda.set(queue, new Map());
      this.#troubled.set(queue, performance.now() + LONGEST_BACKOFF);
    }
    if (!ready) throw reason;
    const coded = redisError(reason);
    for (const queue of failed) this.#events.unreadable(queue, coded.code);
    this.#say(coded, "queues could not be read", { queues: failed.slice(0, 10), count: failed.length });
  }

  #say({ code, message }: CarillonError, what: string, more: object = {}): void {
    if (!this.#stopped) this.#settings.logger.error({ code, error: message, ...more }, what);
  }
}

/** Removes and returns the keys whose time has come. */
function take(times: Map<string, number>): string[] {
  const now = performance.now();
  const due = [...times].filter(([, at]) => at <= now).map(([queue]) => queue);
  for (const queue of due) times.delete(queue);
  return due;
}
