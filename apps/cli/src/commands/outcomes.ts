import { FAILURES } from "@carillon/ops/words";
import type { Outcome } from "@carillon/sdk";
import { misuse } from "../failure.js";

/** @param failures whether all failures are asked for. @throws `INVALID_OPTION` if both are given */
export function outcomesOf(
  outcome: readonly Outcome[] | undefined,
  failures: boolean | undefined,
): readonly Outcome[] | undefined {
  if (!failures) return outcome;
  if (outcome !== undefined)
    throw misuse("failures", "cannot be combined with --outcome.", "Leave one of the two out.");
  return [...FAILURES];
}
