import { parseInput } from "@carillon/ops/internal";
import { z } from "zod";

const number = z.number("not a number");
const text = z.string("not a text");

/**
 * Options that BullMQ passes to its script unchecked, which then fails halfway. BullMQ refuses all other faults
 * itself.
 */
const OPTIONS = z.looseObject({
  delay: number.exactOptional(),
  timestamp: number.exactOptional(),
  repeatJobKey: text.exactOptional(),
  telemetry: z.looseObject({}, "not an object").exactOptional(),
  deduplication: z
    .looseObject(
      { id: text.exactOptional(), ttl: z.int("not a whole number of milliseconds").exactOptional() },
      "not an object",
    )
    .exactOptional(),
  // BullMQ's short name of `deduplication`, which it does not check.
  de: z.undefined("reserved: use deduplication").optional(),
});

const ADDED = z.object({ options: OPTIONS });

/**
 * @throws `INVALID_OPTION` for options of a new job that would make BullMQ's script fail, with the field:
 * `options.deduplication.id`
 */
export function assertJobOptions(options: unknown): void {
  parseInput(ADDED, { options });
}
