import { type CarillonError, formatDuration } from "@carillon/core";
import { conflict, invalid } from "@carillon/core/internal";
import type { Scheduler } from "@carillon/scheduler";
import { PARTS, type Store } from "@carillon/store";
import type { Complaints } from "./complaints.js";
import { type Crew, type QueueReading, readQueues } from "./crew.js";
import type { KitClock } from "./kit-clock.js";
import { timeText } from "./moment.js";
import { othersFirst, type Pulse } from "./pulse.js";
import { Actor, type Stage } from "./stage.js";

/** Time between two checks in ms, because BullMQ has no event for some moves, such as a job that delays itself. */
const LOOK = 4;

/** Time in ms for which a node collects runs before it reconciles them. */
const RECONCILE_REST = 1_000;

interface Script {
  readonly at: number;
  readonly act: () => unknown;
}

/** A part that the nodes must check, and when. */
interface Check {
  readonly queue: string;
  readonly part: string;
  readonly at: number;
}

export interface DirectorParts {
  readonly clock: KitClock;
  readonly store: Store;
  readonly stage: Stage;
  readonly crew: Crew;
  readonly pulse: Pulse;
  readonly nodes: readonly Scheduler[];
  /** Real ms without any event after which waiting is given up. */
  readonly patience: number;
  readonly complaints: Complaints;
}

/**
 * Moves virtual time from event to event. At each moment, in this order and again until nothing is left: jobs that
 * workers can take (including delayed ones that are due), events that the test scripted, virtual sleeps that end, jobs of crashed
 * workers, the nodes.
 */
export class Director {
  readonly #p: DirectorParts;
  /** Sorted by time; events of one time in the order given. */
  readonly #scripts: Script[] = [];
  readonly #failures: unknown[] = [];
  /** Due parts in which the nodes could do nothing at this moment. */
  readonly #futile = new Set<string>();
  readonly #reconciled = new Map<string, number>();
  #queues: readonly string[] = [];
  /** The last read value; read again only if something has happened since. */
  #readings: readonly QueueReading[] = [];
  #checks: readonly Check[] = [];
  #happened = true;
  #partsMoved = true;
  #ticks = 0;
  #moving = false;

  constructor(parts: DirectorParts) {
    this.#p = parts;
  }

  script(at: number, act: () => unknown): void {
    const place = this.#scripts.findIndex((other) => other.at > at);
    this.#scripts.splice(place < 0 ? this.#scripts.length : place, 0, { at, act });
  }

