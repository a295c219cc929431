import { createHash } from "node:crypto";
import { ALERTS_QUEUE, CarillonError, isCarillonError, parseTask } from "@carillon/core";
import { storedInstant } from "@carillon/core/internal";
import { type Alert, EMAIL_TYPE, revisionOf, type Store } from "@carillon/store";

/** The alerts of this many ms go into one mail. */
const WINDOW = 60_000;
/** A mail that is due sooner than this takes no more alerts: they go into the next one. */
const CLOSED = 5_000;
/** Alerts that a mail describes; of more it says only how many. */
const DESCRIBED = 100;
/** Nodes that add to the same mail at the same moment. */
const TRIES = 20;

interface Payload {
  readonly to: string;
  readonly alerts: readonly Record<string, unknown>[];
  /** Further ones. */
  readonly more: number;
}

/** Collects alerts by owner and address: a mail is a one-off task whose payload grows until it is due. */
export class AlertMails {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Adds an alert to the next mail. One that was added before changes nothing. @throws `CONFLICT` */
  async add(alert: Alert, to: string, body: Record<string, unknown>): Promise<void> {
    const queue = ALERTS_QUEUE;
    const { owner } = alert.task;
    const now = await this.#store.tasks.time(queue);
    const at = Math.ceil((now + CLOSED) / WINDOW) * WINDOW;
    const whose = createHash("sha256").update(`${owner} ${to}`).digest("hex").slice(0, 24);
    const id = `mail-${whose}-${(at / WINDOW).toString(36)}`;
    for (let tries = 0; tries < TRIES; tries++) {
      const stored = await this.#store.tasks.get({ queue, owner, id });
      const before = (stored?.definition.payload ?? { to, alerts: [], more: 0 }) as unknown as Payload;
      if (before.alerts.some((one) => isSame(one, alert))) return;
      const payload =
        before.alerts.length < DESCRIBED
          ? { ...before, alerts: [...before.alerts, body] }
          : { ...before, more: before.more + 1 };
      const schedule = { at: storedInstant(at, "at") };
      const retry = { attempts: 8, delay: "5s", max: "1h" };
      const parsed = parseTask({ id, type: EMAIL_TYPE, queue, owner, schedule, payload, retry });
      const ifRevision = stored ? revisionOf(stored.fields) : "absent";
      try {
        await this.#store.tasks.put(queue, [parsed], { once: true, ifRevision });
        return;
      } catch (error) {
        if (!isCarillonError(error, "CONFLICT")) throw error;
      }
    }
    throw new CarillonError("CONFLICT", `the mail to ${to} kept changing.`);
  }
}

function isSame(one: Record<string, unknown>, { kind, task, run, at }: Alert): boolean {
  const { queue, id } = one["task"] as Alert["task"];
  return (
    one["kind"] === kind && queue === task.queue && id === task.id && one["run"] === run && one["at"] === at
  );
}
