import { ALERTS_QUEUE, type AlertKind, type Silence, type TaskName } from "@carillon/core";
import { isName, parseLocalName } from "@carillon/core/internal";
import { ONCE_ARGS } from "./marks.js";
import { Repository } from "./repository.js";
import { ALERT, NEXT, ONCE } from "./script/libraries.js";
import { answers, script } from "./script/script.js";

/** An alert, raised once per incident. */
export interface Alert {
  readonly kind: AlertKind;
  /** Absent for an alert about the whole namespace. */
  readonly task?: TaskName;
  /** For an alert about the namespace: the status code, and the affected queue and type, if any. */
  readonly code?: string;
  readonly queue?: string;
  readonly type?: string;
  /** The run that caused it, if there is one. */
  readonly run?: string;
  /** UTC ms: when it happened, or the deadline that passed. */
  readonly at: number;
  /** The error, shortened. */
  readonly error?: string;
  /** Id of the cause of its failure. The node that delivers it adds it. */
  readonly cause?: string;
  /** Details of an alert without a run. */
  readonly message?: string;
  /** Kinds of the incidents that a `recovered` ends. */
  readonly ended?: readonly AlertKind[];
}

interface WaitingAlert {
  readonly alert: Alert;
  /** Bytes, because decoding would change a line that is not UTF-8, and it could then never be removed. */
  readonly line: Buffer;
}

/** Alerts delivered, and deadlines checked, in one step. */
const BATCH = 100;

const REMOVE_DELIVERED = script("remove-delivered", {
  once: { repeats: "A line names one alert by its time and run." },
  keys: ["alerts", "next"],
  args: ["lines[]"],
  answer: answers<number>(),
});

const EXPECTED = script("expected", {
  once: { repeats: "It handles the deadlines that have passed when it runs." },
  keys: ["expected", "next", "alerts"],
  args: ["most"],
  uses: [NEXT, ALERT],
  answer: answers<number>(),
});

const NOTE_INCIDENTS = script("note-incidents", {
  once: "mark",
  keys: ["incidents", "alerts", "next", "marks"],
  args: ONCE_ARGS,
  each: { args: ["id", "lasts", "alert"] },
  uses: [ALERT, ONCE],
  answer: answers<"OK" | "DONE" | "STALE">(),
});

const COLLECT = script("collect", {
  once: "mark",
  keys: ["collected", "digests", "next", "marks"],
  args: [...ONCE_ARGS, "destination", "state", "due"],
  uses: [NEXT, ONCE],
  answer: answers<"OK" | "DONE" | "STALE">(),
});

/** A condition of the whole namespace that raises an alert once it lasts. */
export interface Incident {
  readonly lasts: boolean;
  readonly alert: Alert;
}

