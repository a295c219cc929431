import { bullPrefix } from "../keys.js";

/** BullMQ's keys that the claim declares, in the order in which `bullQueue` expects them. */
export const BULL_KEYS = [
  "wait",
  "paused",
  "meta",
  "id",
  "completed",
  "delayed",
  "active",
  "events",
  "marker",
  "prioritized",
  "pc",
] as const;

export function bullKeys(bull: string): string[] {
  return BULL_KEYS.map((key) => bull + key);
}

/** The keys that BullMQ's pause gets, in its order. */
export function bullPauseKeys(bull: string, to: "pause" | "resume"): string[] {
  const lists = to === "pause" ? ["wait", "paused"] : ["paused", "wait"];
  return [...lists, "meta", "prioritized", "events", "delayed", "marker"].map((key) => bull + key);
}

/** BullMQ's keys that say what waits in a queue. */
export function bullStateKeys(
  bull: string,
): Record<"meta" | "wait" | "paused" | "prioritized" | "active" | "limiter", string> {
  return {
    meta: bullMeta(bull),
    wait: `${bull}wait`,
    paused: `${bull}paused`,
    prioritized: `${bull}prioritized`,
    active: `${bull}active`,
    limiter: `${bull}limiter`,
  };
}

/** BullMQ's list of the jobs that workers hold, and its sorted set of those whose children are not done. */
export function bullHeldKeys(bull: string): { active: string; parents: string } {
  return { active: `${bull}active`, parents: `${bull}waiting-children` };
}

/** The set of a queue's schedulers, which BullMQ's remove gets besides the job's key. */
export function bullRepeats(bull: string): string {
  return `${bull}repeat`;
}

/** The id of the job that a scheduler makes for a time. */
export function bullRepeatJob(id: string, next: number | string): string {
  return `repeat:${id}:${next}`;
}

export function bullSchedulerKeys(bull: string, id: string) {
  return {
    repeat: bullRepeats(bull),
    scheduler: `${bullRepeats(bull)}:${id}`,
    delayed: bullDelayed(bull),
    events: bullEvents(bull),
    marker: `${bull}marker`,
  };
}

export function bullDelayed(bull: string): string {
  return `${bull}delayed`;
}

/** BullMQ's stream of what happens to the jobs of a queue. */
export function bullEvents(bull: string): string {
  return `${bull}events`;
}

/** BullMQ's settings of a queue. */
export function bullMeta(bull: string): string {
  return `${bull}meta`;
}

/** The keys that BullMQ leaves of a queue without jobs, apart from its settings. */
export function bullIdleKeys(bull: string): string[] {
  return ["events", "marker", "id", "pc"].map((key) => bull + key);
}

/** The keys of BullMQ that exist while a queue has a job in any state. */
export function bullJobKeys(bull: string): string[] {
  const lists = ["wait", "paused", "active", "prioritized", "delayed", "waiting-children"];
  return [...lists, "completed", "failed", "repeat"].map((key) => bull + key);
}

/** The name that a worker's connection has in `CLIENT LIST`; a worker with a name of its own adds `:w:` and that name. */
export function bullWorkerName(namespace: string, queue: string): string {
  return `${bullPrefix(namespace, queue)}:${Buffer.from(queue).toString("base64")}`;
}

/**
 * The keys that BullMQ keeps of a job's children: a set of those that are left, and hashes of those that ended well or
 * failed.
 */
export function bullChildren(job: string): { left: string; succeeded: string; failed: string } {
  return { left: `${job}:dependencies`, succeeded: `${job}:processed`, failed: `${job}:failed` };
}
