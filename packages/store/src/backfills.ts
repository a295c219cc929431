import { CarillonError, type OverlapPolicy, type TaskName } from "@carillon/core";
import {
  conflict,
  defined,
  localName,
  parseLocalName,
  type ReplayedRun,
  type TimeRange,
} from "@carillon/core/internal";
import { newToken } from "./ids.js";
import { Repository } from "./repository.js";
import { FACTS } from "./script/facts.js";
import { NEXT, TASK } from "./script/libraries.js";
import { answers, script } from "./script/script.js";
import type { StoredTask } from "./task/codec.js";
import { isMoving, noHash } from "./task/errors.js";

/** Past occurrences of a task that are run again, or for the first time. Times in UTC ms. */
export interface Backfill {
  readonly id: string;
  readonly task: TaskName;
  /** Creation time of its task: a task that is put later under the same name is another one. Undefined: unknown. */
  readonly taskCreated?: number | undefined;
  readonly state: "running" | "done" | "cancelled";
  /** The nominal times, both included. */
  readonly from: number;
  readonly to: number;
  /** The last nominal time that is decided; before the first step, just before `from`. For a replay, an index of `runs`, from -1. */
  readonly at: number;
  /** Occurrences in the range when it was put. */
  readonly total: number;
  readonly enqueued: number;
  readonly skipped: number;
  /** Minimum interval between occurrences in ms; 0: as fast as possible. */
  readonly every: number;
  /** Instead of the task's overlap policy. */
  readonly overlap: OverlapPolicy | undefined;
  /** Only these nominal times, both ends included; undefined: all from `from` to `to`. */
  readonly ranges?: readonly TimeRange[] | undefined;
  /** These runs are run again, instead of nominal times. */
  readonly runs?: readonly ReplayedRun[] | undefined;
  /** Id of the call that started it together with others. */
  readonly batch?: string | undefined;
  /** The pause whose owed occurrences it runs: the resume that ended the pause has left it. */
  readonly pause?: StoredTask["paused"];
  readonly by: string;
  readonly created: number;
}

/** A backfill, and the time of its next check as Redis has it. */
export interface DueBackfill {
  readonly backfill: Backfill;
  readonly due: string;
}

/** A backfill to put. */
export type NewBackfill = Omit<Backfill, "created" | "state" | "enqueued" | "skipped">;

/** Backfills read at once. */
const PAGE = 500;
/** Retention of a backfill that has ended, in ms. */
const KEPT = 7 * 86_400_000;

const PUT_BACKFILL = script("put-backfill", {
  once: "value",
  keys: ["task", "backfill", "backfills", "next", "replaying"],
  args: ["id", "created", "state", "due", "after", "turn", "fields[]"],
  uses: [TASK],
  answer: answers<"OK" | "MISSING" | "STALE" | "OUTRUN" | `MOVING ${string}`>(),
});

const DROP_BACKFILL = script("drop-backfill", {
  once: { repeats: "No other backfill ever has its id." },
  keys: ["backfill", "backfills", "next"],
  args: ["id"],
  uses: [NEXT],
});

export class BackfillRepository extends Repository {
  /**
   * Stores a backfill, unless there is one with its id.
   * @param after delay before its first step, in ms
   * @param turn that the call has taken, if it has read what others run
   * @throws `CONFLICT` if its task is held for a move, or another call took the turn; `TASK_NOT_FOUND` if its task was deleted
   */
  async put(backfill: NewBackfill, after = 0, turn = ""): Promise<void> {
    const { id, task } = backfill;
    const name = localName(task);
    const fields = fieldsOf(backfill);
    const word = await this.#write({ queue: task.queue, local: name, id, after, turn }, "", fields);
    if (word === "OUTRUN")
      throw conflict("another replay or backfill has begun meanwhile.", "See what it runs, then call again.");
    if (word === "MISSING") throw new CarillonError("TASK_NOT_FOUND", `the task ${name} was deleted.`);
    if (word.startsWith("MOVING ")) throw isMoving(word.slice("MOVING ".length), name);
  }

  /**
   * Takes the turn in queues: calls that took it before put nothing more there, and what they have put can be read. A resume that leaves a
   * backfill takes it away too.
   */
  async takeTurn(queues: readonly string[]): Promise<string> {
    const turn = newToken();
    await this.link.ask((client) =>
      Promise.all(
        queues.map((queue) => client.set(this.keys.queue(queue).replaying, turn, "PX", FACTS.late)),
      ),
    );
    return turn;
  }

