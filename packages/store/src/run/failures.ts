import type { Outcome } from "@carillon/core";
import type { QueueKeys } from "../keys.js";
import { KEYS } from "../script/libraries.js";
import { answers, script } from "../script/script.js";
import type { Scripts } from "../script/scripts.js";

const READ_FAILURES = script("read-failures", {
  once: "reads",
  keys: ["journal"],
  args: ["from", "to", "offset", "count"],
  uses: [KEYS],
  answer: answers<[looked: number, newest: string, oldest: string, errors: string[], runs: string[]]>(),
});

/** Ends that one script looks at, which takes Redis a few milliseconds. */
const STEP = 250;

/** What an error says of its cause. */
export interface FailureError {
  readonly outcome: Outcome;
  /** First line, at most 500 bytes; "" none. */
  readonly line: string;
  /** First frame of its stack that is the user's own; "" none. */
  readonly frame: string;
}

export interface Failure {
  readonly id: string;
  /** `owner/id` of its task. */
  readonly local: string;
  /** End, UTC ms. */
  readonly at: number;
  /** The same object for all runs of a page with that error. */
  readonly error: FailureError;
}

/** The failed runs of a queue that ended in this time, newest first, in pages: a few milliseconds of Redis each. */
export async function* readFailures(
  scripts: Scripts,
  { journal }: QueueKeys,
  { from, to }: { readonly from: number; readonly to: number },
): AsyncGenerator<Failure[]> {
  // The reader's place is an end, so runs that end meanwhile do not move it; those of its millisecond were read before.
  let [until, offset] = [to, 0];
  let seen = new Set<string>();
  for (;;) {
    const args = { from, to: until, offset, count: STEP };
    const [looked, newest, oldest, texts, rows] = await scripts.run(READ_FAILURES, { journal }, args);
    const errors = texts.map(errorOf);
    const page = rows.map((row) => failureOf(row, errors)).filter(({ id }) => !seen.has(id));
    if (page.length > 0) yield page;
    if (looked < STEP) return;
    // More ends in one millisecond than a page has.
    offset = newest === oldest ? offset + STEP : 0;
    until = Number(oldest);
    seen = new Set(page.filter(({ at }) => at === until).map(({ id }) => id));
  }
}

/** The newest ends of a queue in this time, at most `most`: how many there are, and those that failed. One script. */
export async function newestFailures(
  scripts: Scripts,
  { journal }: QueueKeys,
  { from, to }: { readonly from: number; readonly to: number },
  most: number,
): Promise<{ looked: number; failed: Failure[] }> {
  const [looked, , , texts, rows] = await scripts.run(
    READ_FAILURES,
    { journal },
    { from, to, offset: 0, count: Math.min(most, STEP) },
  );
  const errors = texts.map(errorOf);
  return { looked, failed: rows.map((row) => failureOf(row, errors)) };
}

function errorOf(text: string): FailureError {
  const [outcome, line = "", frame = ""] = text.split("\n");
  return { outcome: outcome as Outcome, line, frame };
}

function failureOf(row: string, errors: readonly FailureError[]): Failure {
  const [error, at, id, local] = row.split(" ") as [string, string, string, string];
  return { id, local, at: Number(at), error: errors[Number(error) - 1] as FailureError };
}
