import type { AlertBody, Batch } from "./destination.js";

export function subjectOf({ task, tasks, owners, namespace }: AlertBody): string {
  if (task) return `${task.owner}/${task.id}`;
  return tasks === undefined ? namespace : `${number(tasks, "task")} of ${number(owners, "owner")}`;
}

function number(count = 0, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Kinds whose incidents are over. A task that paused itself has failed before, and that incident is over. */
export function endedBy({
  ended = [],
}: {
  readonly ended?: readonly string[] | undefined;
}): readonly string[] {
  return ended.some((kind) => kind === "failed" || kind === "crashed") ? [...ended, "paused"] : ended;
}

/** One line about all alerts of a delivery. */
export function titleOf({ alerts }: Batch): string {
  const [first] = alerts;
  if (alerts.length === 1 && first) return `${subjectOf(first)}: ${first.kind}`;
  const counts = new Map<string, number>();
  for (const { kind, alerts: n = 1 } of alerts) counts.set(kind, (counts.get(kind) ?? 0) + n);
  const kinds = [...counts].map(([kind, count]) => `${count} ${kind}`);
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  return `${total} alerts: ${kinds.join(", ")}`;
}

const FACTS = [
  ...(["type", "outcome", "cause", "alerts", "open", "queues", "since", "named"] as const),
  ...(["nominal", "run", "attempts", "consecutiveFailures", "ended"] as const),
] as const;
const TIMES: readonly string[] = ["nominal", "since"];

export function factsOf(alert: AlertBody): [name: string, value: string][] {
  return FACTS.flatMap((name) => {
    const value = alert[name];
    if (value === undefined) return [];
    if (TIMES.includes(name)) return [[name, iso(Number(value))]];
    return [[name, Array.isArray(value) ? value.join(", ") : String(value)]];
  });
}

export function iso(time: number): string {
  return new Date(time).toISOString().replace(".000Z", "Z");
}

/** A text, escaped, that has at most `most` characters then. No character or escape is cut. */
export function bounded(text: string, most: number, escaped = (character: string) => character): string {
  let out = "";
  for (const character of text) {
    const next = escaped(character);
    if (out.length + next.length >= most) return `${out}…`;
    out += next;
  }
  return out;
}

/** Alerts that a chat message describes; it only counts the others. */
const DESCRIBED = 10;

/** The first alerts of a delivery, and the number of the others. */
export function firstOf({ alerts }: Batch): { first: readonly AlertBody[]; others: number } {
  const first = alerts.slice(0, DESCRIBED);
  return { first, others: alerts.length - first.length };
}
