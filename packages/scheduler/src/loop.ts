import type { EventEmitter } from "node:events";
import { SHARDS, shardOf } from "@carillon/core";
import { type Lease, redisError, type Store } from "@carillon/store";
import { Agenda, type Appointment, isShard, type Part } from "./agenda.js";
import { Alerter } from "./alerter.js";
import { Backfiller } from "./backfiller.js";
import { backoff, LONGEST_BACKOFF } from "./backoff.js";
import { Claimer } from "./claimer.js";
import { type SchedulerEvents, tell } from "./events.js";
import { Lookahead } from "./lookahead.js";
import type { Settings } from "./options.js";
import { Reader } from "./reader.js";
import { Reconciler } from "./reconciler.js";
import { Replanner } from "./replanner.js";
import type { ServerClock } from "./server-clock.js";
import { Slots } from "./slots.js";
import { Timer } from "./timer.js";

/**
 * How long a part is left alone in ms after a turn in which there was nothing (more) that this node could do. So the reconciler takes
 * together what comes due within this time.
 */
const REST = 1_000;
/** One part's longest turn, in ms: a backlog must not keep what is due elsewhere waiting. */
const TURN = 200;
/** How long the shards of a burst are left to the node that has prepared them, in ms. A glance (`reader.ts`) comes a little sooner. */
const HEAD_START = 200;

/**
 * One timer, armed for the earliest time at which anything is to be done: a part of a queue is due, or it is time to read what is
 * due. Parts are worked on side by side, in rounds: each that is due has its turn before any has another.
 */
export class Loop {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  readonly #events: EventEmitter<SchedulerEvents>;
  readonly #agenda: Agenda;
  readonly #slots = new Slots();
  readonly #reader: Reader;
  readonly #claimer: Claimer;
  readonly #reconciler: Reconciler;
  readonly #replanner: Replanner;
  readonly #alerter: Alerter;
  readonly #backfiller: Backfiller;
  readonly #lookahead: Lookahead;
  readonly #timer = new Timer(() => this.#wakeUp());
  /** What is left of the round. */
  #round: Appointment[] = [];
  /** What the timer is armed for: a time of `performance.now()`. */
  #armedFor = Number.POSITIVE_INFINITY;
  #running = false;
  #waking = false;
  #failures = 0;
  #retryAt = 0;
  #saidHolding = false;

