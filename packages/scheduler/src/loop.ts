import type { EventEmitter } from "node:events";
import { SHARDS, shardOf } from "@carillon/core";
import { type Lease, redisError, type Store } from "@carillon/store";
import { Agenda, type Appointment, type Part } from "./agenda.js";
import { Alerter } from "./alerter.js";
import { Backfiller } from "./backfiller.js";
import { backoff, LONGEST_BACKOFF } from "./backoff.js";
import { Claimer } from "./claimer.js";
import type { SchedulerEvents } from "./events.js";
import type { Settings } from "./options.js";
import { Reconciler } from "./reconciler.js";
import { Replanner } from "./replanner.js";
import type { ServerClock } from "./server-clock.js";
import { Timer } from "./timer.js";

/** After losing a mutex: whoever holds it is usually done by then, in ms. */
const GLANCE_AFTER = 150;
/** A shard without progress is left alone this long, in ms; runs are reconciled in lots of this length. */
const REST = 1_000;
/** Shards worked on side by side. */
const SIDE_BY_SIDE = 4;
/** One part's longest turn, in ms: a backlog must not keep what is due elsewhere waiting. */
const TURN = 200;

/** The node's rounds: one timer, armed for the earliest due time; each round looks at all that is due. */
export class Loop {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  readonly #events: EventEmitter<SchedulerEvents>;
  readonly #agenda = new Agenda();
  readonly #claimer: Claimer;
  readonly #reconciler: Reconciler;
  readonly #replanner: Replanner;
  readonly #alerter: Alerter;
  readonly #backfiller: Backfiller;
  readonly #timer = new Timer(() => this.#wakeUp());
  /** Queues to read again, and when: another node was first there. */
  readonly #glances = new Map<string, number>();
  /** Queues that could not be read, and when to try again; infinite while that is under way. */
  readonly #troubled = new Map<string, number>();
  #running = false;
  #round: Promise<void> | undefined;
  #again = false;
  #rereadAt = 0;
  #failures = 0;
  #retryAt = 0;
  #saidHolding = false;

