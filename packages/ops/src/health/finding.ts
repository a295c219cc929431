import {
  ALERT_FORMATS,
  CARRIERS,
  type Carrier,
  gapShape,
  notReadyFields,
  reasonShapes,
} from "@carillon/core/internal";
import { z } from "zod";
import { count, taskName, time } from "../shapes.js";

/* The facts of findings, by code: `words/finding.ts` makes sentences of them. */

const process = z.object({ id: z.string(), host: z.string() });
const concerned = { tasks: count, scopes: z.array(z.string()).readonly() };
const more = {
  severity: z
    .enum(["error", "warning"])
    .describe("Error: work is lost, wrong or not done. Warning: it may be."),
  queue: z.string().exactOptional(),
  task: taskName.optional(),
  more: count.optional().describe("Number of further tasks with this fault that are not listed."),
};

function of<const Code extends string, const Shape extends z.ZodRawShape>(code: Code, shape: Shape) {
  return z.object({ ...more, code: z.literal(code) }).extend(shape);
}

/** A fault that the doctor found. Times in UTC ms. */
export const finding = z
  .union([
    ...reasonShapes(more),
    of("UNKNOWN_SETTINGS", { settings: z.array(z.string()).readonly() }),
    of("PERSISTENCE_FAILS", { field: z.string() }),
    of("MEMORY", { used: count, most: count }),
    of("REPLICA", {
      replica: z
        .object({
          name: z.string(),
          state: z.string(),
          lag: count.describe("Time since its last answer, in s."),
        })
        .exactOptional()
        .describe("Missing: this Redis is a replica itself."),
    }),
    of("SLOW_REDIS", {
      nearest: z.number().exactOptional().describe("Round trip to the nearest node, in ms."),
      far: process
        .extend({ ms: z.number() })
        .optional()
        .describe("A node with a long one, if only some have."),
      held: z
        .object({
          at: time,
          tookMs: z.number(),
          command: z.string(),
          client: z.string(),
          ours: z.boolean(),
          agoMs: count,
        })
        .exactOptional()
        .describe("The slow command."),
    }),
    of("HISTORY_LOST", {
      agoMs: count,
      lostMs: count.exactOptional().describe("Length of the lost time. Missing: Redis came back empty."),
    }),
    of("VERSION_SKEW", { versions: z.array(z.string()).readonly() }),
    of("BULLMQ_SKEW", { versions: z.array(z.string()).readonly() }),
    of("TZDATA_SKEW", { versions: z.array(z.string()).readonly() }),
    of("CLOCK", { node: z.string(), aheadMs: count }),
    of("NODE_DEAD", { processes: z.array(process.extend({ agoMs: count })).readonly(), others: count }),
    of("WORKER_DEAD", { processes: z.array(process.extend({ agoMs: count })).readonly(), others: count }),
    of("NODE_NOT_READY", { node: process, ...notReadyFields }),
    of("TYPE_UNHANDLED", { gap: gapShape }),
    of("NO_DELIVERER", {
      ...concerned,
      carrier: z.enum(Object.keys(CARRIERS) as Carrier[]),
      deliverer: z.string(),
      gap: gapShape,
    }),
    of("ALERT_FORMAT", {
      ...concerned,
      host: z.string(),
      format: z.enum(ALERT_FORMATS),
      instead: z.enum(ALERT_FORMATS).describe("The format that the host takes."),
    }),
    of("NOT_PLANNED", { error: z.string() }),
    of("SAME_ID_ELSEWHERE", { queues: z.array(z.string()).readonly() }),
    of("NEVER_RAN", {
      agoMs: count,
      limit: count.optional().describe("It waits for a place of its owner, whose limit of runs this is."),
    }),
    of("RUN_TOO_LONG", {
      tookMs: count,
      everyMs: count,
      run: z.string().optional().describe("It is still under way."),
    }),
    of("HERD", { count, read: count, at: time, perSecond: count }),
    of("UNREADABLE", { text: z.string(), hint: z.string().optional() }),
    of("ORPHAN", { count, names: z.array(z.string()).readonly() }),
  ])
  .meta({ id: "Finding" });

export type Finding = z.output<typeof finding>;

type Without<Found, Field> = Found extends unknown ? Omit<Found, Field & keyof Found> : never;
export type FindingFacts = Without<Finding, "severity" | "task" | "more">;

/** Names in findings of one code; the rest are counted. */
export const NAMED = 5;
