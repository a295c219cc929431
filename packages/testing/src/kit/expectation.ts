import { AssertionError } from "node:assert";
import { isDeepStrictEqual } from "node:util";
import {
  type Outcome,
  type Run,
  SKIP_REASONS,
  type SkipReason,
  type TaskRef,
  type TaskState,
} from "@carillon/core";
import { assertOneOf, invalid, quote } from "@carillon/core/internal";
import type { Store } from "@carillon/store";
import type { Complaints } from "./complaints.js";
import { type History, historyOf, tableOf } from "./history.js";
import { type Moment, timeOf, timeText } from "./moment.js";

type Check = (history: History) => { what: string; actual: unknown; expected: unknown };

/**
 * An expectation of a task, checked against its records in Redis: runs and skips. Await it; if you do not, it
 * is checked too, and the next `advance` or `close` throws.
 *
 * @example await kit.expect("r").fired(3).skipped("overlap", 2).outcome("succeeded");
 */
export class Expectation implements PromiseLike<void> {
  readonly #start: number;
  readonly #checks: Check[] = [];
  readonly #done: Promise<void>;
  /** Its place in the test, as a stack. */
  readonly #written = new Error("expected here").stack?.split("\n").slice(3).join("\n") ?? "";
  #awaited = false;

  constructor(store: Store, ref: TaskRef, start: number, complaints: Complaints) {
    this.#start = start;
    // Once the chain is written.
    this.#done = Promise.resolve()
      .then(() => historyOf(store, ref))
      .then((history) => this.#compare(history, complaints));
    this.#done.catch(() => {});
  }

  /** Exactly this number of occurrences was enqueued; a retry is not an occurrence of its own. */
  fired(times: number): this {
    assertCount(times, "fired(2)");
    return this.#check((history) => ({
      what: "occurrences enqueued",
      actual: firsts(history).length,
      expected: times,
    }));
  }

  /** Occurrences were enqueued at exactly these times. */
  firedAt(times: readonly Moment[]): this {
    return this.#times("times at which occurrences were enqueued", times, (history) =>
      firsts(history).map(({ enqueued }) => enqueued),
    );
  }

  /** Occurrences with exactly these nominal times were enqueued. */
  firedFor(nominals: readonly Moment[]): this {
    return this.#times("nominal times enqueued", nominals, (history) =>
      firsts(history).map(({ nominal }) => nominal),
    );
  }

  /** Runs started, each for the first time, at exactly these times. */
  ranAt(times: readonly Moment[]): this {
    return this.#times("times at which runs started", times, ({ runs }) =>
      sorted(runs.flatMap(({ started }) => started ?? [])),
    );
  }

  /** Runs became final at exactly these times. */
  finishedAt(times: readonly Moment[]): this {
    return this.#times("times at which runs finished", times, ({ runs }) =>
      sorted(runs.flatMap(({ finished }) => finished ?? [])),
    );
  }

  /**
   * Exactly this number of occurrences was skipped, for this reason or for any. @throws `INVALID_OPTION` for an unknown
   * reason
   */
  skipped(reason: SkipReason, times: number): this;
  skipped(times: number): this;
  skipped(first: SkipReason | number, second?: number): this {
    const reason = typeof first === "string" ? first : undefined;
    // Otherwise zero skips for a misspelt reason would always be true.
    assertOneOf(reason, "reason", SKIP_REASONS);
    const times = reason === undefined ? first : second;
    assertCount(times, `skipped(${reason === undefined ? "" : `"${reason}", `}2)`);
    return this.#check(({ skips, cut }) => {
      const counted = skips.filter((skip) => reason === undefined || skip.reason === reason);
      const actual = counted.reduce((sum, { occurrences }) => sum + occurrences, 0);
      return {
        what: `occurrences skipped${reason === undefined ? "" : ` (${reason})`}`,
        actual: cut ? `${actual} or more: the list of skips is full, assert more often` : actual,
        expected: times,
      };
    });
  }

  /** The newest final run had this outcome. */
  outcome(outcome: Outcome): this {
    return this.#check((history) => ({
      what: "outcome of the newest final run",
      actual: finals(history).at(-1)?.outcome,
      expected: outcome,
    }));
  }

  /** All final runs had these outcomes, in the order of their ends. */
  outcomes(outcomes: readonly Outcome[]): this {
    return this.#check((history) => ({
      what: "outcomes",
      actual: finals(history).map(({ outcome }) => outcome),
      expected: outcomes,
    }));
  }

  /** The task is next due at this time; undefined: never. */
  nextAt(time: Moment | undefined): this {
    return this.#check(({ stored }) => ({
      what: "next time",
      actual: timeText(stored?.state === "scheduled" ? stored.due : undefined),
      expected: timeText(time === undefined ? undefined : timeOf(time, this.#start, "time")),
    }));
  }

  state(state: TaskState): this {
    return this.#check(({ stored }) => ({ what: "state", actual: stored?.state, expected: state }));
  }

  #times(what: string, times: readonly Moment[], actual: (history: History) => number[]): this {
    const expected = times.map((time, i) => timeText(timeOf(time, this.#start, `times[${i}]`)));
    return this.#check((history) => ({ what, actual: actual(history).map(timeText), expected }));
  }

  #check(check: Check): this {
    this.#checks.push(check);
    return this;
  }

  #compare(history: History, complaints: Complaints): void {
    for (const check of this.#checks) {
      const { what, actual, expected } = check(history);
      if (isDeepStrictEqual(actual, expected)) continue;
      const message = `${what}: expected ${show(expected)}, but got ${show(actual)}.\n\n${tableOf(history)}\n${complaints}`;
      const error = new AssertionError({ message, actual, expected, operator: "expect" });
      error.stack = `${error.name}: ${message}\n${this.#written}`;
      throw error;
    }
  }

  /** @throws its failure, if it was not awaited */
  async unheard(): Promise<void> {
    if (!this.#awaited) await this.#done;
  }

  // biome-ignore lint/suspicious/noThenProperty: an expectation is awaited
  then<A = void, B = never>(
    fulfilled?: ((value: void) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#awaited = true;
    return this.#done.then(fulfilled, rejected);
  }
}

function firsts({ runs }: History): Run[] {
  const seen = new Set<string>();
  return runs.filter(({ key }) => !seen.has(key) && seen.add(key));
}

function finals({ runs }: History): Run[] {
  return runs.filter(({ state }) => state === "final").sort((a, b) => (a.finished ?? 0) - (b.finished ?? 0));
}

function sorted(times: number[]): number[] {
  return times.sort((a, b) => a - b);
}

function show(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.join(", ");
  return String(value);
}

/** Without a number, a comparison with undefined would fail and not say why. @throws `INVALID_OPTION` */
function assertCount(times: unknown, example: string): void {
  if (typeof times === "number" && Number.isInteger(times) && times >= 0) return;
  throw invalid(
    "times",
    times === undefined ? "missing." : `got ${quote(times)}.`,
    `Give the number: ${example}.`,
  );
}
