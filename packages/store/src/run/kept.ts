import { OUTCOMES } from "@carillon/core";
import type { QueueKeys } from "../keys.js";
import { FACTS, LEDGER_MOST } from "../script/facts.js";
import { KEYS, TRIED } from "../script/libraries.js";
import { answers, script } from "../script/script.js";
import type { Scripts } from "../script/scripts.js";
import { DEFAULT_RETENTION } from "../task/codec.js";
import { decodeLedger, type Skip } from "./ledger.js";

const READ_KEPT = script("read-kept", {
  once: "reads",
  uses: [KEYS, TRIED],
  keys: ["tasks[]"],
  args: ["outcomes[]"],
  answer: answers<string[]>(),
});

/** The records of a task. */
export interface Kept {
  /** Time from which on it has the records of all runs that ended, and of all skips, UTC ms. 0: none was ever deleted; Infinity: not known. */
  readonly since: number;
  /** Newest first. */
  readonly skips: Skip[];
}

/** The records of tasks of one queue, in the order of their names: one script. */
export async function readKept(
  scripts: Scripts,
  keys: QueueKeys,
  locals: readonly string[],
  now: number,
): Promise<Kept[]> {
  if (locals.length === 0) return [];
  const rows = await scripts.run(READ_KEPT, { tasks: locals.map(keys.task) }, { outcomes: OUTCOMES });
  return rows.map((row) => {
    const [keep = "", well, wellKept, firstWell, failed, failedKept, firstFailed, ...lines] = row.split(
      FACTS.separator,
    );
    const { failures, failuresFor } = DEFAULT_RETENTION;
    const [, most = failures, , age = failuresFor] = keep === "" ? [] : keep.split(" ").map(Number);
    const skips = decodeLedger(lines);
    return {
      since: Math.max(
        deletedUntil(well, wellKept, firstWell),
        // Failures are few: the record before the oldest one is mostly older than failures are kept.
        Math.min(
          deletedUntil(failed, failedKept, firstFailed),
          Number(failedKept) < most ? now - age : Infinity,
        ),
        lines.length < LEDGER_MOST ? 0 : (skips.at(-1)?.from ?? 0),
      ),
      skips,
    };
  });
}

/** Records are deleted by their age, and by the number of newer ones. Limits that were raised since then do not bring them back. */
function deletedUntil(
  ended: string | undefined,
  kept: string | undefined,
  oldest: string | undefined,
): number {
  if (Number(kept) >= Number(ended)) return 0;
  return oldest ? Number(oldest) : Number.POSITIVE_INFINITY;
}
