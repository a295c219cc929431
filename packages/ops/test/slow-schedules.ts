import { TaskSchedule } from "@carillon/core/internal";
import { vi } from "vitest";

/** From now on each step of a schedule takes `pace` ms, and nothing else takes time; until `vi.restoreAllMocks`. */
export class SlowSchedules {
  /** Milliseconds that steps have taken so far. */
  worked = 0;

  constructor(pace = 1) {
    vi.spyOn(performance, "now").mockImplementation(() => this.worked);
    const step = () => {
      this.worked += pace;
    };
    for (const name of ["next", "latest"] as const) {
      const does = TaskSchedule.prototype[name];
      vi.spyOn(TaskSchedule.prototype, name).mockImplementation(function (this: TaskSchedule, at) {
        step();
        return does.call(this, at);
      });
    }
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
