import type { Outcome } from "@carillon/sdk";
import { InvalidArgumentError, Option } from "commander";
import { misuse } from "../failure.js";

/** Whether an outcome is a failure. Complete on purpose: a new outcome does not compile until it is here. */
const FAILS: Record<Outcome, boolean> = {
  succeeded: false,
  failed: true,
  "timed-out": true,
  partial: false,
  cancelled: false,
  dropped: false,
  crashed: true,
  "nothing-to-do": false,
  lost: true,
};
const OUTCOMES = Object.keys(FAILS) as Outcome[];

/** `--outcome failed,lost`, also repeated. */
export function outcomeOption(description: string): Option {
  return new Option("--outcome <outcomes>", description).argParser((text: string, before: Outcome[] = []) => [
    ...before,
    ...text.split(",").map(known),
  ]);
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
  return OUTCOMES.filter((one) => FAILS[one]);
}
