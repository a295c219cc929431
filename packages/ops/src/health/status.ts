import { limitShape, pauseShape, statusReason } from "@carillon/core/internal";
import { readStatus } from "@carillon/store";
import { z } from "zod";
import { operation } from "../operation.js";
import { count, time } from "../shapes.js";

const queue = z.object({
  name: z.string(),
  paused: pauseShape.optional().describe("Workers take no jobs; as far as the pause recorded it."),
  workers: count.optional().describe("Connected BullMQ workers, plain ones included, if Redis tells."),
  behind: count.describe("Age of the oldest due occurrence that no node has claimed, in ms; 0: none."),
  waiting: count.optional(),
  active: count.optional(),
  limit: limitShape.optional().describe("BullMQ's own limits, if there are any."),
  oldestWaitingMs: count.optional(),
});

/** Never throws because of Redis: a Redis that cannot be reached is a reason too. A bounded number of reads for each queue. */
export const status = operation({
  http: "GET /status",
  role: "viewer",
  reach: "owner",
  summary:
    "Says whether work is on time, behind or stopped, and why, as codes and facts. `behind` is the age in ms of the oldest due occurrence that no node has claimed, or of the oldest run that waits too long for a worker.",
  input: z.strictObject({}),
  output: z
    .object({
      state: z.enum(["on-time", "behind", "stopped"]),
      behind: count,
      since: time.optional().describe("Time from which it is behind."),
      at: time.optional().describe("Redis time. Missing: Redis does not answer."),
      reasons: z.array(statusReason).readonly().describe("Most severe first; empty if it is on time."),
      notes: z
        .array(statusReason)
        .readonly()
        .describe(
          "Facts that do not change the state: freezes, pauses of queues that recorded their time, jobs that a limit of BullMQ's holds, and receivers that do not take their alerts.",
        ),
      queues: z.array(queue).readonly(),
      nodes: z.object({ alive: count, ready: count }),
      workers: z.object({ alive: count }).describe("Plain BullMQ workers are counted by `queues` alone."),
    })
    .meta({ id: "Status" }),
  async run({ scope }) {
    const found = await readStatus(scope);
    const { at, behind } = found;
    return at !== undefined && behind > 0 ? { ...found, since: at - behind } : found;
  },
});
