import type { EventEmitter } from "node:events";
import { failsForAll, type Lease, PARTS, redisError, type Store } from "@carillon/store";
import { Alerter } from "../alerts/alerter.js";
import { emit, type SchedulerEvents } from "../events.js";
import type { Settings } from "../options.js";
import { type Appointment, isShard, type Part } from "../part.js";
import { Backfiller } from "../upkeep/backfiller.js";
import { Reconciler } from "../upkeep/reconciler.js";
import { Repairs } from "../upkeep/repairs.js";
import { Agenda } from "./agenda.js";
import { backoff, LONGEST_BACKOFF } from "./backoff.js";
import { Reader } from "./reader.js";
import { Round } from "./round.js";
import type { ServerClock } from "./server-clock.js";
import { REST, Shards } from "./shards.js";
import { Slots } from "./slots.js";
import { Timer } from "./timer.js";

/** Longest visit of one part, in ms: a backlog must not delay other parts that are due. */
const VISIT = 200;
/** Time in ms after which a part that another node has is tried again. */
const TRY_AGAIN = 200;

/**
 * One timer, armed for the earliest time at which anything must be done: a part of a queue is due, or due times must be read
 * again. Parts are worked on concurrently, in rounds: each part that is due is visited before any is visited again.
 */
export class Loop {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  readonly #events: EventEmitter<SchedulerEvents>;
  readonly #agenda: Agenda;
  readonly #slots = new Slots();
  readonly #round: Round;
  readonly #reader: Reader;
  readonly #shards: Shards;
  readonly #reconciler: Reconciler;
  readonly #repairs: Repairs;
  readonly #alerter: Alerter;
  readonly #backfiller: Backfiller;
  readonly #timer = new Timer(() => this.#wakeUp());
  /** Time at which the timer fires, as of `performance.now()`. */
  #armedFor = Number.POSITIVE_INFINITY;
  #running = false;
  #waking = false;
  #failures = 0;
  #retryAt = 0;
  #reportedHolding = false;
  #complainAt = 0;

