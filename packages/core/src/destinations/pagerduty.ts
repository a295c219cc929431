import { z } from "zod";
import { fingerprint } from "../fingerprint.js";
import type { Json } from "../json.js";
import { type AlertBody, destination, webhookUrl } from "./destination.js";
import { secret } from "./secret.js";
import { bounded, subjectOf } from "./text.js";

const SEVERITIES: Readonly<Record<string, "critical" | "warning" | "info">> = {
  "no-worker": "critical",
  stopped: "critical",
  "late-start": "warning",
  slow: "warning",
  skipped: "warning",
  test: "info",
};

/** Events API v2 of PagerDuty: an alert triggers an incident, and a `recovered` resolves those that it ends. */
export const pagerduty = destination({
  carrier: "http",
  fields: {
    routingKey: secret(
      z
        .string()
        // Not a pattern, which a placeholder does not match.
        .refine(
          (key) => /^\w{32}$/.test(key),
          "is not the key of an Events API v2 integration: 32 letters and digits.",
        ),
    ),
    url: webhookUrl.default("https://events.pagerduty.com/v2/enqueue"),
  },
  hosts: /^events\.(eu\.)?pagerduty\.com$/,
  endpoint: ({ url }) => url,
  bodies: ({ namespace, alerts, more, at }, { routingKey: routing_key }) => {
    const events = alerts.flatMap((alert) =>
      alert.kind === "recovered"
        ? resolved(alert).map((kind) => ({ event_action: "resolve", dedup_key: keyOf(alert, kind) }))
        : [trigger(alert, keyOf(alert, alert.kind))],
    );
    const rest = { kind: `${more} more alerts`, namespace, ...(at !== undefined && { at }) };
    if (more > 0) events.push(trigger(rest, keyOf(rest, `digest ${at}`)));
    return events.map((event): Json => ({ routing_key, ...event }));
  },
});

/** The kinds whose incidents are over. A task that paused itself has failed before, and that incident is over. */
function resolved({ ended = [] }: AlertBody): readonly string[] {
  return ended.some((kind) => kind === "failed" || kind === "crashed") ? [...ended, "paused"] : ended;
}

/** One incident a task, or a cause in the namespace, and a kind. At most 255 characters. */
function keyOf({ namespace, task, code, queue, type }: AlertBody, kind: string): string {
  const about = task ? [task.queue, task.owner, task.id] : [code, queue, type];
  const key = ["carillon", namespace, ...about, kind].filter((part) => part !== undefined).join("/");
  return key.length <= 255 ? key : `${key.slice(0, 240)}~${fingerprint(key).toString(16)}`;
}

function trigger(alert: AlertBody, dedup_key: string) {
  const { kind, namespace, task, at, link, message, error } = alert;
  const why = (message ?? error)?.split("\n")[0];
  return {
    event_action: "trigger",
    dedup_key,
    client: "Carillon",
    ...(link !== undefined && { client_url: link, links: [{ href: link, text: "Open in Carillon" }] }),
    payload: {
      summary: bounded(`${subjectOf(alert)}: ${kind}${why ? `: ${why}` : ""}`, 1_024),
      source: task ? `${namespace}/${task.queue}` : namespace,
      severity: SEVERITIES[kind] ?? "error",
      ...(at !== undefined && { timestamp: new Date(at).toISOString() }),
      component: subjectOf(alert),
      class: kind,
      custom_details: alert as never as Json,
    },
  };
}
