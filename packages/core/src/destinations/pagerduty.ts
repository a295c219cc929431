import { z } from "zod";
import { fingerprint } from "../fingerprint.js";
import type { Json } from "../json.js";
import { type AlertBody, destination, webhookUrl } from "./destination.js";
import { secret } from "./secret.js";
import { bounded, endedBy, subjectOf } from "./text.js";

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
  bodies: ({ namespace, alerts }, { routingKey: routing_key }) =>
    alerts.flatMap(eventsOf(namespace)).map((event): Json => ({ routing_key, ...event })),
});

const eventsOf = (namespace: string) => (alert: AlertBody) => {
  const resolve = (about: About, kinds: readonly string[]) =>
    kinds.map((kind) => ({ event_action: "resolve", dedup_key: keyOf(namespace, about, kind) }));
  const { kind, closed = [], open = 0 } = alert;
  const before = closed.flatMap((one) => resolve(one, endedBy(one)));
  if (kind === "recovered") return [...before, ...(open === 0 ? resolve(alert, endedBy(alert)) : [])];
  const own = trigger(alert, keyOf(namespace, alert, kind));
  return [...before, own, ...(alert.open === 0 ? resolve(alert, [kind]) : [])];
};

type About = NonNullable<AlertBody["closed"]>[number] & Pick<AlertBody, "alerts" | "cause">;

/** One incident a task, or a cause, and a kind. At most 255 characters. */
function keyOf(namespace: string, { task, alerts, cause, code, queue, type }: About, kind: string): string {
  const one = task ? [task.queue, task.owner, task.id] : [code, queue, type];
  const about = alerts === undefined ? one : ["cause", cause ?? code];
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
