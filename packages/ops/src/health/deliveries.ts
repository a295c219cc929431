import { ALERTS_QUEUE, type AlertDestination, type Policies } from "@carillon/core";
import {
  CARRIERS,
  type Carrier,
  carrierOf,
  formatInstead,
  type StatusReasonFacts,
} from "@carillon/core/internal";
import { type Scope, undelivered } from "@carillon/sdk/internal";
import type { StoredTask } from "@carillon/store";
import { type Finding, type FindingFacts, NAMED } from "./finding.js";

/** A failed delivery is reported for so long, and one that waits from this age on, in ms. */
const UNDELIVERED = { failed: 3_600_000, late: 60_000 };
/** Destinations, of tasks and of defaults, that no worker delivers to, or that do not take the format of their alerts. */
export async function undeliverable(
  { store, coverage }: Scope,
  tasks: readonly StoredTask[],
): Promise<Finding[]> {
  const defaults = [...(await store.registry.defaults())];
  const withAlerts = (are: (one: AlertDestination) => boolean) => {
    const uses = ({ alerts = [] }: Policies) => alerts.some(are);
    const scopes = defaults.filter(([, policies]) => uses(policies)).map(([scope]) => scope);
    return { tasks: tasks.filter(({ definition }) => uses(definition)).length, scopes };
  };
  const found: Finding[] = [];
  for (const carrier of Object.keys(CARRIERS) as Carrier[]) {
    const { type, deliverer } = CARRIERS[carrier];
    const who = withAlerts((one) => carrierOf(one) === carrier);
    const [gap] = (await coverage.gaps([{ queue: ALERTS_QUEUE, type }])).values();
    if (gap === undefined || (who.scopes.length === 0 && who.tasks === 0)) continue;
    found.push({
      code: "NO_DELIVERER",
      severity: "error",
      queue: ALERTS_QUEUE,
      carrier,
      deliverer,
      ...who,
      gap,
    });
  }
  const wrong = new Map<string, Omit<Extract<FindingFacts, { code: "ALERT_FORMAT" }>, "tasks" | "scopes">>();
  for (const one of [
    ...tasks.map(({ definition }) => definition),
    ...defaults.map(([, policies]) => policies),
  ])
    for (const to of one.alerts ?? []) {
      const instead = formatInstead(to);
      const { format } = to;
      if (instead)
        wrong.set(`${format} ${instead.host}`, {
          code: "ALERT_FORMAT",
          host: instead.host,
          format,
          instead: instead.format,
        });
    }
  for (const facts of wrong.values()) {
    const is = (one: AlertDestination) =>
      one.format === facts.format && formatInstead(one)?.host === facts.host;
    found.push({ ...facts, severity: "error", ...withAlerts(is) });
  }
  return found;
}

/** Deliveries of alerts that failed within the last hour, or are late: their destination does not take them. */
export async function stuckDeliveries(
  scope: Scope,
  now: number,
  reasons: readonly StatusReasonFacts[],
): Promise<Finding[]> {
  if (reasons.some(({ code }) => code === "ALERTS_FAIL")) return [];
  const { deliveries } = await undelivered(scope);
  // Those that were not tried yet are a symptom of this reason.
  const reported = reasons.some(({ code }) => code === "ALERTS_UNDELIVERED");
  const failing = deliveries.filter(
    ({ state, at, error }) =>
      (state === "failed" && now - at < UNDELIVERED.failed) ||
      (state === "waiting" && now - at > UNDELIVERED.late && (!reported || error !== undefined)),
  );
  if (failing.length === 0) return [];
  const error = failing.find(({ error }) => error !== undefined)?.error?.split("\n")[0];
  return [
    {
      code: "ALERTS_FAIL",
      severity: "warning",
      queue: ALERTS_QUEUE,
      deliveries: failing.length,
      to: [...new Set(failing.map((one) => one.to))].slice(0, NAMED),
      ...(error !== undefined && { error }),
    },
  ];
}
