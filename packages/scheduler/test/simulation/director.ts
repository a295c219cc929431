import { type Actor, ActorTimer, type Park } from "./actor.js";

/** 1 January 2026: the start, on every wall clock without an error. */
export const START = Date.parse("2026-01-01T00:00:00Z");

const immediate = globalThis.setImmediate;
/** Turns of the event loop after which redlock's promises, which are not Node's, have handled an answer. */
export const MUTEX_TURNS = 3;

/**
 * Lets one actor move at a time, and waits until everything that it began rests: parked, waiting for a timer, or done.
 * So the order of events is the order in which the director lets them happen.
 */
export class Director {
  /** Virtual ms since the start: the monotonic clock of all actors that do not run ahead. */
  elapsed = 0;
  /** The actor that moves now. */
  current: Actor | undefined;
  #underWay = 0;
  #rested: (() => void) | undefined;

  /** Counts a promise as work of the current actor. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#underWay += 1;
    const end = () => this.#ended();
    work.then(end, end);
    return work;
  }

  /** Lets an actor move. Resolves when all of its branches rest. */
  async move(actor: Actor, act: () => void, turns = 1): Promise<void> {
    this.current = actor;
    act();
    await this.#rest(turns);
    this.current = undefined;
    // Sorts the branches: their order may depend on the speed of Redis, and the choice of the dice must not.
    const place = ({ point, key }: Park) => `${point} ${key}`;
    actor.parks.sort((a, b) => Number(place(a) > place(b)) - Number(place(a) < place(b)));
  }

  async #rest(turns: number): Promise<void> {
    for (let quiet = 0; quiet < turns; quiet++) {
      await new Promise((resolve) => immediate(resolve));
      if (this.#underWay === 0) continue;
      await new Promise<void>((resolve) => {
        this.#rested = resolve;
      });
      quiet = -1;
    }
  }

  /** Replaces `setImmediate` for the current actor. */
  soon(act: () => void): NodeJS.Immediate {
    this.#underWay += 1;
    return immediate(() => {
      act();
      this.#ended();
    });
  }

  #ended(): void {
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#rested?.();
  }

  /** Parks the actor at this point until it is released. */
  park(actor: Actor, point: string, key = ""): Promise<void> {
    return new Promise((resolve, reject) => {
      actor.parks.push({ point, key, go: resolve, fail: (why) => reject(new Error(why)) });
    });
  }

  /** Replaces `setTimeout` and `setInterval` for the current actor. */
  timer(fire: () => void, ms: number, repeated: boolean): ActorTimer {
    const actor = this.current as Actor;
    const after = Math.max(1, Math.ceil(ms));
    const timer = new ActorTimer(actor, fire, this.elapsed + after, repeated ? after : 0);
    actor.timers.add(timer);
    return timer;
  }

  /** Fires a due timer; one that repeats does not make up for missed times. */
  fire(timer: ActorTimer): Promise<void> {
    if (timer.every > 0) timer.at = this.elapsed + timer.every;
    else timer.actor.timers.delete(timer);
    return this.move(timer.actor, timer.fire);
  }

  /** The monotonic clock of the current actor. */
  get monotonic(): number {
    return this.elapsed + (this.current?.lead ?? 0);
  }

  /** The wall clock of the current actor. */
  get wall(): number {
    return START + this.elapsed + (this.current?.skew ?? 0);
  }
}
