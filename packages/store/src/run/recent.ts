import type { Outcome, Run, Trigger } from "@carillon/core";
import { delaysOf } from "@carillon/core/internal";
import type { QueueKeys } from "../keys.js";
import { readEach, readFields } from "../redis/hashes.js";
import type { Link } from "../redis/link.js";
import { scored } from "../redis/scored.js";
import { FACTS } from "../script/facts.js";
import type { Scripts } from "../script/scripts.js";
import { decodeRun } from "./codec.js";
import type { End } from "./failures.js";
import { decodeLedger, type Skip } from "./ledger.js";

/** Fields of a run's record that say what became of its occurrence; without results and output, which may be large. */
const FIELDS = ["info", "of", "type", "node", "state", "outcome", "started", "finished", "attempts"] as const;

/** Those of them that ticks and sums show. */
const SHORT = ["info", "of", "state", "outcome", "started", "finished"] as const;

/** A run without the fields that `SHORT` leaves out. */
export type ShortRun = Omit<Run, "type" | "node" | "attempts">;

/** The end of a run, as sums over many runs need it. */
export interface Ended {
  /** `owner/id` of its task. */
  readonly local: string;
  /** UTC ms. */
  readonly at: number;
  readonly outcome: Outcome;
  readonly started: number | undefined;
  readonly lateMs: number | undefined;
  readonly waitMs: number | undefined;
}

/** Decisions about a task. */
export interface Recent {
  /** In no order. */
  readonly runs: ShortRun[];
  /** Newest first. */
  readonly ledger: Skip[];
}

/**
 * Records of tasks of one queue: two round trips, however many they are. Corrupt data counts as none.
 *
 * @param most of each task: its newest open runs, final runs and ledger entries @param since only runs that have not
 * ended before this time
 */
export async function readRecent(
  { link, scripts }: { link: Link; scripts: Scripts },
  keys: QueueKeys,
  queue: string,
  locals: readonly string[],
  { most, since = 0 }: { most: number; since?: number | undefined },
): Promise<Recent[]> {
  const newest = ["WITHSCORES", "LIMIT", 0, most] as const;
  const [nameds, sets, histories, failed, ledgers] = await Promise.all([
    readEach(
      link,
      locals.map((local) => ["hget", keys.task(local), "open"] as const),
    ),
    readEach(
      link,
      locals.map((local) => ["zrevrange", keys.open(local), 0, most - 1] as const),
    ),
    readEach(
      link,
      locals.map((local) => ["zrevrangebyscore", keys.history(local), "+inf", since, ...newest] as const),
    ),
    readEach(
      link,
      locals.map((local) => ["zrevrangebyscore", keys.failures(local), "+inf", since, ...newest] as const),
    ),
    readEach(
      link,
      locals.map((local) => ["lrange", keys.ledger(local), 0, most - 1] as const),
    ),
  ]);
  const found = locals.map((_, i) => {
    const [named, set, history, failures, ledger] = [nameds[i], sets[i], histories[i], failed[i], ledgers[i]];
    const open = named === FACTS.inSet ? (set ?? []) : named ? [named] : [];
    const ended = scored([...(history ?? []), ...(failures ?? [])]).sort(([, a], [, b]) => b - a);
    const ids = [...open, ...ended.slice(0, most).map(([id]) => id)];
    return { ids, ledger: decodeLedger(ledger ?? []) };
  });
  const ids = found.flatMap((one) => one.ids);
  const records = await readShort(scripts, keys, queue, ids);
  let at = 0;
  return found.map(({ ids, ledger }) => {
    const runs = ids.flatMap((_, i) => {
      const run = records[at + i];
      return run ? [run] : [];
    });
    at += ids.length;
    return { runs, ledger };
  });
}

/** Does the same as `readBriefly`, faster. */
export function readShort(
  scripts: Scripts,
  keys: QueueKeys,
  queue: string,
  ids: readonly string[],
): Promise<(ShortRun | undefined)[]> {
  return readBriefly(scripts, keys, queue, ids, SHORT);
}

/** Runs without results and errors, in the order of their ids; undefined: there is no record. One round trip. */
export async function readBriefly(
  scripts: Scripts,
  keys: QueueKeys,
  queue: string,
  ids: readonly string[],
  fields: readonly string[] = FIELDS,
): Promise<(Run | undefined)[]> {
  const records = await readFields(scripts, ids.map(keys.run), fields);
  return records.map((values, i) => decodeRun(queue, ids[i] as string, present(fields, values)));
}

/** Ends of runs, without those whose records are gone. One round trip, and less work than reading the runs. */
export async function readEnded(scripts: Scripts, keys: QueueKeys, ends: readonly End[]): Promise<Ended[]> {
  const records = await readFields(
    scripts,
    ends.map(({ id }) => keys.run(id)),
    ["of", "info", "outcome", "started"],
  );
  const found: Ended[] = [];
  for (const [i, [of = "", info = "", outcome, begin]] of records.entries()) {
    if (of === "" || !outcome) continue;
    const [local = "", enqueued] = of.split(" ");
    // The fields of `encodeDetails`, found as scripts find them.
    const due = (info.includes('"due":') ? /"due":(\d+)/ : /"nominal":(\d+)/).exec(info)?.[1];
    const named = info.includes('"trigger":') ? /"trigger":"([a-z-]+)"/.exec(info)?.[1] : undefined;
    const started = begin ? Number(begin) : undefined;
    const trigger = (named ?? "schedule") as Trigger;
    const { lateMs, waitMs } = delaysOf({ trigger, due: Number(due), enqueued: Number(enqueued), started });
    found.push({ local, at: (ends[i] as End).at, outcome: outcome as Outcome, started, lateMs, waitMs });
  }
  return found;
}

function present(fields: readonly string[], values: readonly string[]): Record<string, string> {
  const hash: Record<string, string> = {};
  for (const [i, field] of fields.entries()) {
    const value = values[i];
    if (value) hash[field] = value;
  }
  return hash;
}
