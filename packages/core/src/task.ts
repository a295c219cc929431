import { z } from "zod";
import { DESTINATIONS } from "./destinations/index.js";
import { CarillonError, type ErrorCode, quote } from "./errors.js";
import { DEFAULT_PAYLOAD_LIMITS, encodePayload, type Json, type PayloadLimits } from "./json.js";
import { DEFAULT_OWNER, NAME_PATTERN, NAME_REMEDY } from "./names.js";
import { nearestRemedy } from "./nearest.js";
import {
  CATCH_UP_POLICIES,
  type CatchUpPolicy,
  OVERLAP_POLICIES,
  type OverlapPolicy,
  type Policies,
  policySchema,
} from "./policies.js";
import { scheduleSchema } from "./schedule/index.js";
import { KINDS } from "./schedule/kinds/index.js";
import { SCHEDULE_FIELDS } from "./schedule/shape.js";
import { list } from "./schedule/text/english.js";
import type { Schedule } from "./schedule/types.js";

/** Written into every stored definition. A node that meets a newer one leaves the task alone and warns. */
export const FORMAT_VERSION = 1;

export const TASK_STATES = ["scheduled", "paused", "finished"] as const;
export type TaskState = (typeof TASK_STATES)[number];

/** BullMQ's own upper bound. */
export const MAX_PRIORITY = 2_097_152;

const NAME = z
  .string({ error: ({ input }) => (input === undefined ? "missing" : "not a text") })
  .regex(NAME_PATTERN, { error: (issue) => `got ${quote(issue.input)}` });
/** Refuses control characters except tab and line ends, because texts reach terminals and logs. */
export const PRINTABLE: RegExp = /^(?:\P{Cc}|[\t\n\r])*$/u;
const line = (max: number) => z.string().max(max).regex(PRINTABLE, "has control characters in it");

/**
 * The schema of a task definition, shared by SDK, CLI and API; `TaskInput` documents each field. Payloads are checked separately,
 * by `parseTask`.
 */
export const taskSchema = z.strictObject({
  ...policySchema.shape,
  id: NAME,
  type: NAME,
  queue: NAME,
  schedule: scheduleSchema,
  payload: z.unknown().optional(),
  owner: NAME.default(DEFAULT_OWNER),
  tags: z
    .array(NAME)
    .max(32)
    .default([])
    .transform((tags) => [...new Set(tags)].sort()),
  enabled: z.boolean().default(true),
  mode: z.literal("shadow").optional(),
  priority: z.int().min(0).max(MAX_PRIORITY).default(0),
  overlap: z.enum(OVERLAP_POLICIES).default("skip"),
  catchUp: z.enum(CATCH_UP_POLICIES).default("one"),
  description: line(1024).optional(),
  subject: line(256).optional(),
  submitter: line(256).optional(),
  group: line(256).optional(),
});

/** A valid definition: defaults filled in, payload as JSON. */
export interface TaskDefinition extends Policies {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  readonly owner: string;
  readonly schedule: Schedule;
  readonly payload: Json;
  readonly tags: readonly string[];
  readonly enabled: boolean;
  /** `shadow`: its schedule enqueues nothing. Absent: it does. */
  readonly mode?: "shadow" | undefined;
  readonly priority: number;
  readonly overlap: OverlapPolicy;
  readonly catchUp: CatchUpPolicy;
  readonly description?: string | undefined;
  readonly subject?: string | undefined;
  readonly submitter?: string | undefined;
  readonly group?: string | undefined;
}

export interface ParsedTask {
  definition: TaskDefinition;
  /** The payload's JSON, encoded once, as it is stored and as the job carries it. */
  payloadJson: string;
}

/**
 * Checks a task from outside before anything is written.
 *
 * @throws `INVALID_TASK`, `INVALID_NAME`, `INVALID_SCHEDULE`, `INVALID_TIMEZONE`, `INVALID_DURATION`,
 * `INVALID_PAYLOAD`, `PAYLOAD_TOO_LARGE`, each with the field.
 */
export function parseTask(input: unknown, limits: PayloadLimits = DEFAULT_PAYLOAD_LIMITS): ParsedTask {
  const parsed = taskSchema.safeParse(input);
  if (!parsed.success) throw fromZod(parsed.error);
  if (parsed.data.minGap !== undefined && parsed.data.tolerance !== undefined) {
    throw new CarillonError("INVALID_TASK", "cannot be combined with minGap.", {
      field: "tolerance",
      remedy: "Give one of the two: a fixed time, or the part of the interval that may be missing.",
    });
  }
  // Only a missing payload becomes empty: null is a payload.
  const payload = parsed.data.payload === undefined ? {} : parsed.data.payload;
  const payloadJson = encodePayload(payload, limits);
  return { definition: { ...parsed.data, payload: payload as Json }, payloadJson };
}

const NAME_FIELDS = new Set(["id", "type", "queue", "owner", "tags"]);

