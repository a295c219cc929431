import { TaskSchedule } from "@carillon/core/internal";

/** While in scope, each step of a schedule takes `pace` ms, and nothing else takes time. Spies would keep each of very many calls. */
export class SlowSchedules implements Disposable {
  readonly #former = { next: TaskSchedule.prototype.next, latest: TaskSchedule.prototype.latest };
  readonly #now = performance.now;
  /** Milliseconds that steps have taken so far. */
  worked = 0;

  constructor(pace = 1) {
    const step = () => {
      this.worked += pace;
    };
    const slowly = (does: TaskSchedule["next"]) =>
      function (this: TaskSchedule, at: number) {
        step();
        return does.call(this, at);
      };
    const { next, latest } = this.#former;
    Object.assign(TaskSchedule.prototype, { next: slowly(next), latest: slowly(latest) });
    performance.now = () => this.worked;
  }

  [Symbol.dispose](): void {
    Object.assign(TaskSchedule.prototype, this.#former);
    performance.now = this.#now;
  }

  /** The longest time that other work had to wait for the event loop, in ms. */
  async longestTurn(work: () => Promise<unknown>): Promise<number> {
    let longest = 0;
    let last = this.worked;
    let over = false;
    const look = (): void => {
      longest = Math.max(longest, this.worked - last);
      last = this.worked;
      if (!over) setImmediate(look);
    };
    look();
    try {
      await work();
    } finally {
      over = true;
    }
    look();
    return longest;
  }
}
