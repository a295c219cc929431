import type { EventEmitter } from "node:events";
import { failsForAll, type Lease, PARTS, redisError, type Store } from "@carillon/store";
import { Alerter } from "../alerts/alerter.js";
import { Bursts } from "../burst/bursts.js";
import { Lookahead } from "../burst/lookahead.js";
import { Preparer } from "../burst/preparer.js";
import { Claimer } from "../claim/claimer.js";
import { type ClaimReport, Committer, emptyReport } from "../claim/committer.js";
import { Decider } from "../claim/decider.js";
import { type SchedulerEvents, tell } from "../events.js";
import type { Settings } from "../options.js";
import { type Appointment, isShard, type Part } from "../part.js";
import { Backfiller } from "../upkeep/backfiller.js";
import { Reconciler } from "../upkeep/reconciler.js";
import { Replanner } from "../upkeep/replanner.js";
import { Agenda } from "./agenda.js";
import { backoff, LONGEST_BACKOFF } from "./backoff.js";
import { Reader } from "./reader.js";
import { Round } from "./round.js";
import type { ServerClock } from "./server-clock.js";
import { Slots } from "./slots.js";
import { Timer } from "./timer.js";

/**
 * Rest of a part in ms after a turn in which this node could do nothing (more). It also lets the reconciler
 * handle runs together that come due within this time.
 */
const REST = 1_000;
/** Longest turn of one part, in ms: a backlog must not delay other parts that are due. */
const TURN = 200;
/** Time in ms for which a part is left to the node that has it. `Reader.glanceSoon` reads a little sooner. */
const HEAD_START = 200;