  constructor(store: Store, clock: ServerClock, settings: Settings, events: EventEmitter<SchedulerEvents>) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
    this.#events = events;
    this.#agenda = new Agenda((queue, part, at) =>
      isShard(part) ? this.#shards.visitAt(queue, part, at) : at,
    );
    this.#round = new Round(this.#agenda, this.#slots);
    this.#shards = new Shards(store, clock, settings, {
      agenda: this.#agenda,
      learn: (took) => this.#slots.learn(took),
      readNext: (queue) => this.#readNext(queue),
      emit: (event, ...about) => this.#emit(event, ...about),
    });
    this.#reconciler = new Reconciler(store);
    this.#alerter = new Alerter(store, settings);
    this.#backfiller = new Backfiller(store, settings);
    this.#repairs = new Repairs(store, settings);
    this.#reader = new Reader(store, clock, settings, this.#agenda, this.#repairs, {
      news: () => this.#wakeUpSoon(),
      lost: (error) => this.#fail(error),
      unreadable: (queue, code) => this.#emit("failed", { queue, code }),
    });
  }

  start(): void {
    this.#running = true;
    this.rereadSoon();
  }

  /** Accepts no new work, and resolves when the work in progress is done. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#timer.disarm();
    await Promise.all([this.#slots.idle(), this.#reader.stop()]);
    await this.#shards.stop();
    await this.#repairs.stop();
  }

  received(queue: string, part: string, at: number): void {
    this.#agenda.nearer(queue, part, at);
    if (this.#comesFirst({ queue, part })) this.#arm();
  }

  /** Whether the timer is armed too late. Saves `#arm`, which reads the whole agenda, for most messages. */
  #comesFirst(one: Pick<Appointment, "queue" | "part">): boolean {
    const now = this.#clock.now();
    const at = performance.now() + this.#agenda.at(one, now) - now;
    return at < this.#armedFor && this.#slots.free(one);
  }

  rereadSoon(): void {
    this.#reader.rereadSoon();
    this.#wakeUpSoon();
  }

  connectionBack(): void {
    this.#failures = 0;
    this.#retryAt = 0;
    this.rereadSoon();
  }

  readClock(): Promise<void> {
    return this.#reader.readClock();
  }

  /** Does everything that is due, once, regardless of the agenda. */
  async tick(): Promise<void> {
    const queues = await this.#store.registry.queues();
    await this.#repairs.check(queues);
    for (const queue of queues) {
      await this.#readNext(queue);
      const parts = this.#agenda.partsOf(queue);
      await this.#shards.claimNow(queue, parts.filter(isShard));
      for (const part of parts) if (!isShard(part)) await this.#workOn(queue, part, () => true);
    }
  }

  /** Calls within one event-loop turn cause one wake-up. */
  #wakeUpSoon(): void {
    if (this.#waking) return;
    this.#waking = true;
    setImmediate(() => {
      this.#waking = false;
      this.#wakeUp();
    });
  }

  #wakeUp(): void {
    if (!this.#running) return;
    // News must not make it call a failing Redis more often.
    if (performance.now() >= this.#retryAt) {
      this.#reader.read();
      this.#beginWork();
    }
    this.#reportHolding();
    this.#arm();
  }

  #beginWork(): void {
    if (this.#clock.holding) return;
    const now = this.#clock.now();
    while (!this.#slots.full) {
      const visit = this.#round.next(now);
      if (!visit) return;
      const end = this.#tryToWork(visit);
      for (const one of visit) this.#slots.start(one, () => end);
    }
  }

  /** Never throws. As long as there is a connection, a failure delays only the part in which it occurs. */
  async #tryToWork(visit: readonly Appointment[]): Promise<void> {
    const [{ queue, part }] = visit as [Appointment];
    const until = performance.now() + VISIT;
    const parts = visit.map((one) => one.part);
    try {
      const goOn = () => this.#running && performance.now() < until;
      if (isShard(part)) await this.#shards.claim(queue, parts, goOn);
      else await this.#workOn(queue, part, goOn);
    } catch (error) {
      const { code, message } = redisError(error);
      if (isShard(part)) this.#emit("failed", { queue, code });
      if (!this.#store.ready) return this.#fail(error);
      // Try each shard separately, to find the one that fails.
      if (parts.length > 1) return this.#round.apart(queue);
      this.#agenda.hold(queue, part, this.#clock.now(), LONGEST_BACKOFF);
      if (failsForAll(error) && !this.#mayComplain()) return;
      this.#settings.logger.error(
        { code, queue, part, error: message },
        "could not process a part of a queue",
      );
    } finally {
      this.#agenda.changed(queue);
      this.#wakeUpSoon();
    }
  }

  /** A Redis that refuses one part refuses most: one log line for all of them is enough. */
  #mayComplain(): boolean {
    const now = performance.now();
    if (now < this.#complainAt) return false;
    this.#complainAt = now + LONGEST_BACKOFF;
    return true;
  }

  /** When a connection is lost, many calls fail. Until the next try they count as one failure. */
  #fail(error: unknown): void {
    if (performance.now() < this.#retryAt) return;
    const { code, message } = redisError(error);
    this.#failures += 1;
    this.#retryAt = performance.now() + backoff(this.#failures);
    this.#reader.rereadSoon();
    this.#settings.logger.error(
      { code, failures: this.#failures, error: message },
      "Redis cannot be reached",
    );
  }

  /** Logs it once for each jump of the clock. */
  #reportHolding(): void {
    const { holding, confirmIn } = this.#clock;
    if (holding && !this.#reportedHolding) {
      this.#settings.logger.error(
        { confirmIn },
        "the Redis clock jumped forward; claims are held until a second read agrees",
      );
    }
    this.#reportedHolding = holding;
  }

  /** Works on a part that is due, and is not a shard. */
  async #workOn(queue: string, part: Part, goOn: () => boolean): Promise<void> {
    if (part === PARTS.alerts && (await this.#alerter.leaves(this.#clock.now())))
      return this.#leaveAlerts(queue);
    const lease = await this.#store.lease(queue, part, this.#settings.mutexTtl);
    if (!lease) return this.#lost(queue, part);
    this.#agenda.release(queue, part);
    let rest = true;
    try {
      rest = await this.#workWith(queue, part, lease, goOn);
    } finally {
      // Both in one round trip.
      await Promise.all([lease.release(), this.#readNext(queue)]);
      if (rest) this.#agenda.hold(queue, part, this.#clock.now(), REST);
    }
  }

  /** No early re-read: alerts may have no worker for long, and a part without a mutex would become due at once. */
  async #leaveAlerts(queue: string): Promise<void> {
    await this.#readNext(queue);
    this.#agenda.hold(queue, PARTS.alerts, this.#clock.now(), REST);
  }

  /** Reads when the parts of a queue are due next. */
  async #readNext(queue: string): Promise<void> {
    const mark = this.#agenda.mark();
    this.#agenda.set(queue, await this.#store.claims.next(queue), mark);
  }

  /** @returns whether the part rests for a while */
  async #workWith(queue: string, part: Part, lease: Lease, goOn: () => boolean): Promise<boolean> {
    switch (part) {
      case PARTS.runs:
        return this.#reconcile(queue, goOn);
      case PARTS.alerts:
        return !(await this.#alerter.deliver(queue, lease, goOn));
      case PARTS.digests:
        return !(await this.#alerter.sendDigests(goOn));
      case PARTS.backfills:
        return this.#backfiller.work(queue, goOn);
      case PARTS.expected:
        return !(await this.#alerter.missed(queue, goOn));
      default:
        // A part that this version does not know belongs to newer nodes.
        return true;
    }
  }

  /** @returns whether nothing is left: the part then rests, so that tasks that come due meanwhile form one batch */
  async #reconcile(queue: string, goOn: () => boolean): Promise<boolean> {
    const { seen, more } = await this.#reconciler.reconcile(queue, goOn);
    for (const one of seen) {
      this.#settings.logger.debug(one, "reconciled");
      this.#emit("reconciled", one);
    }
    return !more;
  }

  /** Another node has the mutex. */
  #lost(queue: string, part: string): void {
    this.#emit("lost", { queue, part });
    this.#agenda.hold(queue, part, this.#clock.now(), TRY_AGAIN);
  }

  #emit<Event extends keyof SchedulerEvents>(event: Event, ...about: SchedulerEvents[Event]): void {
    emit(this.#events, this.#settings.logger, event, ...about);
  }

  #arm(): void {
    if (!this.#running) return;
    const now = performance.now();
    if (now < this.#retryAt) return this.#armFor(this.#retryAt, now);
    const { holding, confirmIn } = this.#clock;
    // The jump may have been noticed in the answer to a claim; only a read that comes late enough can confirm it.
    if (holding) this.#reader.rereadWithin(confirmIn + 10);
    let at = Math.min(this.#reader.nextAt, this.#slots.stuckAt);
    if (!this.#slots.full && !holding) {
      const server = this.#clock.now();
      const earliest = this.#agenda.earliest(server, (one) => this.#slots.free(one));
      if (earliest !== undefined) at = Math.min(at, now + earliest - server);
    }
    this.#armFor(at, now);
  }

  #armFor(at: number, now: number): void {
    this.#armedFor = at;
    this.#timer.arm(at - now);
  }
}
