import { localName, type OverlapPolicy, parseLocalName, type TaskName } from "@carillon/core";
import type { NamespaceKeys } from "./keys.js";
import type { Link } from "./link.js";
import type { Scripts } from "./scripts.js";
import { noHash } from "./task-errors.js";

/** Past occurrences of a task that are run again, or for the first time. Times in UTC ms. */
export interface Backfill {
  readonly id: string;
  readonly task: TaskName;
  readonly state: "running" | "done" | "cancelled";
  /** The nominal times, both included. */
  readonly from: number;
  readonly to: number;
  /** The last nominal time that is decided; before the first step, just before `from`. */
  readonly at: number;
  /** Occurrences in the range when it was put. */
  readonly total: number;
  readonly enqueued: number;
  readonly skipped: number;
  /** At most one occurrence in so many ms; 0: as fast as they can be. */
  readonly every: number;
  /** Instead of the task's overlap policy. */
  readonly overlap: OverlapPolicy | undefined;
  readonly by: string;
  readonly created: number;
}

/** A backfill that is over can be asked about for, in ms. */
const KEPT = 7 * 86_400_000;

export class BackfillRepository {
  readonly #link: Link;
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;

  constructor(link: Link, keys: NamespaceKeys, scripts: Scripts) {
    this.#link = link;
    this.#keys = keys;
    this.#scripts = scripts;
  }

  async put(backfill: Omit<Backfill, "created" | "state">): Promise<void> {
    const { id, task, from, to, at, total, every, overlap = "", by } = backfill;
    const fields = { state: "running", task: localName(task), from, to, at, total, every, overlap, by };
    await this.#write(task.queue, id, "", 0, { ...fields, enqueued: 0, skipped: 0 });
  }

  /** Its work is done, or it is to stop. Returns whether it was running. */
  async end(queue: string, id: string, state: "done" | "cancelled"): Promise<boolean> {
    return (await this.#write(queue, id, "running", KEPT, { state })) === "OK";
  }

  /** To be looked at again, after this many ms. */
  async later(queue: string, id: string, ms: number): Promise<void> {
    await this.#write(queue, id, "running", ms, { state: "running" });
  }

  async #write(
    queue: string,
    id: string,
    state: string,
    after: number,
    fields: Record<string, string | number>,
  ): Promise<string> {
    const keys = this.#keys.queue(queue);
    const word = await this.#link.run(
      this.#scripts["put-backfill"],
      [keys.backfill(id), keys.backfills, keys.next],
      [id, state, after, this.#keys.wake, queue, ...Object.entries(fields).flat()],
    );
    return word as string;
  }

  async drop(queue: string, id: string): Promise<void> {
    const keys = this.#keys.queue(queue);
    await this.#link.run(
      this.#scripts["drop-backfill"],
      [keys.backfill(id), keys.backfills, keys.next],
      [id],
    );
  }

  async get(queue: string, id: string): Promise<Backfill | undefined> {
    const { backfill } = this.#keys.queue(queue);
    const hash = await this.#link.ask((client) => client.hgetall(backfill(id)).catch(noHash));
    return decode(queue, id, hash);
  }

  /** Those of a queue, the next to be looked at first. @param until only those that are due by then */
  async list(queue: string, until: number | "+inf" = "+inf", limit = 1_000): Promise<Backfill[]> {
    const ids = await this.#link.ask((client) =>
      client.zrangebyscore(this.#keys.queue(queue).backfills, "-inf", until, "LIMIT", 0, limit),
    );
    const all = await Promise.all(ids.map((id) => this.get(queue, id)));
    return all.filter((one) => one !== undefined);
  }
}

function decode(queue: string, id: string, hash: Record<string, string>): Backfill | undefined {
  if (!hash.task) return undefined;
  const number = (field: string) => Number(hash[field] ?? 0);
  return {
    id,
    task: { queue, ...parseLocalName(hash.task) },
    state: hash.state as Backfill["state"],
    from: number("from"),
    to: number("to"),
    at: number("at"),
    total: number("total"),
    enqueued: number("enqueued"),
    skipped: number("skipped"),
    every: number("every"),
    overlap: (hash.overlap || undefined) as OverlapPolicy | undefined,
    by: hash.by ?? "",
    created: number("created"),
  };
}
