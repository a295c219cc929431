import { redisError, type Store } from "@carillon/store";
import { Claimer } from "../claim/claimer.js";
import { type ClaimReport, Committer, emptyReport } from "../claim/committer.js";
import { Decider } from "../claim/decider.js";
import { Ownership } from "../claim/ownership.js";
import type { SchedulerEvents } from "../events.js";
import type { Settings } from "../options.js";
import { keyOf, type Part } from "../part.js";
import type { Agenda } from "./agenda.js";
import type { ServerClock } from "./server-clock.js";

/**
 * Rest of a part in ms after a visit in which this node could do nothing (more). It also lets the reconciler
 * handle runs together that come due within this time.
 */
export const REST = 1_000;
/** Lateness of a shard in ms at which its queue is taken from an owner that claims from other shards. */
const LATE_AT_MOST = 3_000;

interface Around {
  readonly agenda: Agenda;
  readonly learn: (took: number) => void;
  readonly readNext: (queue: string) => Promise<void>;
  readonly emit: <Event extends keyof SchedulerEvents>(
    event: Event,
    ...about: SchedulerEvents[Event]
  ) => void;
}

/** Claims from this node's shards, and from those of an owner that does nothing. */
export class Shards {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  readonly #agenda: Agenda;
  readonly #loop: Around;
  readonly #claimer: Claimer;
  readonly #ownership: Ownership;
  /** Time of the last check of the queues of other nodes, by queue, and its duration in ms. */
  readonly #checked = new Map<string, number>();
  #checkTook = 0;
  /** Shards in which this node could do nothing, and their times then. */
  readonly #stuck = new Map<string, number>();
  /** Lateness of this node at its last visit to its own shards, in ms. */
  #late = 0;

  constructor(store: Store, clock: ServerClock, settings: Settings, loop: Around) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
    this.#agenda = loop.agenda;
    this.#loop = loop;
    this.#ownership = new Ownership(store, clock, settings);
    const decider = new Decider(store, settings);
    const committer = new Committer(store, clock, settings, loop.learn);
    this.#claimer = new Claimer(store, clock, settings, this.#agenda, decider, committer);
  }

  stop(): Promise<void> {
    return this.#ownership.stop();
  }

  /** Time of the visit at a shard that is due at `at`. */
  visitAt(queue: string, part: Part, at: number): number {
    if (this.#ownership.isMine(queue)) return this.#claimer.visitAt(queue, part, at);
    // A Redis that answers late is late for the owner too, and a node that is late itself has no time to help.
    const late = Math.min(this.#late, this.#settings.mutexTtl);
    const wait = this.#ownership.patience(queue) + 4 * this.#checkTook + late;
    const checked = this.#checked.get(queue) ?? at;
    // A check in the future was made before the clock of Redis went back.
    return checked < at + wait || checked > this.#clock.now() ? at + wait : checked + wait;
  }

  /** A visit at shards of a queue: claims from them if they are this node's, or checks whether their owner does its work. */
  async claim(queue: string, shards: readonly Part[], goOn: () => boolean): Promise<void> {
    if (await this.#ownership.learn()) this.#agenda.changed();
    const isMine = this.#ownership.isMine(queue);
    if (isMine) {
      const heads = shards.map((shard) => this.#agenda.head(queue, shard));
      this.#late = Math.max(0, this.#clock.now() - Math.min(...heads));
    } else if (!(await this.#isIdle(queue, shards))) return;
    if (await (isMine ? this.#ownership.hold(queue) : this.#ownership.takeOver(queue)))
      return this.#claimFrom(queue, new Set(shards), goOn);
    for (const part of shards) this.#loop.emit("lost", { queue, part });
    this.#checked.set(queue, this.#clock.now());
  }

  /** Claims what is due now, whoever owns it. */
  async claimNow(queue: string, shards: readonly Part[]): Promise<void> {
    if (shards.length === 0) return;
    try {
      if (await this.#ownership.hold(queue)) await this.#claimFrom(queue, new Set(shards), () => true, 0);
      else for (const part of shards) this.#loop.emit("lost", { queue, part });
    } finally {
      await this.#ownership.giveUp(queue);
    }
  }

  /** Whether the owner of due shards has done nothing since the last check, and nobody else claimed from the queue either. */
  async #isIdle(queue: string, shards: readonly Part[]): Promise<boolean> {
    const before = shards.map((shard) => this.#agenda.head(queue, shard));
    this.#claimer.forget(queue);
    await this.#ownership.giveUp(queue);
    const sent = performance.now();
    const [claimed = 0] = await Promise.all([this.#store.claims.lastLate(queue), this.#loop.readNext(queue)]);
    this.#checkTook = performance.now() - sent;
    const now = this.#clock.now();
    this.#checked.set(queue, now);
    const patience = this.#ownership.patience(queue);
    const works = Math.abs(now - claimed) <= patience + 4 * this.#checkTook;
    return shards.some((shard, i) => {
      const head = this.#agenda.head(queue, shard);
      const late = now - head;
      if (head !== before[i] || late < patience) return false;
      return !works || (late > LATE_AT_MOST && this.#stuck.get(keyOf(queue, shard)) !== head);
    });
  }

  async #claimFrom(
    queue: string,
    shards: ReadonlySet<Part>,
    goOn: () => boolean,
    ahead?: number,
  ): Promise<void> {
    const report = emptyReport();
    const before = new Map([...shards].map((shard) => [shard, this.#agenda.head(queue, shard)]));
    try {
      const left = await this.#claimer.claim(queue, shards, goOn, report, ahead);
      if (left.length === 0) return;
      // Their times may have changed, or nothing can be done about them.
      await this.#loop.readNext(queue);
      for (const shard of left) {
        const head = this.#agenda.head(queue, shard);
        if (head !== before.get(shard)) continue;
        this.#agenda.hold(queue, shard, this.#clock.now(), REST);
        this.#stuck.set(keyOf(queue, shard), head);
      }
    } finally {
      this.#report(queue, report);
    }
  }

  /** Logs and emits the results. */
  #report(queue: string, report: ClaimReport): void {
    const { logger } = this.#settings;
    for (const decided of report.decided) {
      logger.debug(decided, decided.outcome);
      this.#loop.emit("decided", decided);
    }
    for (const { task, status } of report.refused) {
      if (status.startsWith("ERROR")) {
        logger.error({ queue, task, status }, "could not be enqueued");
        this.#loop.emit("failed", { queue, task, code: redisError(status).code });
      } else {
        logger.debug({ queue, task, status }, "claim refused");
        this.#loop.emit("refused", { queue, task, status });
      }
    }
  }
}
