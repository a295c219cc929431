import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import type { Pulse } from "./pulse.js";

/** A unit of activity in virtual time: the processing of one job, or a scripted event. */
export class Actor {
  /** `waiting` for its turn, `acting`, `gone` (ended), or `frozen` if its worker crashed. */
  state: "waiting" | "acting" | "gone" | "frozen" = "waiting";
  /** Number of its virtual sleeps and other waits. */
  sleeps = 0;
  /** Ends its wait. */
  enter: () => void = () => {};

  /**
   * @param label for messages
   * @param job queue and id of its job, if it has one
   */
  constructor(
    readonly label: string,
    readonly job?: { readonly queue: string; readonly id: string },
  ) {}
}

interface Sleeper {
  readonly at: number;
  readonly actor: Actor | undefined;
  readonly end: (error?: unknown) => void;
}

/**
 * The actor whose code runs, and its stage. One storage for all stages: Node copies every storage that was ever used
 * to each new promise, which would make each test of a process slower than the one before.
 */
const performing = new AsyncLocalStorage<{ readonly stage: Stage; readonly actor: Actor }>();

/**
 * Controls which actors act and which sleep. Actors take turns, in an order that the caller decides: one acts until it ends or
 * sleeps, then the next. So two runs of a test see the same order of events, however long Redis takes for its answers.
 */
export class Stage {
  readonly #now: () => number;
  readonly #actors = new Set<Actor>();
  /** Sleeps and timers, in the order in which they began. */
  readonly #sleepers = new Set<Sleeper>();

  constructor(
    private readonly pulse: Pulse,
    now: () => number,
  ) {
    this.#now = now;
  }

  /** The actor whose code calls this. */
  get current(): Actor | undefined {
    const performance = performing.getStore();
    return performance?.stage === this ? performance.actor : undefined;
  }

  /** Actors that have neither ended nor sleep, except the one that calls this. */
  get acting(): Actor[] {
    const asking = this.current;
    return [...this.#actors].filter(
      (actor) => actor !== asking && actor.state === "acting" && actor.sleeps === 0,
    );
  }

  get waiting(): Actor[] {
    return [...this.#actors].filter(({ state }) => state === "waiting");
  }

  of(queue: string, id: string): Actor | undefined {
    for (const actor of this.#actors) if (actor.job?.id === id && actor.job.queue === queue) return actor;
    return undefined;
  }

  /** Waits for the actor's turn, then lets it act. */
  async perform<T>(actor: Actor, act: () => Promise<T> | T): Promise<T> {
    this.#actors.add(actor);
    const turn = new Promise<void>((resolve) => {
      actor.enter = resolve;
    });
    this.pulse.beat();
    await turn;
    try {
      return await performing.run({ stage: this, actor }, act);
    } finally {
      if (actor.state === "acting") actor.state = "gone";
      this.#actors.delete(actor);
    }
  }

  enter(actor: Actor): void {
    actor.state = "acting";
    actor.enter();
  }

  /** Stops these actors for ever, as if their process had been killed. */
  freeze(actors: Iterable<Actor>): void {
    for (const actor of actors) {
      actor.state = "frozen";
      this.#actors.delete(actor);
      for (const sleeper of this.#sleepers) if (sleeper.actor === actor) this.#sleepers.delete(sleeper);
    }
  }

  /** Resolves when virtual time reaches `at`; rejects with the signal's reason when it is aborted. */
  sleep(at: number, signal?: AbortSignal): Promise<void> {
    const actor = this.current;
    const slept = new Promise<void>((resolve, reject) => {
      if (actor?.state === "frozen") return;
      if (signal?.aborted) return reject(signal.reason);
      if (at <= this.#now()) return resolve();
      const abort = () => sleeper.end(signal?.reason ?? new Error("This sleep was aborted."));
      const sleeper: Sleeper = {
        at,
        actor,
        end: (error) => {
          if (!this.#sleepers.delete(sleeper)) return;
          signal?.removeEventListener("abort", abort);
          if (actor) actor.sleeps -= 1;
          if (error === undefined) resolve();
          else reject(error);
          this.pulse.beat();
        },
      };
      signal?.addEventListener("abort", abort);
      this.#sleepers.add(sleeper);
      if (actor) actor.sleeps += 1;
      this.pulse.beat();
    });
    // A rejection that nobody awaits, for example after a race, must not end the process.
    slept.catch(() => {});
    return slept;
  }

  /** Counts as a sleep for as long as `wait` takes, because another actor will end it. */
  async idle<T>(wait: Promise<T>): Promise<T> {
    const actor = this.current;
    if (!actor) return wait;
    actor.sleeps += 1;
    this.pulse.beat();
    try {
      return await wait;
    } finally {
      actor.sleeps -= 1;
      this.pulse.beat();
    }
  }

  /** Calls `act` when this much virtual time has passed; returns a function that cancels it. Does not count as a sleep. */
  after(ms: number, act: () => void): () => void {
    const run = AsyncResource.bind(act);
    const timer: Sleeper = {
      at: this.#now() + Math.max(0, Math.ceil(ms)),
      actor: this.current,
      end: (error) => {
        if (this.#sleepers.delete(timer) && error === undefined) run();
      },
    };
    this.#sleepers.add(timer);
    return () => void this.#sleepers.delete(timer);
  }

  get nextWake(): number | undefined {
    return this.#earliest()?.at;
  }

  /** Wakes the sleeper whose time came first; returns false if there is none. */
  wake(): boolean {
    const sleeper = this.#earliest();
    if (!sleeper || sleeper.at > this.#now()) return false;
    sleeper.end();
    return true;
  }

  #earliest(): Sleeper | undefined {
    let earliest: Sleeper | undefined;
    for (const sleeper of this.#sleepers) if (!earliest || sleeper.at < earliest.at) earliest = sleeper;
    return earliest;
  }

  /** Ends all sleeps, so that `finally` blocks run. */
  clear(error: Error): void {
    for (const sleeper of [...this.#sleepers]) sleeper.end(error);
    this.#actors.clear();
  }
}
