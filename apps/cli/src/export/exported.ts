import type { Definition } from "@carillon/sdk";
import { parseDuration } from "@carillon/sdk/schedule";

/** A task as another system can have it. */
export interface Exported<There> {
  readonly task: string;
  /** Undefined: it cannot have it at all, and a note says why. */
  readonly there?: There | undefined;
  /** Everything that it cannot express, or does otherwise. */
  readonly notes: readonly string[];
}

/** A stored definition, and how often its schedule has fired. */
export interface Stored {
  readonly definition: Definition;
  readonly fired: number;
}

/** Fields that another system has in some way, or needs not. All others, also future ones, are noted as lost. */
const EXPRESSED = new Set([
  ...["id", "owner", "queue", "type", "schedule", "payload", "enabled", "mode", "priority", "overlap"],
  ...["catchUp", "retry", "retention", "tags", "description", "subject", "submitter", "group"],
]);

/** Notes on what has no home: policies of the task, and the given parts of its schedule. @param more fields that this system has not */
export function lost({ definition }: Stored, more: readonly string[] = []): string[] {
  const { schedule, catchUp } = definition;
  const policies = Object.entries(definition)
    .filter(([name, value]) => value !== undefined && (!EXPRESSED.has(name) || more.includes(name)))
    .map(([name]) => name);
  const parts = ["jitter", "except"].filter((name) => schedule[name as keyof typeof schedule] !== undefined);
  const names = [
    ...policies,
    ...(catchUp === "one" ? [] : ["catchUp"]),
    ...parts.map((name) => `schedule.${name}`),
  ];
  return names.length > 0 ? [`not expressed: ${names.join(", ")}`] : [];
}

/** Why a schedule has no counterpart; undefined: it may have one. */
export function inexpressible({ definition: { schedule } }: Stored): string | undefined {
  if ("any" in schedule) return "a union of schedules";
  if ("calendar" in schedule) return "a calendar event";
  if ("at" in schedule) return "a single time";
  if ("manual" in schedule) return "no times: it is only triggered";
  if ("anchor" in schedule && schedule.anchor === "finish") return "a delay after each run";
  return undefined;
}

/** Length of an interval in ms. Undefined: of the calendar. */
export function lengthOf(every: string): number | undefined {
  try {
    return parseDuration(every);
  } catch {
    return undefined;
  }
}