  /** Marks a backfill as done or cancelled. Returns whether it was running. */
  async end(queue: string, id: string, state: "done" | "cancelled"): Promise<boolean> {
    return (await this.#write({ queue, id, after: KEPT }, "running", { state })) === "OK";
  }

  /** Postpones the next check of a backfill by `ms`, unless it was postponed since that check was read. */
  async later({ backfill: { id, task }, due }: DueBackfill, ms: number): Promise<void> {
    await this.#write({ queue: task.queue, id, due, after: ms }, "running", { state: "running" });
  }

  /** @param local name of the task within its queue, if the backfill is new @param state that it must be in */
  async #write(
    {
      queue,
      local = "",
      id,
      due = "",
      after,
      turn = "",
    }: { queue: string; local?: string; id: string; due?: string; after: number; turn?: string },
    state: string,
    fields: Record<string, string | number>,
  ): Promise<string> {
    const { backfill, backfills, next, task, replaying } = this.keys.queue(queue);
    const keys = { backfill: backfill(id), backfills, next, task: task(local), replaying };
    const created = fields["taskCreated"];
    const args = { id, created, state, due, after, turn, fields: Object.entries(fields).flat() };
    return this.scripts.run(PUT_BACKFILL, keys, args);
  }

  async delete(queue: string, id: string): Promise<void> {
    const { backfill, backfills, next } = this.keys.queue(queue);
    await this.scripts.run(DROP_BACKFILL, { backfill: backfill(id), backfills, next }, { id });
  }

  async get(queue: string, id: string): Promise<Backfill | undefined> {
    const { backfill } = this.keys.queue(queue);
    const hash = await this.link.ask((client) => client.hgetall(backfill(id)).catch(noHash));
    return decode(queue, id, hash);
  }

  /** Backfills of a queue that are to be checked by then, by the time of that check. */
  async due(queue: string, until: number, limit: number): Promise<DueBackfill[]> {
    const flat = await this.link.ask((client) =>
      client.zrangebyscore(this.keys.queue(queue).backfills, "-inf", until, "WITHSCORES", "LIMIT", 0, limit),
    );
    const ids = flat.filter((_, i) => i % 2 === 0);
    const found = await Promise.all(ids.map((id) => this.get(queue, id)));
    return found.flatMap((backfill, i) => (backfill ? [{ backfill, due: flat[2 * i + 1] as string }] : []));
  }

  /** All backfills of a queue, in no order, a page at a time. */
  async *all(queue: string): AsyncGenerator<Backfill[]> {
    // Ids alone are small; the records may not be.
    const ids = await this.link.ask((client) => client.zrange(this.keys.queue(queue).backfills, 0, "-1"));
    for (let at = 0; at < ids.length; at += PAGE) yield this.#many(queue, ids.slice(at, at + PAGE));
  }

  async #many(queue: string, ids: readonly string[]): Promise<Backfill[]> {
    const all = await Promise.all(ids.map((id) => this.get(queue, id)));
    return all.filter((one) => one !== undefined);
  }
}

/** The fields of a new backfill, but for its creation time. */
export function fieldsOf(backfill: NewBackfill): Record<string, string | number> {
  const { id: _, task, overlap = "", ranges, runs, batch, pause, taskCreated, ...rest } = backfill;
  return {
    ...rest,
    state: "running",
    task: localName(task),
    overlap,
    enqueued: 0,
    skipped: 0,
    ...(ranges && { ranges: JSON.stringify(ranges) }),
    ...(runs && { runs: JSON.stringify(runs) }),
    ...(pause && { pause: JSON.stringify(pause) }),
    ...defined({ batch, taskCreated }),
  };
}

/** Undefined if there is none, or it is corrupt. */
function decode(queue: string, id: string, hash: Record<string, string>): Backfill | undefined {
  try {
    return hash.task ? read(queue, id, { ...hash, task: hash.task }) : undefined;
  } catch {
    return undefined;
  }
}

function read(queue: string, id: string, hash: Record<string, string> & { task: string }): Backfill {
  const { ranges, runs, batch, pause, taskCreated } = hash;
  const number = (field: string) => Number(hash[field] ?? 0);
  return {
    id,
    task: { queue, ...parseLocalName(hash.task) },
    ...(taskCreated !== undefined && { taskCreated: Number(taskCreated) }),
    state: hash.state as Backfill["state"],
    from: number("from"),
    to: number("to"),
    at: number("at"),
    total: number("total"),
    enqueued: number("enqueued"),
    skipped: number("skipped"),
    every: number("every"),
    overlap: (hash.overlap || undefined) as OverlapPolicy | undefined,
    ...(ranges !== undefined && { ranges: JSON.parse(ranges) as TimeRange[] }),
    ...(runs !== undefined && { runs: JSON.parse(runs) as ReplayedRun[] }),
    ...(batch !== undefined && { batch }),
    ...(pause !== undefined && { pause: JSON.parse(pause) as NonNullable<Backfill["pause"]> }),
    by: hash.by ?? "",
    created: number("created"),
  };
}