/**
 * One timer, armed for the earliest time at which anything must be done: a part of a queue is due, or due times must be read
 * again. Parts are worked on concurrently, in rounds: each part that is due has a turn before any has a second one.
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
  readonly #claimer: Claimer;
  readonly #bursts: Bursts;
  readonly #preparer: Preparer;
  readonly #reconciler: Reconciler;
  readonly #replanner: Replanner;
  readonly #alerter: Alerter;
  readonly #backfiller: Backfiller;
  readonly #lookahead: Lookahead;
  readonly #timer = new Timer(() => this.#wakeUp());
  /** Time at which the timer fires, as of `performance.now()`. */
  #armedFor = Number.POSITIVE_INFINITY;
  #running = false;
  #waking = false;
  #failures = 0;
  #retryAt = 0;
  #saidHolding = false;
  #complainAt = 0;

  constructor(store: Store, clock: ServerClock, settings: Settings, events: EventEmitter<SchedulerEvents>) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
    this.#events = events;
    this.#bursts = new Bursts(settings.bursts);
    this.#agenda = new Agenda((queue, parts) => this.#bursts.find(queue, parts));
    this.#round = new Round(this.#agenda, this.#slots, settings.nodeId);
    const decider = new Decider(store, settings);
    const committer = new Committer(clock, settings, (roundTrip) => this.#slots.learn(roundTrip));
    this.#claimer = new Claimer(store, clock, settings, decider, committer);
    this.#preparer = new Preparer(store, clock, settings, decider, committer);
    this.#lookahead = new Lookahead(store, clock, settings, this.#bursts, this.#preparer);
    this.#reconciler = new Reconciler(store);
    this.#alerter = new Alerter(store, settings);
    this.#backfiller = new Backfiller(store, settings);
    this.#replanner = new Replanner(store, settings);
    this.#reader = new Reader(store, clock, settings, this.#agenda, this.#replanner, {
      news: () => this.#wakeUpSoon(),
      lost: (error) => this.#fail(error),
      unreadable: (queue, code) => this.#tell("failed", { queue, code }),
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
    await Promise.all([this.#slots.idle(), this.#reader.stop(), this.#lookahead.stop()]);
    await this.#replanner.stop();
  }

  heard(queue: string, part: string, at: number): void {
    this.#agenda.nearer(queue, part, at);
    if (this.#comesFirst({ queue, part })) this.#arm();
  }

  /** Whether the timer is armed too late. Saves `#arm`, which reads the whole agenda, for most messages. */
  #comesFirst(one: Pick<Appointment, "queue" | "part">): boolean {
    // A burst is prepared before it is due.
    if (this.#bursts.has(one.queue)) return true;
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
    await this.#replanner.check(queues);
    for (const queue of queues) {
      const parts = [...(await this.#store.claims.next(queue)).keys()];
      const shards = parts.filter(isShard);
      if (shards.length > 1) await this.#work(queue, shards, () => true);
      for (const part of parts) await this.#work(queue, [part], () => true);
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
      const turn = this.#round.next(now, (one) => this.#leave(one));
      if (!turn) return;
      const end = this.#tryToWork(turn);
      for (const one of turn) this.#slots.start(one, () => end);
    }
  }

  /** Whether the part is left to another node that has prepared it. */
  #leave(appointment: Appointment): boolean {
    if (!this.#lookahead.othersBegin(appointment)) return false;
    this.#leaveToOthers(appointment.queue, appointment.part);
    return true;
  }

  /** Never throws. As long as there is a connection, a failure delays only the part in which it occurs. */
  async #tryToWork(turn: readonly Appointment[]): Promise<void> {
    const [{ queue, part }] = turn as [Appointment];
    const until = performance.now() + TURN;
    const parts = turn.map((one) => one.part);
    try {
      await this.#work(queue, parts, () => this.#running && performance.now() < until);
    } catch (error) {
      const { code, message } = redisError(error);
      if (isShard(part)) this.#tell("failed", { queue, code });
      if (!this.#store.ready) return this.#fail(error);
      // Try each shard separately, to find the one that fails.
      if (parts.length > 1) return this.#round.large(queue);
      this.#agenda.hold(queue, part, this.#clock.now(), LONGEST_BACKOFF);
      if (failsForAll(error) && !this.#mayComplain()) return;
      this.#settings.logger.error(
        { code, queue, part, error: message },
        "could not process a part of a queue",
      );
    } finally {
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

  /** Works on parts of a queue that are due: one, or several shards together. */
  async #work(queue: string, parts: readonly Part[], goOn: () => boolean): Promise<void> {
    if (parts[0] === PARTS.alerts && (await this.#alerter.leaves(this.#clock.now())))
      return this.#leaveAlerts(queue);
    const leases = await this.#take(queue, parts);
    if (leases.size === 0) return;
    let rest = true;
    try {
      rest = await this.#workOn(queue, leases, goOn);
    } finally {
      // All in one round trip.
      await Promise.all([...[...leases.values()].map((lease) => lease.release()), this.#readNext(queue)]);
      if (rest) for (const part of leases.keys()) this.#agenda.hold(queue, part, this.#clock.now(), REST);
    }
  }

  /** Takes the mutexes of these parts that no other node holds. If Redis refuses one, all are released. */
  async #take(queue: string, parts: readonly Part[]): Promise<ReadonlyMap<Part, Lease>> {
    const { mutexTtl } = this.#settings;
    const answers = await Promise.allSettled(parts.map((part) => this.#store.lease(queue, part, mutexTtl)));
    const refused = answers.find(({ status }) => status === "rejected");
    if (refused) {
      await Promise.allSettled(answers.map((one) => one.status === "fulfilled" && one.value?.release()));
      throw (refused as PromiseRejectedResult).reason;
    }
    const leases = new Map<Part, Lease>();
    for (const [i, part] of parts.entries()) {
      const lease = (answers[i] as PromiseFulfilledResult<Lease | undefined>).value;
      if (lease) {
        leases.set(part, lease);
        this.#agenda.release(queue, part);
      } else this.#lost(queue, part);
    }
    return leases;
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

  /** @param leases of one part, or of several shards @returns whether they rest for a while */
  async #workOn(queue: string, leases: ReadonlyMap<Part, Lease>, goOn: () => boolean): Promise<boolean> {
    const [[part, lease]] = [...leases] as [[Part, Lease]];
    switch (part) {
      case PARTS.runs:
        return this.#reconcile(queue, goOn);
      case PARTS.alerts:
        return !(await this.#alerter.tell(queue, lease, goOn));
      case PARTS.backfills:
        return this.#backfiller.work(queue, goOn);
      case PARTS.expected:
        return !(await this.#alerter.missed(queue, goOn));
      default:
        // A part that this version does not know belongs to newer nodes.
        if (!/^\d+$/.test(part)) return true;
        return this.#claim(queue, leases, goOn);
    }
  }

  /** @returns whether the shards rest for a while */
  async #claim(queue: string, leases: ReadonlyMap<Part, Lease>, goOn: () => boolean): Promise<boolean> {
    const report = emptyReport();
    const [[part, lease]] = [...leases] as [[Part, Lease]];
    const together = leases.size > 1;
    if (together || (await this.#preparer.commit(queue, Number(part), lease, goOn, report))) {
      const fits = await this.#claimer.claim(queue, leases, goOn, report);
      // Each shard now has a turn of its own, without a rest.
      if (!fits) this.#round.large(queue);
      report.progress ||= !fits;
    }
    return this.#report(queue, report);
  }

  /** Logs and emits the results. @returns whether the shards rest for a while */
  #report(queue: string, report: ClaimReport): boolean {
    const { logger } = this.#settings;
    for (const decided of report.decided) {
      logger.debug(decided, decided.outcome);
      this.#tell("decided", decided);
    }
    for (const { task, status } of report.refused) {
      if (status.startsWith("ERROR")) {
        logger.error({ queue, task, status }, "could not be enqueued");
        this.#tell("failed", { queue, task, code: redisError(status).code });
      } else {
        logger.debug({ queue, task, status }, "claim refused");
        this.#tell("refused", { queue, task, status });
      }
    }
    return !report.progress;
  }

  /** @returns whether nothing is left: the part then rests, so that tasks that come due meanwhile form one batch */
  async #reconcile(queue: string, goOn: () => boolean): Promise<boolean> {
    const { seen, more } = await this.#reconciler.reconcile(queue, goOn);
    for (const one of seen) {
      this.#settings.logger.debug(one, "reconciled");
      this.#tell("reconciled", one);
    }
    return !more;
  }

  /** Another node has the mutex. */
  #lost(queue: string, part: string): void {
    this.#tell("lost", { queue, part });
    this.#leaveToOthers(queue, part);
  }

  /** Leaves the part to another node. A read shortly after shows whether it is done; otherwise it is tried again. */
  #leaveToOthers(queue: string, part: string): void {
    this.#agenda.hold(queue, part, this.#clock.now(), HEAD_START);
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
    // The jump may have been noticed in the answer to a claim; only a read that comes late enough can confirm it.
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
