import { type DueOwner, grouped, isRunId, nominalOf, parseLocalName, shardOf } from "@carillon/core/internal";
import type { NamespaceKeys } from "../keys.js";
import { readEach } from "../redis/hashes.js";
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
  /** Whether more is due than was read. */
  readonly more: boolean;
  readonly entries: readonly DueEntry[];
}

/** Selects the due tasks to read; default: those that are due first. */
export interface WhichDue {
  /** Names to read, if they are still due, of any shards. */
  readonly names?: readonly string[] | undefined;
  /** Also reads tasks that become due until then, in UTC ms of Redis time. */
  readonly by?: number | undefined;
  /** Other shards to read due tasks of, in the order of due times. */
  readonly others?: readonly number[] | undefined;
  /** Nothing is read if more is due than the limit. */
  readonly whole?: boolean | undefined;
  /** Final runs that live again count as in the way: a commit was refused. Without it only the commit asks for them. */
  readonly final?: boolean | undefined;
}

/** A task's entry in the due index of its shard. `at`: UTC ms of Redis time. */
export interface DueName {
  readonly shard: number;
  readonly local: string;
  readonly at: number;
  /** 0: before all others. */
  readonly priority: number;
}

/** The due times of a shard whose names are read. */
export interface DueRange {
  readonly shard: number;
  /** Later times only. */
  readonly after?: number | undefined;
  readonly by: number;
  /** Number of names that were read before; default 0. */
  readonly pass?: number;
}

/** Most names that are read of one shard at a time. */
const NAMES = 250;
/** Most names that are read to count those of each owner. */
const COUNTED = 100_000;

const READ_DUE = script("read-due", {
  resident: true,
  once: "reads",
  keys: ["dues[]", "priorities", "frozen", "late"],
  args: ["limit", "names", "by", "whole", "final"],
  uses: [RECKON, QUOTA, LATE],
  answer: answers<[now: number, more: string, frozen: FrozenReply, late: string, ...tasks: string[]]>(),
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

  /** Reads due tasks of a shard, in the order of their times and, at one instant, of their priorities. */
  async readDue(queue: string, shard: number, limit: number, which: WhichDue = {}): Promise<DueBatch> {
    const keys = this.#keys.queue(queue);
    const names = grouped(which.names ?? [], shardOf);
    const shards = which.names ? [...names.keys()] : [shard, ...(which.others ?? [])];
    const [now, more, frozen, late, ...tasks] = await this.#scripts.run(
      READ_DUE,
      { ...keys, dues: shards.map((one) => keys.due(one)) },
      {
        limit,
        names: [...names.values()].map((some) => some.join(" ")).join(";"),
        by: which.by,
        whole: which.whole,
        final: which.final,
      },
    );
    const behindSince = late === "" ? undefined : Number(late);
    return {
      now,
      more: more === "1",
      entries: tasks.map((text) => ({
        ...dueEntry(queue, text),
        frozen: readFrozen(frozen),
        behindSince,
      })),
    };
  }

  /**
   * Reads the names of due tasks, some of each shard, in the order of their times.
   *
   * @returns `unread`: what is left of the ranges
   */
  async dueNames(
    queue: string,
    ranges: readonly DueRange[],
  ): Promise<{ names: DueName[]; unread: DueRange[] }> {
    const { priorities: key } = this.#keys.queue(queue);
    const [{ names, unread }, prioritized] = await Promise.all([
      this.#names(queue, ranges),
      this.#link.ask((client) => client.exists(key)),
    ]);
    if (prioritized === 0 || names.length === 0) return { names, unread };
    const [stored = []] = await readEach(this.#link, [["hmget", key, ...names.map(({ local }) => local)]]);
    const ranked = names.map((one, i) => ({
      ...one,
      priority: /^\d+$/.test(stored[i] ?? "") ? Number(stored[i]) : 0,
    }));
    return { names: ranked, unread };
  }

  /** The owner with most of what is due by a time. Undefined: nothing is. */
  async dueOwner(queue: string, by: number): Promise<DueOwner | undefined> {
    const { dues } = this.#keys.queue(queue);
    const counts = new Map<string, number>();
    let read = 0;
    let ranges: DueRange[] = dues.map((_, shard) => ({ shard, by }));
    while (ranges.length > 0 && read < COUNTED) {
      const { names, unread } = await this.#names(queue, ranges);
      for (const { local } of names) {
        const { owner } = parseLocalName(local);
        counts.set(owner, (counts.get(owner) ?? 0) + 1);
      }
      read += names.length;
      ranges = unread;
    }
    const [most] = [...counts].sort(([, a], [, b]) => b - a);
    if (!most) return undefined;
    const count = () =>
      this.#link.ask((client) => Promise.all(dues.map((key) => client.zcount(key, "-inf", by))));
    const due = ranges.length === 0 ? read : (await count()).reduce((sum, one) => sum + one);
    return { owner: most[0], tasks: most[1], read, due };
  }

  async #names(
    queue: string,
    ranges: readonly DueRange[],
  ): Promise<{ names: DueName[]; unread: DueRange[] }> {
    const keys = this.#keys.queue(queue);
    const read = await this.#link.ask((client) =>
      Promise.all(
        ranges.map(({ shard, after, by, pass = 0 }) =>
          after === undefined
            ? // By rank: an offset among times takes time with its size.
              client.zrange(keys.due(shard), pass, String(pass + NAMES - 1), "WITHSCORES")
            : client.zrangebyscore(keys.due(shard), `(${after}`, by, "WITHSCORES", "LIMIT", pass, NAMES),
        ),
      ),
    );
    const names: DueName[] = [];
    const unread: DueRange[] = [];
    for (const [i, flat] of read.entries()) {
      const range = ranges[i] as DueRange;
      const { shard, by, pass = 0 } = range;
      for (let at = 1; at < flat.length && Number(flat[at]) <= by; at += 2)
        names.push({ shard, local: flat[at - 1] as string, at: Number(flat[at]), priority: 0 });
      if (flat.length === 2 * NAMES && Number(flat.at(-1)) <= by)
        unread.push({ ...range, pass: pass + NAMES });
    }
    return { names, unread };
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