/** Alerts, stored until a node has delivered them. */
export class AlertRepository extends Repository {
  /**
   * The oldest waiting alerts; they stay until `removeDelivered`.
   * @param passed number of alerts to skip
   */
  async waiting(queue: string, passed = 0): Promise<WaitingAlert[]> {
    const lines = await this.link.ask((client) =>
      client.lrangeBuffer(this.keys.queue(queue).alerts, passed, passed + BATCH - 1),
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
    return this.link.ask((client) => client.llen(this.keys.queue(queue).alerts));
  }

  /** Removes alerts that were delivered, by their lines. Returns the number left. */
  async removeDelivered(queue: string, lines: readonly Buffer[]): Promise<number> {
    return this.scripts.run(REMOVE_DELIVERED, this.keys.queue(queue), { lines });
  }

  /** Raises an alert for each new lasting incident, and one for each known incident that is not among these. */
  async noteIncidents(incidents: readonly Incident[]): Promise<void> {
    const items = incidents.map(({ lasts, alert }) => {
      const { code = "", queue = "", type = "" } = alert;
      return { id: `${code} ${queue} ${type}`, lasts, alert: JSON.stringify(alert) };
    });
    const keys = this.keys.queue(ALERTS_QUEUE);
    await this.marks.change(keys.marks, "incidents", (once) =>
      this.scripts.run(NOTE_INCIDENTS, keys, once, items),
    );
  }

  /**
   * Changes what a destination collects.
   *
   * @param change gets what is stored, if anything is, and decides: its new state, undefined to forget it, and the time at which it must
   * be read again, UTC ms
   */
  async collect<T>(
    destination: string,
    change: (stored: unknown) => { state: object | undefined; due: number; answer: T },
  ): Promise<T> {
    const keys = this.keys.queue(ALERTS_QUEUE);
    const changed = await this.marks.change<{ answer: T }>(keys.marks, "collected", async (once) => {
      const text = await this.link.ask((client) => client.hget(keys.collected, destination));
      const { state, due, answer } = change(parsed(text));
      const to = { destination, state: state === undefined ? "" : JSON.stringify(state), due };
      const word = await this.scripts.run(COLLECT, keys, { ...once, ...to });
      return word === "STALE" ? word : { answer };
    });
    return changed.answer;
  }

  /** Destinations whose state must be read by now, at most `most`. @param now UTC ms of Redis time */
  async collectedBy(now: number, most: number): Promise<string[]> {
    const { digests } = this.keys.queue(ALERTS_QUEUE);
    return this.link.ask((client) => client.zrangebyscore(digests, "-inf", now, "LIMIT", 0, most));
  }

  async collected(): Promise<{ destination: string; state: unknown; due: number }[]> {
    const { collected, digests } = this.keys.queue(ALERTS_QUEUE);
    const [states, dues] = await this.link.ask((client) =>
      Promise.all([client.hgetall(collected), client.zrange(digests, 0, "-1", "WITHSCORES")]),
    );
    return Object.entries(states).map(([destination, text]) => ({
      destination,
      state: parsed(text),
      due: Number(dues[dues.indexOf(destination) + 1]),
    }));
  }

  async silence(silence: Silence): Promise<void> {
    await this.settings.field(this.keys, "silences", silence.id, JSON.stringify(silence));
  }

  /** Moves the end of a silence, if there still is one of this id. @param until UTC ms */
  async prolong(id: string, until: number): Promise<void> {
    await this.settings.change(this.keys, "silences", async (client, key) => {
      const silence = decodeSilence((await client.hget(key, id)) ?? "");
      return silence ? { set: [id, JSON.stringify({ ...silence, until })] } : {};
    });
  }

  /** Returns whether there were any. */
  async unsilence(...ids: readonly string[]): Promise<boolean> {
    return this.settings.change(this.keys, "silences", async (client, key) => {
      const stored = await client.hmget(key, ...ids);
      return { drop: ids.filter((_, i) => stored[i] !== null) };
    });
  }

  /**
   * Current silences, the first to end first. Deletes expired ones.
   * @param now UTC ms of Redis time
   */
  async silences(now: number): Promise<Silence[]> {
    const stored = await this.link.ask((client) => client.hgetall(this.keys.silences));
    const all = Object.entries(stored).map(([id, text]) => [id, decodeSilence(text)] as const);
    const over = all.filter(([, silence]) => silence === undefined || silence.until <= now);
    // If Redis refuses writes, a later call deletes them.
    if (over.length > 0) await this.unsilence(...over.map(([id]) => id)).catch(() => {});
    return all
      .flatMap(([, silence]) => (silence && silence.until > now ? [silence] : []))
      .sort((a, b) => a.until - b.until || (a.id < b.id ? -1 : 1));
  }

  /** Raises alerts for passed deadlines. Returns whether there may be more. */
  async missed(queue: string): Promise<boolean> {
    return (await this.scripts.run(EXPECTED, this.keys.queue(queue), { most: BATCH })) >= BATCH;
  }
}

/** Undefined if the text is corrupt or foreign. */
function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? "null") ?? undefined;
  } catch {
    return undefined;
  }
}

/** Undefined if the text is corrupt or foreign. */
function decodeSilence(text: string): Silence | undefined {
  const silence = parsed(text) as Partial<Silence> | undefined;
  return typeof silence?.id === "string" && Number.isFinite(silence.until) ? (silence as Silence) : undefined;
}

interface StoredAlert extends Omit<Alert, "task" | "ended"> {
  readonly task?: string;
  readonly ended?: string;
}

function decode(queue: string, line: Buffer): WaitingAlert[] {
  try {
    const { task, error, ended, ...rest } = JSON.parse(line.toString()) as StoredAlert;
    const name = task === undefined ? undefined : parseLocalName(task);
    const known = name === undefined || (isName(name.owner) && isName(name.id));
    if (typeof rest.kind !== "string" || !known) return [];
    const kinds = ended?.split(" ") as AlertKind[] | undefined;
    const alert = {
      ...rest,
      ...(name && { task: { queue, ...name } }),
      ...(error && { error }),
      ...(kinds && { ended: kinds }),
    };
    return [{ alert, line }];
  } catch {
    return [];
  }
}
