import { z } from "zod";
import type { AlertBody, Batch, Destination } from "./destination.js";
import { email } from "./email.js";
import { json } from "./json.js";
import { pagerduty } from "./pagerduty.js";
import { revealed, type Secret } from "./secret.js";
import { slack } from "./slack.js";
import { teams } from "./teams.js";
import { template } from "./template.js";

export type { AlertBody, Batch, Destination, Mail } from "./destination.js";
export { hasPlaceholder, restored, revealed, Secret } from "./secret.js";

/** All formats. A new one is a file here, and a line in this list. */
export const DESTINATIONS = { json, slack, teams, pagerduty, template, email };

export type AlertFormat = keyof typeof DESTINATIONS;
export const ALERT_FORMATS = Object.keys(DESTINATIONS) as [AlertFormat, ...AlertFormat[]];

/** The type of the tasks that each carrier works, and the function whose task type a worker needs for it. */
export const CARRIERS = {
  http: { type: "carillon.webhook", deliverer: "alertWebhook" },
  mail: { type: "carillon.email", deliverer: "alertEmail" },
} as const satisfies Record<Destination["carrier"], object>;
export type Carrier = keyof typeof CARRIERS;

type Settings<Format extends AlertFormat> = z.ZodObject<(typeof DESTINATIONS)[Format]["fields"]>;
type Named<Format extends AlertFormat> = (typeof DESTINATIONS)[Format] extends { readonly implied: true }
  ? { format?: Format | undefined }
  : { format: Format };
type WithSecrets<Input> = { [Name in keyof Input]: Input[Name] | Secret };

/** A place that gets alerts, without the kinds that it gets. */
export type AlertTarget = {
  readonly [Format in AlertFormat]: { readonly format: Format } & Readonly<z.output<Settings<Format>>>;
}[AlertFormat];

/** As callers write it. */
export type AlertTargetInput = {
  [Format in AlertFormat]: Named<Format> & WithSecrets<z.input<Settings<Format>>>;
}[AlertFormat];

/** Reads secrets that were read from a stored destination, and the format that a target implies. */
function completed(given: unknown): unknown {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return given;
  const implied = () =>
    ALERT_FORMATS.find((format) => {
      const { implied, fields } = DESTINATIONS[format] as Destination;
      return implied && Object.keys(fields).some((name) => name in given);
    });
  return revealed("format" in given ? given : { ...given, format: implied() ?? "json" });
}

/** The schema of a destination with these further fields. */
export function targetSchema<More extends z.ZodRawShape>(
  more: More,
): z.ZodType<
  AlertTarget & Readonly<z.output<z.ZodObject<More>>>,
  AlertTargetInput & z.input<z.ZodObject<More>>
> {
  const [first, ...rest] = ALERT_FORMATS.map((format) =>
    z.strictObject({ ...more, format: z.literal(format), ...DESTINATIONS[format].fields }),
  );
  return z.preprocess(completed, z.discriminatedUnion("format", [first!, ...rest])) as never;
}

const target = targetSchema({});

/** A destination as people name it: a URL, by its host, an e-mail address, or a routing key with its format. */
export function targetInput(text: string, format: AlertFormat = impliedBy(text)): AlertTargetInput {
  const [name = ""] = Object.keys(DESTINATIONS[format].fields);
  return { format, [name]: text } as never;
}

function impliedBy(text: string): AlertFormat {
  return /^\w+:/.test(text) ? (URL.canParse(text) && formatOf(new URL(text).host)) || "json" : "email";
}

function formatOf(host: string): AlertFormat | undefined {
  return ALERT_FORMATS.find((one) => (DESTINATIONS[one] as { hosts?: RegExp }).hosts?.test(host));
}

/** @throws `ZodError` */
export function parseTarget(given: unknown): AlertTarget {
  return target.parse(given);
}

function plain(to: AlertTarget): { readonly it: Destination; readonly settings: never } {
  return { it: DESTINATIONS[to.format] as Destination, settings: revealed(to) as never };
}

export function carrierOf({ format }: Pick<AlertTarget, "format">): Carrier {
  return DESTINATIONS[format].carrier;
}

/** The URL or the address that it sends to, a secret. */
export function endpointOf(to: AlertTarget): string {
  const { it, settings } = plain(to);
  return it.endpoint(settings);
}

/** One line for everybody: the host of a webhook, with its format unless it is JSON, or the address of a mail. */
export function shownTarget(to: AlertTarget | undefined): string {
  if (to === undefined) return "?";
  const endpoint = endpointOf(to);
  if (carrierOf(to) === "mail") return endpoint;
  const { host } = new URL(endpoint);
  return to.format === "json" ? host : `${to.format} at ${host}`;
}

/** The format that the host of a destination takes instead of its own. */
export function formatInstead(to: AlertTarget): { format: AlertFormat; host: string } | undefined {
  // A template may have the form that its host takes.
  if (carrierOf(to) === "mail" || to.format === "template") return undefined;
  const { host } = new URL(endpointOf(to));
  const format = formatOf(host);
  return format === undefined || format === to.format ? undefined : { format, host };
}

/** The content of a task that delivers alerts, as it is read. */
export interface Delivery extends Batch {
  /** Undefined if it is of a format that this version does not know. */
  readonly to: AlertTarget | undefined;
}

/** The payload of the task that delivers these alerts: with secrets, because it is sent. */
export function deliveryPayload(to: AlertTarget, batch: Batch): Record<string, unknown> {
  const { format } = to;
  const settings = Object.keys(DESTINATIONS[format].fields).map((name) => [name, to[name as never]]);
  return { to: revealed({ format, ...Object.fromEntries(settings) }), ...batch };
}

/**
 * A delivery's stored payload with its secrets marked. Fields that are not known here are left out, because they may be
 * secrets of another version.
 */
export function readDelivery(payload: unknown): Delivery {
  const { to, namespace, alerts, at } = Object(payload) as Partial<Record<keyof Delivery, unknown>>;
  return {
    to: target.safeParse(to).data,
    namespace: String(namespace),
    alerts: Array.isArray(alerts) ? (alerts as AlertBody[]) : [],
    ...(at !== undefined && { at: Number(at) }),
  };
}

/** The requests of a delivery, or its mail. */
export function messagesOf({ to, ...batch }: Delivery & { readonly to: AlertTarget }) {
  const { it, settings } = plain(to);
  return it.carrier === "http"
    ? { url: it.endpoint(settings), bodies: it.bodies(batch, settings) }
    : { mail: it.mail(batch, settings) };
}
