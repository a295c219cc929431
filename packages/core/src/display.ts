import { z } from "zod";
import { count, time } from "./shapes.js";

const text = z.string();

/* The present state of a task, as facts. `words/display.ts` makes a few words of them. */

export const displayShape = z
  .object({
    code: z
      .enum([
        ...(["runs", "waits-for-attempt", "waits-for-queue", "waits-for-worker"] as const),
        ...(["moving", "paused", "held", "over", "fails", "overdue", "due", "never-due"] as const),
      ])
      .describe("The first of these that is so."),
    type: text.exactOptional().describe("Of `waits-for-worker`: the type, if no worker of its queue has it."),
    queue: text.exactOptional().describe("Of `waits-for-queue`: the queue, which is paused."),
    freeze: text.exactOptional().describe("Of `held`: id of the freeze."),
    by: text.exactOptional().describe("Author of the pause or freeze."),
    note: text.exactOptional(),
    until: time
      .exactOptional()
      .describe("End of the freeze, or of the wait for the next attempt, if it is known."),
    since: time
      .exactOptional()
      .describe(
        "End of the first of the failures in a row, if it is recorded; of `overdue`, when it was due.",
      ),
    failures: count.exactOptional().describe("Failures in a row; of `over`, those at its end."),
    next: time
      .exactOptional()
      .describe("Start of the next occurrence that no freeze skips or holds. Missing: none is known."),
    skips: z
      .literal(true)
      .exactOptional()
      .describe("A freeze skips the times of its schedule from `nextExecution` to `next`."),
  })
  .meta({ id: "Display" });
/** The present state of a task, as facts: what it does or waits for. Times in UTC ms. */
export type Display = Readonly<z.output<typeof displayShape>>;
