import { type Actor, ActorTimer, type Park } from "./actor.js";

/** 1 January 2026: what every wall clock without an error says at the start. */
export const START = Date.parse("2026-01-01T00:00:00Z");

const immediate = globalThis.setImmediate;
/** Turns of the event loop until redlock's promises, which are not Node's, have done all that follows from an answer. */
export const MUTEX_TURNS = 3;

/**
 * Lets one actor move at a time, and waits until all that it began has come to rest: it is parked, or waits for a timer, or is
 * done. So the order of all that happens is the order in which the director lets it happen.
 */
export class Director {
  /** Virtual ms since the start: everybody's monotonic clock. */
  elapsed = 0;
  /** Who moves now. */
  current: Actor | undefined;
  #underWay = 0;
  #rested: (() => void) | undefined;

  /** Waits for this too before the current actor counts as at rest. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#underWay += 1;
    const end = () => this.#ended();
    work.then(end, end);
    return work;
  }

  /** An actor moves. Resolves when all of it has come to rest. */
  async move(actor: Actor, act: () => void, turns = 1): Promise<void> {
    this.current = actor;
    act();
    await this.#rest(turns);
    this.current = undefined;
    // Which of its branches came first may hang on how soon Redis answered: what the dice choose from must not.
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

  /** What `setImmediate` of the current actor is. */
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

  /** The actor stands still here until someone lets it go on. */
  park(actor: Actor, point: string, key = ""): Promise<void> {
    return new Promise((resolve, reject) => {
      actor.parks.push({ point, key, go: resolve, fail: (why) => reject(new Error(why)) });
    });
  }

  /** What `setTimeout` and `setInterval` of the current actor are. */
  timer(fire: () => void, ms: number, repeated: boolean): ActorTimer {
    const actor = this.current as Actor;
    const after = Math.max(1, Math.ceil(ms));
    const timer = new ActorTimer(actor, fire, this.elapsed + after, repeated ? after : 0);
    actor.timers.add(timer);
    return timer;
  }

  /** Fires a timer whose time has come; one that repeats does not make up for what it missed. */
  fire(timer: ActorTimer): Promise<void> {
    if (timer.every > 0) timer.at = this.elapsed + timer.every;
    else timer.actor.timers.delete(timer);
    return this.move(timer.actor, timer.fire);
  }

  /** What the current actor's wall clock says. */
  get wall(): number {
    return START + this.elapsed + (this.current?.skew ?? 0);
  }
}
