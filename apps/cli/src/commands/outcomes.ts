import { FAILURES, OUTCOMES } from "@carillon/ops/words";
import type { Outcome } from "@carillon/sdk";
import { InvalidArgumentError } from "commander";
import { misuse } from "../failure.js";

/** For commander: `--outcome failed,lost`, also repeated. */
export function outcomes(text: string, before: Outcome[] = []): Outcome[] {
  return [...before, ...text.split(",").map(known)];
}

function known(word: string): Outcome {
  const outcome = OUTCOMES.find((one) => one === word);
  if (outcome !== undefined) return outcome;
  throw new InvalidArgumentError(`Use one of ${OUTCOMES.join(", ")}, or several with commas.`);
}

/** @param failures whether all failures are asked for. @throws `INVALID_OPTION` if both are given */
export function outcomesOf(
  outcome: Outcome[] | undefined,
  failures: boolean | undefined,
): Outcome[] | undefined {
  if (!failures) return outcome;
  if (outcome !== undefined)
    throw misuse("failures", "cannot be combined with --outcome.", "Leave one of the two out.");
  return [...FAILURES];
}
