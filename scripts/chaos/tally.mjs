// Tally of the jobs that workers received, small however long the run is: for each task the nominal time up to which all were seen,
// those seen beyond it, and the recent runs, to detect a second one for the same time.

export class Tally {
  /** @type {string[]} */
  duplicates = [];
  occurrences = 0;
  #every;
  #remember;
  #tasks = new Map();

  /**
   * @param {number} every time between two nominal times of a task, in ms
   * @param {number} remember how long runs are remembered, in ms
   */
  constructor(every, remember) {
    this.#every = every;
    this.#remember = remember;
  }

  /** Call it when an attempt starts; attempts of one run have its id. */
  started({ queue, task, nominal, run }) {
    const key = `${queue}/${task}`;
    const seen = this.#tasks.get(key) ?? { first: nominal, upTo: undefined, runs: new Map() };
    this.#tasks.set(key, seen);
    const before = seen.runs.get(nominal);
    if (before === run) return;
    if (before !== undefined) this.duplicates.push(`${key}@${nominal}: ${before} and ${run}`);
    this.occurrences += 1;
    seen.runs.set(nominal, run);
    seen.first = Math.min(seen.first, nominal);
  }

  /** Forgets complete and old entries. Called from time to time. */
  tidy() {
    for (const seen of this.#tasks.values()) {
      this.#advance(seen);
      const old = (seen.upTo ?? 0) - this.#remember;
      for (const nominal of seen.runs.keys()) if (nominal < old) seen.runs.delete(nominal);
    }
  }

  #advance(seen) {
    seen.upTo ??= seen.first;
    while (seen.runs.has(seen.upTo + this.#every)) seen.upTo += this.#every;
  }

  /**
   * Nominal times of each task up to its cursor that no worker received.
   * @param {Map<string, number>} cursors by queue and task
   */
  gaps(cursors) {
    const gaps = [];
    for (const [key, cursor] of cursors) {
      const seen = this.#tasks.get(key);
      if (!seen) {
        gaps.push(`${key}: nothing`);
        continue;
      }
      this.#advance(seen);
      for (let at = seen.upTo + this.#every; at <= cursor; at += this.#every) {
        if (!seen.runs.has(at)) gaps.push(`${key}@${at}`);
      }
    }
    return gaps;
  }
}
