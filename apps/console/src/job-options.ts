import { z } from "zod";
import { readAs } from "./api/fault.js";

const number = z.number("not a number");
const text = z.string("not a text");

/**
 * What BullMQ hands to its script unlooked at, which ends in mid-way where it cannot be used. Whatever else is wrong, BullMQ
 * refuses itself.
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
  // Its own short word for it, under which it checks nothing.
  de: z.undefined("not for a job to have: say deduplication").optional(),
});

const ADDED = z.object({ options: OPTIONS });

/** @throws `INVALID_OPTION` for options of a new job that BullMQ would choke on, naming the field: `options.deduplication.id` */
export function assertJobOptions(options: unknown): void {
  readAs(ADDED, { options }, "INVALID_OPTION");
}
