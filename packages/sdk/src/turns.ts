import { setImmediate } from "node:timers/promises";

/** Work without a break, in ms: what others of the process wait for their turn at most. */
const TURN = 20;
/** Work of one call, in ms, without what it waits for. */
const MOST = 5_000;

/** Takes long work in turns, so that timers, jobs and requests of the process go on meanwhile, and no call works for ever. */
export class Turns {
  #since = performance.now();
  #worked = 0;

  /** Begins a turn: what came before was waiting, not work. */
  begin(): void {
    this.#since = performance.now();
  }

  /** To be asked after each step. */
  get isOver(): boolean {
    return performance.now() - this.#since >= TURN;
  }

  /** Ends a turn and lets others have theirs. False: the call has worked as long as it may. */
  async next(): Promise<boolean> {
    this.#worked += performance.now() - this.#since;
    if (this.#worked >= MOST) return false;
    await setImmediate();
    this.begin();
    return true;
  }
}
