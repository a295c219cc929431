import { randomBytes } from "node:crypto";
import {
  ALERTS_QUEUE,
  type AlertDestination,
  type AlertKind,
  CarillonError,
  DEFAULT_OWNER,
  parseTask,
  type Silence,
  type SilenceScope,
} from "@carillon/core";
import {
  assertOptions,
  assertSilenceScope,
  DESTINATIONS,
  parsePolicies,
  quote,
  shownTarget,
} from "@carillon/core/internal";
import type { Alert, StoredChange } from "@carillon/store";
import { instant } from "../instant.js";
import { assertEntry } from "./changes.js";
import { type Holds, holdsOf } from "./holds.js";
import { shortText, wholeNumber } from "./input.js";
import type { Scope } from "./scope.js";
import { listTasks } from "./task-reader.js";
import type { AuthorOptions } from "./types.js";
import type { Task } from "./view.js";

/** An alert that was delivered or silenced. */
export interface AlertRecord extends Alert {
  /** Time of that, UTC ms of Redis time. */
  readonly recorded: number;
  /** Hosts of webhooks and e-mail addresses that it was sent to. */
  readonly to: readonly string[];
  /** The silence that suppressed its delivery. */
  readonly silenced?: string;
}

/** Selects alerts to list. */
export interface AlertFilter {
  readonly kind?: AlertKind | undefined;
  /** At most this many; default 100, at most 1,000. */
  readonly limit?: number | undefined;
  /** The cursor of the previous page. */
  readonly cursor?: string | undefined;
}

export interface AlertPage {
  readonly alerts: AlertRecord[];
  /** Gives the next page; undefined: this was the last. */
  readonly cursor: string | undefined;
}

/** A request or a mail that is not sent yet. */
export interface Delivery {
  /** Id of the task that sends it, in the queue of alerts. */
  readonly id: string;
  readonly owner: string;
  /** Host of the webhook, or the e-mail address. */
  readonly to: string;
  /** `collecting`: until `at`; `waiting`: for a worker, or for its next attempt; `failed`: after its last one. */
  readonly state: "collecting" | "waiting" | "failed";
  /** Due time, UTC ms. */
  readonly at: number;
  /** The kinds of its alerts. */
  readonly kinds: readonly string[];
  readonly error?: string;
}

/** Alerts and deliveries that have reached nobody yet. */
export interface Undelivered {
  /** Alerts that wait for a node. */
  readonly alerts: readonly Alert[];
  readonly deliveries: readonly Delivery[];
}

/** Alerts to silence, and for how long. */
export interface SilenceInput extends SilenceScope {
  /** End: ISO 8601 with offset, a Date or epoch ms. */
  readonly until: string | number | Date;
  /** At most 500 characters. Default: none. */
  readonly reason?: string | undefined;
  /** The name of the person or service that silences, at most 500 characters. Default: the client's `by`. */
  readonly by?: string | undefined;
}

const STEP = 500;
/** Deliveries, and alerts of a queue, that are listed. */
const MOST = 100;

/** The alerts of a namespace, at `client.alerts`. For a bound client, those about tasks of its owner. */
export class Alerts {
  readonly #scope: Scope;

  /** @internal */
  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /**
   * The last alerts, newest first, of at most 10,000: those that were delivered, if only to `onAlert`, and those that were silenced.
   *
   * @throws `INVALID_OPTION`
   */
  async list(filter: AlertFilter = {}): Promise<AlertPage> {
    assertOptions(filter, ["kind", "limit", "cursor"]);
    const limit = wholeNumber(filter.limit ?? 100, "limit", 1, 1_000);
    if (filter.kind !== undefined) assertSilenceScope({ kind: filter.kind });
    const { owner, store } = this.#scope;
    let before = assertEntry(filter.cursor);
    const alerts: AlertRecord[] = [];
    for (;;) {
      const found = await store.alertLog.page(before, STEP);
      for (const stored of found) {
        before = stored.id;
        const alert = decode(stored);
        if (!alert || (owner !== undefined && alert.task?.owner !== owner)) continue;
        if (filter.kind !== undefined && alert.kind !== filter.kind) continue;
        alerts.push(alert);
        if (alerts.length === limit) return { alerts, cursor: stored.id };
      }
      if (found.length < STEP) return { alerts, cursor: undefined };
    }
  }

