import type { AlertKind, TaskName } from "@carillon/core";
import { isName, parseLocalName } from "@carillon/core/internal";
import type { NamespaceKeys } from "./keys.js";
import type { Link } from "./redis/link.js";
import { ALERT, NEXT } from "./script/libraries.js";
import { answers, script } from "./script/script.js";
import type { Scripts } from "./script/scripts.js";

/** The type of the one-off tasks that deliver alerts to webhooks; a worker with `alertWebhook` runs them. */
export const ALERT_TYPE = "carillon.webhook";
/** The type of those that deliver the alerts of a minute to an e-mail address; a worker with `alertEmail` runs them. */
export const EMAIL_TYPE = "carillon.email";

/** Something that a person should know, raised once an incident. */
export interface Alert {
  readonly kind: AlertKind;
  readonly task: TaskName;
  /** The run that it is about, if it is about one. */
  readonly run?: string;
  /** UTC ms: when it happened, or the deadline that passed. */
  readonly at: number;
  /** The error, shortened. */
  readonly error?: string;
  /** Details of an alert that is about no run. */
  readonly message?: string;
  /** Kinds of the incidents that a `recovered` ends. */
  readonly ended?: readonly AlertKind[];
}

/** An alert that waits for delivery, and the line that stores it. */
interface WaitingAlert {
  readonly alert: Alert;
  /** Raw bytes: a line that is not UTF-8 would change as text, and could never be removed. */
  readonly line: Buffer;
}

/** Alerts delivered, and deadlines checked, in one step. */
const BATCH = 100;

const REMOVE_DELIVERED = script("remove-delivered", {
  keys: ["alerts", "next"],
  args: ["lines[]"],
  answer: answers<number>(),
});

const EXPECTED = script("expected", {
  keys: ["expected", "next", "alerts"],
  args: ["most"],
  uses: [NEXT, ALERT],
  answer: answers<number>(),
});

/** Alerts, stored until a node has delivered them. */
export class AlertRepository {
  readonly #link: Link;
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;

  constructor(link: Link, keys: NamespaceKeys, scripts: Scripts) {
    this.#link = link;
    this.#keys = keys;
    this.#scripts = scripts;
  }

  /** The oldest ones; they stay until `told` removes them. @param passed number of alerts to skip */
  async waiting(queue: string, passed = 0): Promise<WaitingAlert[]> {
    const lines = await this.#link.ask((client) =>
      client.lrangeBuffer(this.#keys.queue(queue).alerts, passed, passed + BATCH - 1),
    );
    const waiting = lines.flatMap((line) => decode(queue, line));
    if (waiting.length === lines.length) return waiting;
    // Corrupt or foreign lines must not block the delivery of the others.
    const sound = new Set(waiting.map(({ line }) => line));
    await this.removeDelivered(
      queue,
      lines.filter((line) => !sound.has(line)),
    );
    return this.waiting(queue, passed);
  }

  /** Number of alerts that wait for a node. */
  async count(queue: string): Promise<number> {
    return this.#link.ask((client) => client.llen(this.#keys.queue(queue).alerts));
  }

  /** Removes alerts that were delivered, by their lines. Returns the number left. */
  async removeDelivered(queue: string, lines: readonly Buffer[]): Promise<number> {
    return this.#scripts.run(REMOVE_DELIVERED, this.#keys.queue(queue), { lines });
  }

  /** Looks for deadlines that passed. Returns whether there may be more. */
  async missed(queue: string): Promise<boolean> {
    return (await this.#scripts.run(EXPECTED, this.#keys.queue(queue), { most: BATCH })) >= BATCH;
  }
}

/** As lib/alert.lua writes it. */
interface StoredAlert extends Omit<Alert, "task" | "ended"> {
  readonly task: string;
  readonly ended?: string;
}

function decode(queue: string, line: Buffer): WaitingAlert[] {
  try {
    const { task, error, ended, ...rest } = JSON.parse(line.toString()) as StoredAlert;
    const name = parseLocalName(task);
    if (typeof rest.kind !== "string" || !isName(name.owner) || !isName(name.id)) return [];
    const kinds = ended?.split(" ") as AlertKind[] | undefined;
    const alert = {
      ...{ ...rest, task: { queue, ...name } },
      ...(error && { error }),
      ...(kinds && { ended: kinds }),
    };
    return [{ alert, line }];
  } catch {
    return [];
  }
}
