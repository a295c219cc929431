import { z } from "zod";
import type { Json } from "../json.js";
import type { TaskName } from "../names.js";
import type { Secret } from "./secret.js";

/** An alert as it is delivered. */
export interface AlertBody {
  readonly kind: string;
  /** UTC ms. Absent in a heartbeat. */
  readonly at?: number;
  readonly namespace: string;
  /** Absent for an alert about the whole namespace. */
  readonly task?: TaskName;
  readonly queue?: string;
  readonly code?: string;
  readonly type?: string;
  readonly outcome?: string;
  readonly nominal?: number;
  readonly run?: string;
  readonly attempts?: number;
  readonly consecutiveFailures?: number;
  /** Kinds of the incidents that a `recovered` ends. */
  readonly ended?: readonly string[];
  readonly message?: string;
  readonly error?: string;
  /** The page of the run, or of the task. */
  readonly link?: string;
  /** Id of the cause of its failure: the same for failures with the same outcome, error and place. */
  readonly cause?: string;
  /** Number of alerts, or of recoveries, that this one stands for: those of a kind and a cause. Absent: it is one alert. */
  readonly alerts?: number;
  /** When the first alert of this cause came, UTC ms. */
  readonly since?: number;
  /** Number of tasks that it has hit since, of their owners and queues, and of the tasks that have not recovered. */
  readonly tasks?: number;
  readonly owners?: number;
  readonly queues?: number;
  readonly open?: number;
  /** The first of these tasks, each as `owner/id`. */
  readonly named?: readonly string[];
  /** Alerts that were sent alone before, and have ended. */
  readonly closed?: readonly Pick<
    { [Name in keyof AlertBody]: AlertBody[Name] | undefined },
    "task" | "code" | "queue" | "type" | "ended"
  >[];
}

/** The alerts of one delivery. */
export interface Batch {
  readonly namespace: string;
  readonly alerts: readonly AlertBody[];
  /** Set for the alerts that were collected until this time, UTC ms. */
  readonly at?: number;
}

export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** Settings with their secrets as text. */
type Plain<Fields extends z.ZodRawShape> = {
  readonly [Name in keyof Fields]: z.output<Fields[Name]> extends Secret ? string : z.output<Fields[Name]>;
};

type Described<Fields extends z.ZodRawShape> = {
  /** Its settings, the target first. A secret one is marked by `secret`. */
  readonly fields: Fields;
  /** It is meant if a destination names no format and has its target. */
  readonly implied?: true | undefined;
  /** The URL or the address that it sends to. */
  endpoint(to: Plain<Fields>): string;
};

/** A service that takes JSON by POST. */
type HttpDestination<Fields extends z.ZodRawShape> = Described<Fields> & {
  readonly carrier: "http";
  /** The bodies of its requests, in their order. */
  bodies(batch: Batch, to: Plain<Fields>): readonly Json[];
  /** Hosts that take this format only. */
  readonly hosts?: RegExp;
};

/** Addresses that get mails. */
type MailDestination<Fields extends z.ZodRawShape> = Described<Fields> & {
  readonly carrier: "mail";
  mail(batch: Batch, to: Plain<Fields>): Mail;
};

/** Everything about one format of destinations. */
export type Destination<Fields extends z.ZodRawShape = z.ZodRawShape> =
  | HttpDestination<Fields>
  | MailDestination<Fields>;

/** Checks a destination, and infers its settings. */
export function destination<
  Fields extends z.ZodRawShape,
  const Carrier extends Destination["carrier"],
  const Implied extends true | undefined = undefined,
>(
  it: Extract<Destination<Fields>, { carrier: Carrier }> & {
    readonly fields: Fields;
    readonly implied?: Implied;
  },
): Destination<Fields> & { readonly carrier: Carrier; readonly implied: Implied } {
  return it as never;
}

function withoutCredentials(url: string): boolean {
  // Text that is not a URL has been refused already.
  if (!URL.canParse(url)) return true;
  const { username, password } = new URL(url);
  return username === "" && password === "";
}

/** An http or https URL of at most 2,048 characters. */
export const webhookUrl = z
  .url({ protocol: /^https?$/ })
  .max(2_048)
  .refine(withoutCredentials, "has a user name or password in it. Put a token into the path or the query.");
