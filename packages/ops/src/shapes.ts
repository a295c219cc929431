import { z } from "zod";

/** Shapes that several operations share. An `id` names a schema in the API's description. */

/** A text of an input; the operation checks the rest. */
export const given = z.string({ error: ({ input }) => (input === undefined ? "missing" : "not a text") });
export const wholeNumber = z.number("not a number").meta({ type: "integer" });
/** A duration of an input: `"30s"`, or whole milliseconds. */
export const duration = z.union([z.string(), z.number()], "not a duration");
/** A point in time of an input. */
export const instant = z.union([z.string(), z.number(), z.date()], "not a time").meta({
  description: "UTC milliseconds, or ISO 8601 with Z or an offset.",
});

export const count = z.number().meta({ type: "integer" });
export const time = z.number().meta({ id: "Time", type: "integer", description: "UTC milliseconds." });
export const changed = z.object({ changed: z.boolean().describe("False: it was so already.") });
