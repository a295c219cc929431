import { MOST_TAKEN } from "../run/turns.js";

/** CPU time in ms within which a worker begins all jobs of a turn: the rest is left to workers that have time. */
const SOON = 25;

/** CPU time of this process, in ms. Unlike a clock, it does not count the time for which others had the CPU. */
const cpuTime = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/**
 * Most jobs that one turn takes, by the CPU that a round of the event loop needs while jobs begin in it: also handlers that
 * use CPU after they have waited delay the next one.
 */
export class Pace {
  most = MOST_TAKEN;
  /** Jobs that began in the round that is measured; undefined: none is. */
  #begun: number | undefined;

  /** Measures from now on, before the handlers of so many jobs begin. */
  begin(jobs: number): void {
    if (this.#begun !== undefined) {
      this.#begun += jobs;
      return;
    }
    this.#begun = jobs;
    const from = cpuTime();
    // Before the next turn: what the handlers used until they first waited.
    process.nextTick(() => this.#learn(cpuTime() - from));
    // The second one comes after all events that were ready.
    setImmediate(() =>
      setImmediate(() => {
        if (!this.#learn(cpuTime() - from)) this.most = Math.min(MOST_TAKEN, 2 * this.most);
        this.#begun = undefined;
      }),
    );
  }

  /** Whether the CPU was in use for too long. */
  #learn(used: number): boolean {
    if (used > SOON) this.most = Math.max(1, Math.floor(((this.#begun ?? 0) * SOON) / used));
    return used > SOON;
  }
}
