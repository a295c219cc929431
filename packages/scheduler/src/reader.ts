import type { CarillonError } from "@carillon/core";
import { redisError, type Store } from "@carillon/store";
import type { Agenda, Part } from "./agenda.js";
import { backoff, LONGEST_BACKOFF } from "./backoff.js";
import type { Settings } from "./options.js";
import type { Replanner } from "./replanner.js";
import type { ServerClock } from "./server-clock.js";

/** After losing a mutex: whoever holds it is usually done by then, in ms. */
const GLANCE_AFTER = 150;

export interface ReaderEvents {
  /** The agenda changed, or a read came to its end. */
  news(): void;
  /** The connection is gone. */
  lost(error: unknown): void;
}

/** Keeps the agenda as Redis has it. Each queue is read by itself: one that cannot be read keeps no other waiting. */
export class Reader {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  readonly #agenda: Agenda;
  readonly #replanner: Replanner;
  readonly #events: ReaderEvents;
  /** Queues to read again, and when: another node was first there. */
  readonly #glances = new Map<string, number>();
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
    replanner: Replanner,
    events: ReaderEvents,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
    this.#agenda = agenda;
    this.#replanner = replanner;
    this.#events = events;
  }

  /** Everything is read again with the next look, also what could not be read. */
  rereadSoon(): void {
    this.#rereadAt = 0;
    this.#troubled.clear();
  }

  /** Everything is read again within `ms`. */
  rereadWithin(ms: number): void {
    this.#rereadAt = Math.min(this.#rereadAt, performance.now() + ms);
  }

  /** A queue in which another node was first is read again shortly. */
  glanceSoon(queue: string): void {
    if (!this.#glances.has(queue)) this.#glances.set(queue, performance.now() + GLANCE_AFTER);
  }

  /** Begins all reads whose time has come. */
  look(): void {
    if (!this.#rereading && performance.now() >= this.#rereadAt) this.#begin(this.#reread());
    for (const queue of take(this.#glances)) this.#begin(this.#glance(queue));
    for (const queue of take(this.#troubled)) {
      this.#troubled.set(queue, Number.POSITIVE_INFINITY);
      this.#begin(this.#readNext([queue]));
    }
  }

  /** When there is something to read: a time of `performance.now()`. */
  get nextAt(): number {
    const reread = this.#rereading ? Number.POSITIVE_INFINITY : this.#rereadAt;
    return Math.min(reread, ...this.#glances.values(), ...this.#troubled.values());
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
        if (!this.#store.link.ready) this.#events.lost(error);
        else this.#say(redisError(error), "what is due could not be read");
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
      // In one burst: the client sends these without waiting for each other.
      const [, queues] = await Promise.all([this.readClock(), this.#store.registry.queues()]);
      this.#failures = 0;
      this.#agenda.keepOnly(queues, mark);
      this.#replanner.look(queues);
      for (const queue of this.#troubled.keys()) if (!queues.includes(queue)) this.#troubled.delete(queue);
      await this.#readNext(queues.filter((queue) => !this.#troubled.has(queue)));
    } catch (error) {
      // In a cluster the list of queues has a server of its own: without it, what was read of the queues still holds.
      this.#failures += 1;
      this.rereadWithin(backoff(this.#failures));
      throw error;
    } finally {
      this.#rereading = false;
    }
  }

  /** Another node was first: has it done what was due? */
  async #glance(queue: string): Promise<void> {
    await this.#readNext([queue]);
    if (this.#troubled.has(queue)) return;
    const left = this.#agenda.releaseDone(queue, this.#clock.now());
    await Promise.all(left.map((part) => this.#holdAsLongAsItsMutex(queue, part)));
  }

  /** Whoever holds it may be dead: its mutex ends when it ends, not a whole time-to-live from here. */
  async #holdAsLongAsItsMutex(queue: string, part: Part): Promise<void> {
    const hold = this.#agenda.holdOf(queue, part);
    const left = await this.#store.mutex.remaining(this.#store.keys.queue(queue).mutex(part));
    // If the hold is another one, this node has had the part meanwhile, and the mutex was its own.
    if (this.#agenda.holdOf(queue, part) === hold) this.#agenda.hold(queue, part, this.#clock.now(), left);
  }

  /** What each queue has next; each is news as soon as it is there. */
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
    const { ready } = this.#store.link;
    for (const queue of failed) {
      // Without a connection all reads fail: that says nothing about this queue.
      if (!ready && !this.#troubled.has(queue)) continue;
      this.#agenda.set(queue, new Map());
      this.#troubled.set(queue, performance.now() + LONGEST_BACKOFF);
    }
    if (!ready) throw reason;
    const coded = redisError(reason);
    this.#say(coded, "queues that cannot be read", { queues: failed.slice(0, 10), count: failed.length });
  }

  #say({ code, message }: CarillonError, what: string, more: object = {}): void {
    if (!this.#stopped) this.#settings.logger.error({ code, error: message, ...more }, what);
  }
}

/** Takes out what has come due. */
function take(times: Map<string, number>): string[] {
  const now = performance.now();
  const due = [...times].filter(([, at]) => at <= now).map(([queue]) => queue);
  for (const queue of due) times.delete(queue);
  return due;
}
