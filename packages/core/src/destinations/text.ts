import type { AlertBody, Batch } from "./destination.js";

/** The task, or the namespace, that an alert is about. */
export function subjectOf({ task, namespace }: AlertBody): string {
  return task ? `${task.owner}/${task.id}` : namespace;
}

/** One line about all alerts of a delivery. */
export function titleOf({ alerts, more }: Batch): string {
  const [first] = alerts;
  if (alerts.length === 1 && more === 0 && first) return `${subjectOf(first)}: ${first.kind}`;
  const counts = new Map<string, number>();
  for (const { kind } of alerts) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const kinds = [...counts].map(([kind, count]) => `${count} ${kind}`);
  return `${alerts.length + more} alerts: ${kinds.join(", ")}${more > 0 ? ", …" : ""}`;
}

const FACTS = ["type", "outcome", "nominal", "run", "attempts", "consecutiveFailures", "ended"] as const;

/** Names and values of facts about an alert. */
export function factsOf(alert: AlertBody): [name: string, value: string][] {
  return FACTS.flatMap((name) => {
    const value = alert[name];
    if (value === undefined) return [];
    return [[name, name === "nominal" ? iso(Number(value)) : String(value)]];
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
export function firstOf({ alerts, more }: Batch): { first: readonly AlertBody[]; others: number } {
  const first = alerts.slice(0, DESCRIBED);
  return { first, others: alerts.length - first.length + more };
}