  /**
   * Alerts that wait for a node, deliveries that wait for a worker or failed, and digests that are collected: the first
   * hundred of each.
   */
  async undelivered(): Promise<Undelivered> {
    const { owner, store } = this.#scope;
    const queues = [...new Set([...(await this.#scope.queues()), ALERTS_QUEUE])];
    const waiting = await Promise.all(queues.map((queue) => store.alerts.waiting(queue)));
    const alerts = waiting
      .flat()
      .map(({ alert }) => alert)
      .filter(({ task }) => owner === undefined || task?.owner === owner)
      .slice(0, MOST);
    const { tasks } = await listTasks(this.#scope, { queue: ALERTS_QUEUE, limit: 1_000 });
    return { alerts, deliveries: tasks.flatMap(deliveryOf).slice(0, MOST) };
  }

  /**
   * Alerts about the namespace whose incidents have not ended. Those of a task: `incidents` of `client.runs.stats`.
   * @throws `FORBIDDEN` for a bound client
   */
  async incidents(): Promise<Alert[]> {
    this.#scope.assertUnbound();
    return this.#scope.store.alerts.incidents();
  }

  /**
   * Sends a test alert to a webhook or an e-mail address, once, by a worker that delivers alerts. Returns its run, whose outcome tells
   * whether it arrived: `client.runs.get`.
   *
   * @throws `INVALID_OPTION`
   */
  async test(
    destination: Pick<AlertDestination, "url" | "email">,
    options: AuthorOptions = {},
  ): Promise<{ run: string }> {
    assertOptions(destination, ["url", "email"]);
    assertOptions(options, ["by"]);
    const by = this.#scope.author(options.by);
    const { url, email } = checked(destination);
    const { store } = this.#scope;
    const at = await store.serverTime();
    const alert = { kind: "test", namespace: store.namespace, at, message: "A test of this destination." };
    const [type, payload] =
      url === undefined
        ? [DESTINATIONS.email.type, { to: email, alerts: [alert], more: 0 }]
        : [DESTINATIONS.url.type, { url, alert }];
    const id = `test-${randomBytes(8).toString("hex")}`;
    const owner = this.#scope.owner ?? DEFAULT_OWNER;
    const parsed = parseTask({ id, type, queue: ALERTS_QUEUE, owner, schedule: { at }, payload });
    const { registry, claims } = store;
    const entered = await registry.enter(ALERTS_QUEUE);
    try {
      const enqueued = await claims.enqueueNow(parsed, this.#scope.identity(by), entered);
      if (enqueued) return { run: enqueued.run };
    } finally {
      await registry.leave(ALERTS_QUEUE, entered);
    }
    throw new CarillonError("OWNER_LIMIT", "the queue of alerts has a limit.", {
      remedy: "Remove it: alerts are not limited.",
    });
  }

  /**
   * Silences alerts until a time: those that match are recorded, and not delivered, not later either.
   *
   * @throws `INVALID_OPTION`, `INVALID_NAME`; `FORBIDDEN` for another owner than the client is bound to
   */
  async silence(input: SilenceInput): Promise<Silence> {
    const { silence, by } = await this.#checkedSilence(input);
    const { owner, task, queue, kind, until, reason } = silence;
    await this.#scope.store.alerts.silence(silence);
    const details = { silence: silence.id, until, kind, reason };
    this.#scope.log("silence", { owner, id: task, queue }, by, { details });
    return silence;
  }

  /**
   * Counts the tasks whose alerts a silence would suppress, and puts none: a dry run. A scope that matches nothing gets the warning
   * `MATCHES_NOTHING`, with the nearest name.
   *
   * @throws as `silence`
   */
  async previewSilence(input: SilenceInput): Promise<Holds> {
    const { silence } = await this.#checkedSilence(input);
    return holdsOf(this.#scope, silence, silence);
  }

  /** @throws as `silence` */
  async #checkedSilence(input: SilenceInput): Promise<{ silence: Silence; by: string }> {
    assertOptions(input, ["owner", "task", "queue", "kind", "all", "until", "reason", "by"]);
    const { owner, task, queue, kind, all } = this.#scope.bind(input);
    const scope = { owner, task, queue, kind, all: this.#scope.owner === undefined ? all : undefined };
    assertSilenceScope(scope);
    const [by, reason] = [this.#scope.author(input.by), shortText(input.reason, "reason")];
    const until = instant(input.until, "until");
    const { store } = this.#scope;
    const created = await store.serverTime();
    if (until <= created)
      throw new CarillonError("INVALID_OPTION", "in the past.", {
        field: "until",
        remedy: "Give the time at which the silence ends.",
      });
    const given = Object.entries(scope).filter(([, value]) => value !== undefined && value !== false);
    const silence: Silence = {
      id: randomBytes(6).toString("hex"),
      ...Object.fromEntries(given),
      ...{ until, created, ...(reason && { reason }), ...(by && { by }) },
    };
    return { silence, by };
  }

  /** Current silences, the first to end first. */
  async silences(): Promise<Silence[]> {
    const { store, owner } = this.#scope;
    const all = await store.alerts.silences(await store.serverTime());
    return all.filter((one) => owner === undefined || one.owner === owner);
  }

  /** Ends a silence. @throws `SILENCE_NOT_FOUND` */
  async unsilence(id: string, options: AuthorOptions = {}): Promise<void> {
    assertOptions(options, ["by"]);
    const by = this.#scope.author(options.by);
    const silence = (await this.silences()).find((one) => one.id === id);
    if (silence && (await this.#scope.store.alerts.unsilence(id))) {
      const { owner, task, queue } = silence;
      return this.#scope.log("unsilence", { owner, id: task, queue }, by, { details: { silence: id } });
    }
    throw new CarillonError("SILENCE_NOT_FOUND", `there is no silence ${quote(id)}.`, {
      field: "id",
      remedy: "It may have ended: list the silences.",
    });
  }
}

/** @throws `INVALID_OPTION` */
function checked({ url, email }: Pick<AlertDestination, "url" | "email">): { url?: string; email?: string } {
  try {
    const given = { ...(url !== undefined && { url }), ...(email !== undefined && { email }) };
    parsePolicies({ alerts: [{ on: ["failed"], ...given }] });
    return given;
  } catch (error) {
    if (!(error instanceof CarillonError)) throw error;
    const field = error.field?.replace(/^alerts\[0\]\.?/, "");
    const { remedy } = error;
    const text = error.message.replace(/^[^:]*: /, "");
    throw new CarillonError("INVALID_OPTION", text, { ...(field && { field }), ...(remedy && { remedy }) });
  }
}

function decode({ at, entry }: StoredChange): AlertRecord | undefined {
  try {
    const { to = [], ...alert } = JSON.parse(entry) as Omit<AlertRecord, "recorded">;
    return { ...alert, recorded: at, to };
  } catch {
    return undefined;
  }
}

interface Payload {
  readonly url?: string;
  readonly to?: string;
  readonly alert?: { readonly kind?: string; readonly alerts?: readonly { readonly kind?: string }[] };
  readonly alerts?: readonly { readonly kind?: string }[];
}

/** Empty if it was sent. */
function deliveryOf(task: Task): Delivery[] {
  // The heartbeat of a watchdog recurs.
  return "at" in task.schedule ? oneOff(task) : [];
}

function oneOff({
  id,
  owner,
  state,
  created,
  payload,
  openRuns,
  nextExecution,
  lastStatus,
}: Task): Delivery[] {
  const { url, to, alert, alerts = alert?.alerts ?? [alert] } = payload as Payload;
  const failed = lastStatus !== undefined && lastStatus.outcome !== "succeeded";
  if (!openRuns && state !== "scheduled" && !failed) return [];
  return [
    {
      ...{ id, owner, to: shownTarget({ url, email: to }) },
      state: openRuns ? "waiting" : state === "scheduled" ? "collecting" : "failed",
      at: nextExecution ?? created,
      kinds: [...new Set(alerts.map((one) => String(one?.kind)))],
      ...(lastStatus?.error !== undefined && { error: lastStatus.error }),
    },
  ];
}
