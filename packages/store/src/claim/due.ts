import { isRunId, nominalOf } from "@carillon/core/internal";
import type { NamespaceKeys } from "../keys.js";
import type { Link } from "../redis/link.js";
import { FACTS } from "../script/facts.js";
import { LATE, QUOTA, RECKON } from "../script/libraries.js";
import { answers, script } from "../script/script.js";
import type { Scripts } from "../script/scripts.js";
import { readable } from "../task/codec.js";
import { type FrozenReply, readFrozen } from "./frozen.js";
import type { DueEntry } from "./writes.js";

export interface DueBatch {
  readonly now: number;
  /** Whether more is due than was read and is named in `rest`. */
  readonly more: boolean;
  readonly entries: readonly DueEntry[];
  /** Names that were chosen and did not fit. */
  readonly rest: readonly string[];
}

/** Selects the due tasks to read. */
export interface WhichDue {
  /** Number of tasks to skip, in the order of their times: those that this version cannot decide. */
  readonly pass?: number | undefined;
  /** Names to read, if they are still due. */
  readonly names?: readonly string[] | undefined;
  /** Also reads tasks that become due until then, in UTC ms of Redis time. */
  readonly by?: number | undefined;
  /** Number of the oldest, and of the newest, to choose from fairly; default four batches, and at most 120. */
  readonly window?: number | undefined;
  /** Other shards to read all due tasks of, in the order of due times; nothing is read if that exceeds the limit. */
  readonly others?: readonly number[] | undefined;
}

/** Largest window. Tasks that come due while a window is being drained wait for it. */
const WINDOW = 120;

const READ_DUE = script("read-due", {
  once: "reads",
  keys: ["due", "priorities", "frozen", "late", "others[]"],
  args: ["pass", "limit", "names", "by", "window"],
  uses: [RECKON, QUOTA, LATE],
  answer:
    answers<
      [now: number, more: string, rest: string, frozen: FrozenReply, late: string, ...tasks: string[]]
    >(),
});

export class DueReads {
  readonly #link: Link;
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;

  constructor(link: Link, keys: NamespaceKeys, scripts: Scripts) {
    this.#link = link;
    this.#keys = keys;
    this.#scripts = scripts;
  }

  /**
   * For each part of the queue (a shard's number, `r` the reconciler) the earliest time at which it must be checked.
   */
  async next(queue: string): Promise<Map<string, number>> {
    const flat = await this.#link.ask((client) =>
      client.zrange(this.#keys.queue(queue).next, 0, "-1", "WITHSCORES"),
    );
    const parts = new Map<string, number>();
    for (let i = 0; i < flat.length; i += 2) parts.set(flat[i] as string, Number(flat[i + 1]));
    return parts;
  }

  /** Due time of the first task of the queue. Undefined: none is. A task that waits for a run's end is not due before that. */
  async earliestDue(queue: string): Promise<number | undefined> {
    const parts = [...(await this.next(queue))].filter(([part]) => /^\d+$/.test(part));
    return parts.length === 0 ? undefined : Math.min(...parts.map(([, at]) => at));
  }

  /** Reads due tasks of a shard: a fair choice, unless `which` selects them. */
  async readDue(queue: string, shard: number, limit: number, which: WhichDue = {}): Promise<DueBatch> {
    const keys = this.#keys.queue(queue);
    const others = (which.others ?? []).map((other) => keys.due(other));
    const [now, more, rest, frozen, late, ...tasks] = await this.#scripts.run(
      READ_DUE,
      { ...keys, due: keys.due(shard), others },
      {
        pass: which.pass,
        limit,
        names: which.names?.join(" "),
        by: which.by,
        window: which.window ?? Math.min(4 * limit, WINDOW),
      },
    );
    const behindSince = late === "" ? undefined : Number(late);
    return {
      now,
      more: more === "1",
      rest: rest === "" ? [] : rest.split(" "),
      entries: tasks.map((text) => ({
        ...dueEntry(queue, text),
        frozen: readFrozen(frozen),
        behindSince,
      })),
    };
  }

  /** Time of the last claim that left something overdue. */
  async lastLate(queue: string): Promise<number | undefined> {
    const stored = await this.#link.ask((client) => client.get(this.#keys.queue(queue).late));
    return stored === null ? undefined : Number(stored.split(" ")[1]);
  }
}

/** @param text of one task, as `read-due.lua` says */
function dueEntry(queue: string, text: string): DueEntry {
  const [local = "", run = "", open, begun, over = "", since, ...flat] = text.split(FACTS.separator);
  return {
    local,
    task: readable(queue, local, flat[0] === "" ? [] : flat),
    running: runInWay(run, open, begun),
    over: over === "" ? [] : runIds(over.split(" ")),
    since: Number(since),
  };
}

/**
 * @param run its id, "" if there is none
 * @param times when a worker began it and when it was enqueued, `begun:enqueued`; empty if unknown
 */
export function runInWay(
  run: string,
  open: string | undefined,
  times: string | undefined,
): DueEntry["running"] {
  if (run === "") return undefined;
  const [begun, enqueued] = (times ?? "").split(":").map((time) => (time === "" ? undefined : Number(time)));
  return { run, open: open === "1", nominal: nominalOf(run), begun, enqueued };
}

/** Drops corrupt ids. */
export function runIds(ids: readonly string[]): string[] {
  return ids.filter(isRunId);
}