/** The first zod issue as a coded error: one clear fault is better than a list. */
export function fromZod(error: z.ZodError, fallback: ErrorCode = "INVALID_TASK"): CarillonError {
  // An unknown field explains a missing one.
  const issue = error.issues.find(({ code }) => code === "unrecognized_keys") ?? error.issues[0];
  if (!issue) return new CarillonError(fallback, error.message);
  const unknown = issue.code === "unrecognized_keys" ? issue.keys[0] : undefined;
  const path = unknown === undefined ? issue.path : [...issue.path, unknown];
  const field = path.reduce<string>(
    (text, part) =>
      typeof part === "number" ? `${text}[${part}]` : text ? `${text}.${String(part)}` : String(part),
    "",
  );
  const own = (issue as { params?: { code?: ErrorCode } }).params?.code;
  const root = String(issue.path[0] ?? "");
  const code =
    own ?? (root === "schedule" ? "INVALID_SCHEDULE" : NAME_FIELDS.has(root) ? "INVALID_NAME" : fallback);
  const { what, remedy } = messageOf(issue, root);
  const message = what.length > 500 ? `${what.slice(0, 500)}…` : what;
  return new CarillonError(code, /[.!?…]$/.test(message) ? message : `${message}.`, {
    ...(field ? { field: field.slice(0, 100) } : {}),
    ...(remedy === undefined ? {} : { remedy }),
    cause: error,
  });
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false, a boolean",
  int: "a whole number",
};
const ALERT_FIELDS = [
  ...new Set([
    "on",
    "format",
    "quiet",
    ...Object.values(DESTINATIONS).flatMap(({ fields }) => Object.keys(fields)),
  ]),
];
/** Formats of texts that are no names. */
const FORMATS: Readonly<Record<string, string>> = {
  email: "Give one address, such as ops@example.com.",
  url: "Give an http or https URL.",
};
const TIME_FIELDS = new Set<PropertyKey | undefined>(["at", "start", "end", "origin"]);

/** The fault and its remedy. The message of an issue of our own contains both, the remedy last. */
function messageOf(issue: z.core.$ZodIssue, root: string): { what: string; remedy: string | undefined } {
  if (issue.code === "unrecognized_keys")
    return { what: "there is no such field", remedy: remedyOf(issue, root) };
  if (issue.code === "invalid_type" && issue.message.endsWith("received undefined"))
    return { what: "missing", remedy: remedyOf(issue, root) };
  if (issue.code === "invalid_value" && issue.message.startsWith("Invalid option"))
    return { what: "not a known value", remedy: remedyOf(issue, root) };
  const own = issue.code === "custom" ? /^(.*[.!?…]) ([A-Z].*[.?])$/s.exec(issue.message) : null;
  return { what: own?.[1] ?? issue.message, remedy: own?.[2] ?? remedyOf(issue, root) };
}

function remedyOf(issue: z.core.$ZodIssue, root: string): string | undefined {
  if (issue.code === "unrecognized_keys") return nearestRemedy(issue.keys[0] ?? "", fieldsAt(issue.path));
  if (root === "schedule" && issue.path.length === 1)
    return `Give one of ${list(KINDS.map(({ key }) => key))}.`;
  switch (issue.code) {
    case "invalid_format":
      return FORMATS[issue.format] ?? NAME_REMEDY;
    case "invalid_type":
      if (issue.expected === "string" && NAME_FIELDS.has(root)) return NAME_REMEDY;
      if (root === "alerts" && issue.path.at(-1) === "on")
        return 'Give a list of events, such as on: ["failed"].';
      if (issue.expected === "object") return `Give ${objectAt(issue.path)}.`;
      return `Give ${TYPE_NAMES[issue.expected] ?? `a ${issue.expected}`}.`;
    case "invalid_value":
      return `Use one of ${issue.values.map(String).join(", ")}.`;
    case "too_small":
      return `Use at least ${String(issue.minimum)}${unitOf(issue.origin)}.`;
    case "too_big":
      return `Use at most ${String(issue.maximum)}${unitOf(issue.origin)}.`;
    case "invalid_union":
      return TIME_FIELDS.has(issue.path.at(-1))
        ? "Give ISO 8601 with an offset, a Date, or epoch milliseconds."
        : `Give a text with a unit, "30s", or whole milliseconds.`;
    default:
      return undefined;
  }
}

function unitOf(origin: string): string {
  return origin === "string" ? " characters" : origin === "array" ? " entries" : "";
}

/** The fields of a task, of its schedule, or of a policy that is an object; empty for deeper paths. */
function fieldsAt([root, ...deeper]: readonly PropertyKey[]): readonly string[] {
  if (root === undefined) return Object.keys(taskSchema.shape);
  if (root === "schedule") return deeper.at(-1) === "dst" ? [] : SCHEDULE_FIELDS;
  if (root === "alerts") return deeper.length === 1 ? ALERT_FIELDS : [];
  const policy = (policySchema.shape as Readonly<Record<PropertyKey, z.ZodOptional>>)[root]?.unwrap();
  return deeper.length === 0 && policy instanceof z.ZodObject ? Object.keys(policy.shape) : [];
}

function objectAt(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "an object with id, type, queue and schedule";
  const fields = fieldsAt(path);
  return fields.length === 0 ? "an object" : `an object with fields: ${fields.join(", ")}`;
}
