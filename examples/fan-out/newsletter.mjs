import { defineTask } from "@carillon/sdk";
import { z } from "zod";

/**
 * One run sends one issue to all subscribers. Each mail is an item: a job of its own, on any worker.
 *
 * @param {{ list(): Promise<string[]> }} subscribers
 * @param {{ send(to: string, issue: number, key: string): Promise<void> }} mailer
 */
export function newsletter(subscribers, mailer) {
  return defineTask("newsletter", {
    queue: "newsletter",
    payload: z.object({ issue: z.number() }),
    generate: async ({ issue }) => (await subscribers.list()).map((to) => ({ to, issue })),
    process: async ({ to, issue }, { idempotencyKey }) => {
      await mailer.send(to, issue, idempotencyKey); // the key stays the same when the item is tried again
    },
    concurrency: 5,
    itemRetry: { attempts: 3, delay: "1s" },
  });
}