  constructor(store: Store, clock: ServerClock, settings: Settings, events: EventEmitter<SchedulerEvents>) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
    this.#events = events;
    this.#claimer = new Claimer(store, clock, settings);
    this.#reconciler = new Reconciler(store);
    this.#alerter = new Alerter(store, settings);
    this.#backfiller = new Backfiller(store, settings);
    this.#replanner = new Replanner(store, settings);
  }

  start(): void {
    this.#running = true;
    this.rereadSoon();
  }

  /** No new work; resolves when what is under way is done. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#timer.disarm();
    await this.#round;
    await this.#replanner.stop();
  }

  heard(queue: string, part: string, at: number): void {
    this.#agenda.nearer(queue, part, at);
    this.#arm();
  }

  rereadSoon(): void {
    this.#rereadAt = 0;
    this.#wakeUp();
  }

  connectionBack(): void {
    this.#failures = 0;
    this.rereadSoon();
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

  /** The timer fired, or there is news: one round at a time, and another if something came up meanwhile. */
  #wakeUp(): void {
    if (!this.#running) return;
    if (this.#round) {
      this.#again = true;
      return;
    }
    // News is no reason to ask a failing Redis more often.
    if (this.#failures > 0 && performance.now() < this.#retryAt) return this.#arm();
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
      this.#sayHolding();
      this.#failures = 0;
    } catch (error) {
      const coded = redisError(error);
      this.#failures += 1;
      this.#retryAt = performance.now() + backoff(this.#failures);
      this.#rereadAt = 0;
      this.#settings.logger.error({ code: coded.code, failures: this.#failures }, coded.message);
    }
  }

  async readClock(): Promise<void> {
    const sentAt = this.#clock.mark();
    this.#clock.observe(await this.#store.serverTime(), sentAt);
  }

  /** Once for each jump. */
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

  async #reread(): Promise<void> {
    const mark = this.#agenda.mark();
    // Before the reads: whoever asks for another one meanwhile must get it.
    this.#rereadAt = performance.now() + this.#settings.rereadEvery;
    // In one burst: the client sends these without waiting for each other.
    const [, queues] = await Promise.all([this.readClock(), this.#store.registry.queues()]);
    this.#agenda.keepOnly(queues, mark);
    this.#replanner.look(queues);
    for (const queue of this.#troubled.keys()) if (!queues.includes(queue)) this.#troubled.delete(queue);
    await this.#readNext(queues.filter((queue) => !this.#troubled.has(queue)));
  }

  /** Queues in which another node was first: has it done what was due? */
  async #glance(): Promise<void> {
    const tryAgain = take(this.#troubled);
    for (const queue of tryAgain) this.#troubled.set(queue, Number.POSITIVE_INFINITY);
    // Beside the round: these may take many seconds to fail once more.
    if (tryAgain.length > 0) void this.#readNext(tryAgain, true).then(() => this.#arm());
    const due = take(this.#glances);
    await this.#readNext(due);
    for (const queue of due) {
      for (const part of this.#agenda.releaseDone(queue, this.#clock.now())) {
        // Whoever holds it may be dead: its mutex ends when it ends, not a whole time-to-live from here.
        const left = await this.#store.mutex.remaining(this.#store.keys.queue(queue).mutex(part));
        this.#agenda.hold(queue, part, this.#clock.now(), left);
      }
    }
  }

  /** What each queue has next. One that cannot be read (its slot is down, say) must not keep the others waiting. */
  async #readNext(queues: readonly string[], beside = false): Promise<void> {
    const mark = this.#agenda.mark();
    const failed: string[] = [];
    let reason: unknown;
    await Promise.all(
      queues.map(async (queue) => {
        try {
          this.#agenda.set(queue, await this.#store.claims.next(queue), mark);
          this.#troubled.delete(queue);
        } catch (error) {
          failed.push(queue);
          reason = error;
        }
      }),
    );
    if (failed.length === 0) return;
    if (!beside && !this.#store.link.ready) throw reason;
    for (const queue of failed) {
      this.#agenda.set(queue, new Map());
      this.#troubled.set(queue, performance.now() + LONGEST_BACKOFF);
    }
    if (!this.#running) return;
    const coded = redisError(reason);
    this.#settings.logger.error(
      { code: coded.code, queues: failed.slice(0, 10), count: failed.length },
      `queues that cannot be read: ${coded.message}`,
    );
  }

  async #workAll(appointments: readonly Appointment[]): Promise<void> {
    // Nodes begin at different shards, so that a burst finds each of them at another one.
    const first = shardOf(this.#settings.nodeId);
    const rank = ({ part }: Appointment) =>
      /^\d$/.test(part) ? (Number(part) + SHARDS - first) % SHARDS : SHARDS;
    const open = [...appointments].sort((a, b) => rank(a) - rank(b));
    const worker = async () => {
      for (let next = open.shift(); next && this.#running; next = open.shift()) await this.#tryToWork(next);
    };
    // All of them, also when one fails: a round is over when nothing of it is under way.
    const ends = await Promise.allSettled(Array.from({ length: SIDE_BY_SIDE }, worker));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  /** What fails in one part is that part's matter, as long as there is a connection. */
  async #tryToWork(appointment: Appointment): Promise<void> {
    const { queue, part } = appointment;
    const until = performance.now() + TURN;
    try {
      await this.#work(appointment, () => this.#running && performance.now() < until);
    } catch (error) {
      if (!this.#store.link.ready) throw error;
      const coded = redisError(error);
      this.#agenda.hold(queue, part, this.#clock.now(), LONGEST_BACKOFF);
      this.#settings.logger.error({ code: coded.code, queue, part }, coded.message);
    }
  }

  async #work({ queue, part }: Appointment, goOn: () => boolean): Promise<void> {
    const { mutexTtl } = this.#settings;
    const mutexKey = this.#store.keys.queue(queue).mutex(part);
    const lease = await this.#store.mutex.take(mutexKey, mutexTtl);
    if (!lease) return this.#lost(queue, part);
    this.#agenda.release(queue, part);
    let rest = true;
    try {
      rest = await this.#workOn(queue, part, lease, goOn);
    } finally {
      const mark = this.#agenda.mark();
      // Sent together with the read that re-arms.
      const [, parts] = await Promise.all([lease.release(), this.#store.claims.next(queue)]);
      this.#agenda.set(queue, parts, mark);
      if (rest) this.#agenda.hold(queue, part, this.#clock.now(), REST);
    }
  }

  /** @returns whether the part is to be left alone for a while */
  async #workOn(queue: string, part: Part, lease: Lease, goOn: () => boolean): Promise<boolean> {
    switch (part) {
      case "r":
        return this.#reconcile(queue, goOn);
      case "a":
        return !(await this.#alerter.tell(queue, goOn));
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
      this.#events.emit("decided", decided);
    }
    for (const { task, status } of report.refused) {
      if (status.startsWith("ERROR")) logger.error({ queue, task, status }, "could not be enqueued");
      else logger.debug({ queue, task, status }, "claim refused");
      this.#events.emit("refused", { queue, task, status });
    }
    return !report.progress;
  }

  /** @returns whether all was looked at: what comes due within the next moment is then taken together */
  async #reconcile(queue: string, goOn: () => boolean): Promise<boolean> {
    const { seen, more } = await this.#reconciler.reconcile(queue, goOn);
    for (const one of seen) {
      this.#settings.logger.debug(one, "reconciled");
      this.#events.emit("reconciled", one);
    }
    return !more;
  }

  /** Someone is on it. A glance shortly after shows whether it is done; otherwise its time-to-live must pass. */
  #lost(queue: string, part: string): void {
    this.#events.emit("lost", { queue, part });
    this.#agenda.hold(queue, part, this.#clock.now(), this.#settings.mutexTtl);
    if (!this.#glances.has(queue)) this.#glances.set(queue, performance.now() + GLANCE_AFTER);
  }

  #arm(): void {
    if (!this.#running) return;
    const now = performance.now();
    if (this.#failures > 0) return this.#timer.arm(this.#retryAt - now);
    const { holding, confirmIn } = this.#clock;
    // Whichever answer raised the doubt, the next read is the one that may end it.
    if (holding) this.#rereadAt = Math.min(this.#rereadAt, now + confirmIn + 10);
    const server = this.#clock.now();
    const earliest = holding ? undefined : this.#agenda.earliest(server);
    let wait = this.#rereadAt - now;
    for (const at of [...this.#glances.values(), ...this.#troubled.values()]) wait = Math.min(wait, at - now);
    if (earliest !== undefined) wait = Math.min(wait, earliest - server);
    this.#timer.arm(wait);
  }
}

/** Takes out what has come due. */
function take(times: Map<string, number>): string[] {
  const now = performance.now();
  const due = [...times].filter(([, at]) => at <= now).map(([queue]) => queue);
  for (const queue of due) times.delete(queue);
  return due;
}