  /** Does everything up to and including `target`. @throws errors of scripted events, `CONFLICT` */
  async moveTo(target: number): Promise<void> {
    const { clock, stage, store } = this.#p;
    if (stage.current || this.#moving)
      throw conflict(
        "virtual time is already moving.",
        "Use kit.sleep to wait in handlers and scripted events; elsewhere await each advance.",
      );
    if (target < clock.now)
      throw invalid(
        "time",
        `${timeText(target)} is past.`,
        `It is ${timeText(clock.now)}; virtual time only goes forward.`,
      );
    this.#moving = true;
    // The test may have done anything meanwhile.
    this.#happened = true;
    try {
      for (;;) {
        const next = await this.#moment();
        if (next === undefined || next > target) break;
        await clock.set(store, next);
      }
      await clock.set(store, target);
    } finally {
      this.#moving = false;
    }
  }

  /** Does everything that happens now. Returns the time of the next event. */
  async #moment(): Promise<number | undefined> {
    const { clock, stage, crew } = this.#p;
    this.#futile.clear();
    for (;;) {
      await this.#settle();
      if (this.#startScript()) continue;
      if (stage.wake()) {
        await othersFirst();
        this.#happened = true;
        continue;
      }
      if (await crew.rescue(clock.now)) {
        this.#happened = true;
        continue;
      }
      if (await this.#tick()) continue;
      return this.#next();
    }
  }

  #next(): number | undefined {
    const { clock, stage, crew } = this.#p;
    const times = [
      this.#scripts[0]?.at,
      stage.nextWake,
      crew.nextRescue,
      ...this.#readings.map(({ delayed }) => delayed),
      ...this.#checks.map(({ at }) => at),
    ];
    const future = times.filter((time) => time !== undefined && time > clock.now) as number[];
    return future.length === 0 ? undefined : Math.min(...future);
  }

  #startScript(): boolean {
    const { clock, stage, pulse } = this.#p;
    const script = this.#scripts[0];
    if (!script || script.at > clock.now) return false;
    this.#scripts.shift();
    this.#happened = true;
    const actor = new Actor(`the event scripted for ${timeText(script.at)}`);
    stage
      .perform(actor, async () => void (await script.act()))
      .catch((error: unknown) => this.#failures.push(error))
      .finally(() => pulse.beat());
    stage.enter(actor);
    return true;
  }

  /** Lets workers take all available jobs, and all actors act, one after the other. */
  async #settle(): Promise<void> {
    const { stage, clock } = this.#p;
    const promoted = ({ delayed }: QueueReading) => delayed !== undefined && delayed <= clock.now;
    if (!this.#happened && !this.#readings.some(promoted)) return;
    for (;;) {
      this.#readings = await this.calm();
      if (this.#failures.length > 0) throw this.#failures.shift();
      const first = this.#readings
        .flatMap(({ queue, active }) => active.map((id) => stage.of(queue, id)))
        .find((actor) => actor?.state === "waiting");
      const next = first ?? stage.waiting[0];
      if (!next) break;
      stage.enter(next);
    }
    this.#happened = false;
    this.#partsMoved = true;
  }

  /** Resolves when nothing is in progress: each actor has ended or sleeps, and BullMQ has nothing left to do. */
  async calm(): Promise<QueueReading[]> {
    const { stage, crew, store, pulse, patience } = this.#p;
    let beats = pulse.count;
    let since = performance.now();
    for (;;) {
      const count = pulse.count;
      if (count !== beats) since = performance.now();
      beats = count;
      let unrest = stage.acting.map(({ label }) => `${label} has not come to an end or to a kit.sleep`);
      if (unrest.length === 0) {
        const readings = await readQueues(store, crew.queues.sort());
        unrest = await this.#unrest(readings);
        // A message from Redis, such as a cancel, has arrived by now, but may not have been read.
        if (unrest.length === 0) await othersFirst();
        if (unrest.length === 0 && stage.acting.length === 0 && pulse.count === count) return readings;
      }
      if (performance.now() - since > patience) throw this.#stuck(unrest);
      await pulse.after(count, LOOK);
    }
  }

  async #unrest(readings: readonly QueueReading[]): Promise<string[]> {
    const { stage, crew, clock } = this.#p;
    const unrest: string[] = [];
    for (const { queue, ready, active, delayed } of readings) {
      const strays = active.filter((id) => !stage.of(queue, id) && !crew.isOrphan(queue, id));
      for (const id of strays)
        unrest.push(`job ${id} of queue ${queue} is active, but not with a worker of this kit`);
      const free = crew.free(queue);
      if (free.length === 0) continue;
      if (ready > 0) unrest.push(`queue ${queue} has ${ready} jobs that its workers should take`);
      if (delayed === undefined || delayed > clock.now) continue;
      unrest.push(`queue ${queue} has a delayed job that is due`);
      await free[0]?.rouse();
    }
    return unrest;
  }

  #stuck(unrest: readonly string[]): CarillonError {
    const { clock, patience, complaints } = this.#p;
    const what = `virtual time stands still at ${timeText(clock.now)}; for ${formatDuration(patience)} of real time:`;
    return conflict(
      `${what}\n${unrest.map((line) => `- ${line}`).join("\n")}\n${complaints}`,
      "Handlers must wait with kit.sleep, not with timers; real work may take as long as `patience`.",
    );
  }

  async #readChecks(): Promise<Check[]> {
    const { store } = this.#p;
    const read = async (queue: string): Promise<Check[]> =>
      [...(await store.claims.next(queue))].map(([part, at]) => ({
        queue,
        part,
        at:
          part === PARTS.runs
            ? Math.max(at, (this.#reconciled.get(queue) ?? -RECONCILE_REST) + RECONCILE_REST)
            : at,
      }));
    // Pipelined; new queues are read afterwards.
    const known = this.#queues;
    const [queues, ...parts] = await Promise.all([store.registry.queues(), ...known.map(read)]);
    this.#queues = queues;
    const added = queues.filter((queue) => !known.includes(queue));
    return [...parts, ...(await Promise.all(added.map(read)))].flat();
  }

  /** Lets each node work on its due parts, starting with another one each time. Returns whether anything was due. */
  async #tick(): Promise<boolean> {
    const { clock, nodes } = this.#p;
    if (this.#partsMoved) this.#checks = await this.#readChecks();
    this.#partsMoved = false;
    const due = this.#checks.filter((part) => part.at <= clock.now && !this.#futile.has(nameOf(part)));
    if (due.length === 0) return false;
    for (const queue of this.#queues) this.#reconciled.set(queue, clock.now);
    this.#ticks += 1;
    let done = 0;
    for (let i = 0; i < nodes.length; i++) {
      const { decided, reconciled } = await (nodes[(this.#ticks + i) % nodes.length] as Scheduler).tick();
      done += decided.length + reconciled.length;
    }
    const before = this.#checks.map(nameOf).join();
    this.#checks = await this.#readChecks();
    if (done > 0 || this.#checks.map(nameOf).join() !== before) this.#happened = true;
    // Another try would have the same result.
    else for (const part of due) this.#futile.add(nameOf(part));
    return true;
  }
}

function nameOf({ queue, part, at }: Check): string {
  return `${queue} ${part} ${at}`;
}
