import { defineTask, type TaskInput } from "@carillon/sdk";
import type { TestKit } from "@carillon/testing";
import { z } from "zod";
import { type EachKit, eachKit } from "./each-kit.js";

export const QUEUE = "bells";
export const START = Date.parse("2026-01-01T00:00:00Z");
export const MINUTE = 60_000;

const payload = z.object({}).loose();
const TYPES = [
  defineTask("fine", { queue: QUEUE, payload, handler: () => {} }),
  defineTask("failing", {
    queue: QUEUE,
    payload,
    handler: () => {
      throw new Error("no");
    },
  }),
  // Requests one more run, ten minutes later.
  defineTask("asking", {
    queue: QUEUE,
    payload,
    handler: (_payload, { runNextAt, occurrence }) => {
      if (occurrence.trigger !== "self") runNextAt(occurrence.nominal + 10 * MINUTE);
    },
  }),
];

/** A kit for each test, with the types `fine`, `failing` and `asking`. */
export const eachBells = (): EachKit => eachKit({ types: TYPES, start: START });

/** Puts a task that runs each hour. */
export function putBell(kit: TestKit, id: string, type: string, rest: Partial<TaskInput> = {}) {
  return kit.client.put({ id, type, queue: QUEUE, schedule: { every: "1h" }, ...rest });
}
