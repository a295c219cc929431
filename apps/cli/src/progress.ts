import { duration } from "@carillon/ops/words";
import type { Io } from "./io.js";

/** Shows nothing before the first of these times, in ms, then at most one update in the second. */
const [AFTER, EVERY] = [1_000, 200];

/** Counts on one line of stderr while a call about many runs; only on a terminal. */
export class Progress {
  readonly #now: () => number;
  readonly #begun: number;
  #shown = 0;
  #done = 0;

  constructor(
    private readonly stderr: Io["stderr"],
    private readonly what = "tasks",
    now: () => number = () => performance.now(),
  ) {
    this.#now = now;
    this.#begun = now();
  }

  add(count: number): void {
    this.#done += count;
    const now = this.#now();
    if (!this.stderr.isTTY || now - this.#begun < AFTER || now - this.#shown < EVERY) return;
    this.#shown = now;
    const seconds = Math.round((now - this.#begun) / 1_000);
    this.stderr.write(
      `\r${this.#done.toLocaleString("en")} ${this.what} in ${duration(seconds * 1_000)}\u001b[K`,
    );
  }

  /** Clears the line. */
  end(): void {
    if (this.#shown > 0) this.stderr.write("\r\u001b[K");
    this.#shown = 0;
  }
}
