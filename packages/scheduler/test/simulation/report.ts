import type { Finding } from "./controls.js";
import type { Coverage } from "./coverage.js";
import type { History } from "./history.js";

/** The report of many histories. */
export class Report {
  readonly #loud: boolean;
  #started = 0;
  #histories = 0;
  #steps = 0;
  #occurrences = 0;

  /** @param loud false: prints only failures */
  constructor(loud: boolean) {
    this.#loud = loud;
  }

  begin(): void {
    this.#started = performance.now();
  }

  add({ trace, occurrences }: History): void {
    this.#histories += 1;
    this.#steps += trace.length;
    this.#occurrences += occurrences;
    if (this.#histories % 1_000 === 0) this.#say(`${this.#histories} histories …`);
  }

  /** Prints the events of a history up to the broken promise. */
  trace({ seed, trace, violation }: History): void {
    const lines = trace.map((line) => `  ${line}`);
    const end = violation === undefined ? "every promise was kept" : `BROKEN: ${violation}`;
    console.log([`seed ${seed}`, ...lines, end].join("\n"));
  }

  end(coverage: Coverage): void {
    const seconds = (performance.now() - this.#started) / 1_000;
    const missed = coverage.missed;
    this.#say(
      [
        `${this.#histories} histories, ${this.#steps} steps, ${this.#occurrences} occurrences, ${coverage.total} faults at a point`,
        `${seconds.toFixed(0)} s, ${(this.#histories / seconds).toFixed(1)} histories a second`,
        coverage.table(),
        missed.length === 0 ? "a fault struck at every point" : `no fault struck at: ${missed.join(", ")}`,
      ].join("\n"),
    );
  }

  control({ name, seed, violation, tried }: Finding): void {
    if (seed === undefined) this.#say(`control "${name}": NOT FOUND in ${tried} histories`);
    else this.#say(`control "${name}": found with seed ${seed} (${tried} histories): ${violation}`);
  }

  #say(text: string): void {
    if (this.#loud) console.log(text);
  }
}
