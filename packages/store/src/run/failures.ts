import type { Outcome } from "@carillon/core";
import type { QueueKeys } from "../keys.js";
import { answers, script } from "../script/script.js";
import type { Scripts } from "../script/scripts.js";

const READ_FAILURES = script("read-failures", {
  once: "reads",
  keys: ["runs[]"],
  answer: answers<[errors: string[], runs: string[]]>(),
});

/** The parts of an error that tell its cause. */
export interface FailureError {
  readonly outcome: Outcome;
  /** First line, at most 500 bytes; "" none. */
  readonly line: string;
  /** First frame of its stack that is the user's own; "" none. */
  readonly frame: string;
}

/** End of a run, UTC ms. */
export interface End {
  readonly id: string;
  readonly at: number;
}

export interface Failure extends End {
  /** `owner/id` of its task. */
  readonly local: string;
  /** The same object for all runs of one reading with that error. */
  readonly error: FailureError;
}

/** Those of these runs of a queue that failed. One script, which takes Redis about 10 µs for each run. */
export async function readFailures(
  scripts: Scripts,
  { run }: QueueKeys,
  ends: readonly End[],
): Promise<Failure[]> {
  if (ends.length === 0) return [];
  const [texts, rows] = await scripts.run(READ_FAILURES, { runs: ends.map(({ id }) => run(id)) });
  const errors = texts.map(errorOf);
  return rows.map((row) => {
    const [error, i, local] = row.split(" ") as [string, string, string];
    const { id, at } = ends[Number(i) - 1] as End;
    // Names each field: V8 makes an object that begins with a spread a slow dictionary.
    return { id, at, local, error: errors[Number(error) - 1] as FailureError };
  });
}

function errorOf(text: string): FailureError {
  const [outcome, line = "", frame = ""] = text.split("\n");
  return { outcome: outcome as Outcome, line, frame };
}
