import { type AlertKind, isName, parseLocalName, type TaskName } from "@carillon/core";
import type { NamespaceKeys } from "./keys.js";
import type { Link } from "./link.js";
import type { Scripts } from "./scripts.js";

/** Something that someone wants to know of. */
export interface Alert {
  readonly kind: AlertKind;
  readonly task: TaskName;
  /** The run that it is about; undefined for a missed deadline. */
  readonly run?: string;
  /** UTC ms: when it happened, or the deadline. */
  readonly at: number;
  /** What went wrong, shortened. */
  readonly error?: string;
}

/** One that is to be handed on, and the line that it is kept as. */
interface WaitingAlert {
  readonly alert: Alert;
  /** As its bytes: what is no UTF-8 would be another one as text, and stay for ever. */
  readonly line: Buffer;
}

/** Alerts handed on, and deadlines looked at, in one step. */
const BATCH = 100;

/** What alerts are about, kept from the moment it happens until a node has handed it on. */
export class AlertRepository {
  readonly #link: Link;
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;

  constructor(link: Link, keys: NamespaceKeys, scripts: Scripts) {
    this.#link = link;
    this.#keys = keys;
    this.#scripts = scripts;
  }

  /** The oldest ones; they stay until they are `told`. @param passed so many are passed over */
  async waiting(queue: string, passed = 0): Promise<WaitingAlert[]> {
    const lines = await this.#link.ask((client) =>
      client.lrangeBuffer(this.#keys.queue(queue).alerts, passed, passed + BATCH - 1),
    );
    const waiting = lines.flatMap((line) => decode(queue, line));
    if (waiting.length === lines.length) return waiting;
    // What Carillon did not write must not keep the others from being told.
    const sound = new Set(waiting.map(({ line }) => line));
    await this.told(
      queue,
      lines.filter((line) => !sound.has(line)),
    );
    return this.waiting(queue, passed);
  }

  /** What these `lines` are was handed on. Returns how many are left. */
  async told(queue: string, lines: readonly Buffer[]): Promise<number> {
    const keys = this.#keys.queue(queue);
    return (await this.#link.run(this.#scripts.told, [keys.alerts, keys.next], lines)) as number;
  }

  /** Looks for deadlines that passed. Returns whether there may be more. */
  async missed(queue: string): Promise<boolean> {
    const keys = this.#keys.queue(queue);
    const found = await this.#link.run(
      this.#scripts.expected,
      [keys.expected, keys.next, keys.alerts],
      [BATCH, keys.task("")],
    );
    return (found as number) >= BATCH;
  }
}

function decode(queue: string, line: Buffer): WaitingAlert[] {
  try {
    const { task, error, ...rest } = JSON.parse(line.toString()) as Omit<Alert, "task"> & { task: string };
    const name = parseLocalName(task);
    if (typeof rest.kind !== "string" || !isName(name.owner) || !isName(name.id)) return [];
    const alert = { ...rest, task: { queue, ...name }, ...(error ? { error } : {}) };
    return [{ alert, line }];
  } catch {
    return [];
  }
}