  constructor(store: Store, clock: ServerClock, settings: Settings, events: EventEmitter<SchedulerEvents>) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
    this.#events = events;
    this.#agenda = new Agenda(store.burst?.shards);
    this.#claimer = new Claimer(store, clock, settings);
    this.#lookahead = new Lookahead(store, clock, settings, this.#agenda, this.#claimer);
    this.#reconciler = new Reconciler(store);
    this.#alerter = new Alerter(store, settings);
    this.#backfiller = new Backfiller(store, settings);
    this.#replanner = new Replanner(store, settings);
    this.#reader = new Reader(store, clock, settings, this.#agenda, this.#replanner, {
      news: () => this.#wakeUpSoon(),
      lost: (error) => this.#fail(error),
    });
  }

  start(): void {
    this.#running = true;
    this.rereadSoon();
  }

  /** No new work; resolves when what is under way is done. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#timer.disarm();
    await Promise.all([this.#slots.idle(), this.#reader.stop(), this.#lookahead.stop()]);
    await this.#replanner.stop();
  }

  heard(queue: string, part: string, at: number): void {
    this.#agenda.nearer(queue, part, at);
    if (this.#comesFirst({ queue, part })) this.#arm();
  }

  /** Whether the timer is armed for too late a time. Asked first, because `#arm` looks at the whole agenda: too much for each message. */
  #comesFirst(one: Pick<Appointment, "queue" | "part">): boolean {
    // A burst is prepared before it is due.
    if (this.#agenda.bursts.has(one.queue)) return true;
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

  /** Everything that is due, once, whatever the agenda says. */
  async tick(): Promise<void> {
    const queues = await this.#store.registry.queues();
    await this.#replanner.check(queues);
    for (const queue of queues) {
      const parts = [...(await this.#store.claims.next(queue)).keys()];
      for (const part of parts) await this.#work({ queue, part, at: 0 }, () => true);
    }
  }

  /** Wakes up once, however often it is called until then. */
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
    // News is no reason to ask a failing Redis more often.
    if (performance.now() >= this.#retryAt) {
      this.#reader.look();
      if (!this.#clock.holding) this.#lookahead.look(this.#clock.now());
      this.#beginWork();
    }
    this.#sayHolding();
    this.#arm();
  }

  #beginWork(): void {
    if (this.#clock.holding) return;
    const now = this.#clock.now();
    while (!this.#slots.full) {
      const next = this.#next(now);
      if (!next) return;
      this.#slots.start(next, () => this.#tryToWork(next));
    }
  }

  /** The next part of this round, or the first of a new one; undefined: nothing is due. */
  #next(now: number): Appointment | undefined {
    for (;;) {
      const next = this.#round.shift() ?? this.#newRound(now);
      // Since the round began another node may have done it, or its queue may hang.
      if (!next || (this.#slots.free(next) && this.#agenda.at(next, now) <= now)) return next;
    }
  }

  /** Everything that is due and may be begun. @returns the first of it */
  #newRound(now: number): Appointment | undefined {
    // Nodes begin at different shards, so that a burst finds each of them at another one.
    const first = shardOf(this.#settings.nodeId);
    const rank = ({ part }: Appointment) =>
      isShard(part) ? (Number(part) + SHARDS - first) % SHARDS : SHARDS;
    const due = this.#agenda.due(now).filter((one) => this.#slots.free(one) && !this.#leave(one));
    this.#round = due.sort((a, b) => rank(a) - rank(b));
    return this.#round.shift();
  }

  /** Whether it is left to another node, which has prepared it. */
  #leave(appointment: Appointment): boolean {
    if (!this.#lookahead.othersBegin(appointment)) return false;
    this.#leaveToOthers(appointment.queue, appointment.part, HEAD_START);
    return true;
  }

  /** What fails in one part is that part's matter, as long as there is a connection. Never throws. */
  async #tryToWork(appointment: Appointment): Promise<void> {
    const { queue, part } = appointment;
    const until = performance.now() + TURN;
    try {
      await this.#work(appointment, () => this.#running && performance.now() < until);
    } catch (error) {
      if (!this.#store.link.ready) return this.#fail(error);
      const { code, message } = redisError(error);
      this.#agenda.hold(queue, part, this.#clock.now(), LONGEST_BACKOFF);
      this.#settings.logger.error({ code, queue, part, error: message }, "a part could not be worked on");
    } finally {
      this.#wakeUpSoon();
    }
  }

  /** When a connection is lost many calls fail: until the next try they all count as one failure. */
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
  #sayHolding(): void {
    const { holding, confirmIn } = this.#clock;
    if (holding && !this.#saidHolding) {
      this.#settings.logger.error(
        { confirmIn },
        "the Redis clock jumped forward; claims are held until a second read agrees",
      );
    }
    this.#saidHolding = holding;
  }

  async #work({ queue, part }: Appointment, goOn: () => boolean): Promise<void> {
    const { mutexTtl } = this.#settings;
    if (part === "a" && (await this.#alerter.leaves(this.#clock.now()))) return this.#leaveAlerts(queue);
    const mutexKey = this.#store.keys.queue(queue).mutex(part);
    const lease = await this.#store.mutex.take(mutexKey, mutexTtl);
    if (!lease) return this.#lost(queue, part);
    this.#agenda.release(queue, part);
    let rest = true;
    try {
      rest = await this.#workOn(queue, part, lease, goOn);
    } finally {
      // Both in one round trip.
      await Promise.all([lease.release(), this.#readNext(queue)]);
      if (rest) this.#agenda.hold(queue, part, this.#clock.now(), REST);
    }
  }

  /** No glance: nobody may be on them for long, and a part that nobody is on comes back at once. */
  async #leaveAlerts(queue: string): Promise<void> {
    await this.#readNext(queue);
    this.#agenda.hold(queue, "a", this.#clock.now(), REST);
  }

  /** When the parts of a queue are due next. */
  async #readNext(queue: string): Promise<void> {
    const mark = this.#agenda.mark();
    this.#agenda.set(queue, await this.#store.claims.next(queue), mark);
  }

  /** @returns whether the part is to be left alone for a while */
  async #workOn(queue: string, part: Part, lease: Lease, goOn: () => boolean): Promise<boolean> {
    switch (part) {
      case "r":
        return this.#reconcile(queue, goOn);
      case "a":
        return !(await this.#alerter.tell(queue, lease, goOn));
      case "b":
        return this.#backfiller.work(queue, goOn);
      case "e":
        return !(await this.#alerter.missed(queue, goOn));
      default:
        // A part that this version does not know is a newer node's.
        if (!/^\d+$/.test(part)) return true;
        return this.#claim(queue, Number(part), lease, goOn);
    }
  }

  /** @returns whether the shard is to be left alone for a while */
  async #claim(queue: string, shard: number, lease: Lease, goOn: () => boolean): Promise<boolean> {
    const report = await this.#claimer.claim(queue, shard, lease, goOn);
    const { logger } = this.#settings;
    for (const decided of report.decided) {
      logger.debug(decided, decided.outcome);
      this.#tell("decided", decided);
    }
    for (const { task, status } of report.refused) {
      if (status.startsWith("ERROR")) logger.error({ queue, task, status }, "could not be enqueued");
      else logger.debug({ queue, task, status }, "claim refused");
      this.#tell("refused", { queue, task, status });
    }
    return !report.progress;
  }

  /** @returns whether all was looked at: what comes due within the next moment is then taken together */
  async #reconcile(queue: string, goOn: () => boolean): Promise<boolean> {
    const { seen, more } = await this.#reconciler.reconcile(queue, goOn);
    for (const one of seen) {
      this.#settings.logger.debug(one, "reconciled");
      this.#tell("reconciled", one);
    }
    return !more;
  }

  /** Another node has the mutex, which ends by itself after its time-to-live. */
  #lost(queue: string, part: string): void {
    this.#tell("lost", { queue, part });
    this.#leaveToOthers(queue, part, this.#settings.mutexTtl);
  }

  /** Others do it. A glance shortly after shows whether it is done; without one it is looked at again after `ms`. */
  #leaveToOthers(queue: string, part: string, ms: number): void {
    this.#agenda.hold(queue, part, this.#clock.now(), ms);
    this.#reader.glanceSoon(queue);
  }

  #tell<Event extends keyof SchedulerEvents>(event: Event, ...about: SchedulerEvents[Event]): void {
    tell(this.#events, this.#settings.logger, event, ...about);
  }

  #arm(): void {
    if (!this.#running) return;
    const now = performance.now();
    if (now < this.#retryAt) return this.#armFor(this.#retryAt, now);
    const { holding, confirmIn } = this.#clock;
    // The doubt may have come with the answer to a claim; only a read that comes late enough ends it.
    if (holding) this.#reader.rereadWithin(confirmIn + 10);
    let at = Math.min(this.#reader.nextAt, this.#slots.stuckAt);
    if (!this.#slots.full && !holding) {
      const server = this.#clock.now();
      const earliest = this.#agenda.earliest(server, (one) => this.#slots.free(one));
      if (earliest !== undefined) at = Math.min(at, now + earliest - server);
      at = Math.min(at, now + this.#lookahead.nextAt(server) - server);
    }
    this.#armFor(at, now);
  }

  #armFor(at: number, now: number): void {
    this.#armedFor = at;
    this.#timer.arm(at - now);
  }
}
