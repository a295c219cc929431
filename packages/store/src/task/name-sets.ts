import { OUTCOMES, type Outcome, type TaskState } from "@carillon/core";
import { shardOf } from "@carillon/core/internal";
import type { QueueKeys } from "../keys.js";
import type { RedisClient } from "../redis/connection.js";
import type { Link } from "../redis/link.js";

export interface TaskFilter {
  queue?: string | undefined;
  owner?: string | undefined;
  tag?: string | undefined;
  set?: string | undefined;
  /** With `set`: also tasks that were removed from it. */
  retired?: boolean | undefined;
  state?: TaskState | undefined;
  /** The outcome of the last run is one of these; a run with nothing to do is the last one only if all have been so. */
  outcomes?: ReadonlySet<Outcome> | undefined;
  /** No run of it has ended. */
  neverRan?: boolean | undefined;
  /** Its next check was due before this time (UTC ms). */
  dueBefore?: number | undefined;
  /** `owner/id type` contains it, in lower case; not empty, without control characters. */
  text?: string | undefined;
  /** Without the tasks of this queue, unless it is the filter's own. */
  except?: string | undefined;
}

/**
 * By queue, owner, id; by the next check, without tasks that have none; by the end of the last run, newest first,
 * without tasks that have none.
 */
export type TaskOrder = "name" | "next" | "last";

/** Names that one command handles. */
export const CHUNK = 1_000;

/** Names that are in one of these sets, or in none of them. */
export interface Condition {
  readonly sets: readonly string[];
  readonly wanted: boolean;
  /** Only members with a lower score count. */
  readonly below?: number | undefined;
}

/** Reads the sorted sets of names that are the indexes of tasks. */
export class NameSets {
  constructor(private readonly link: Link) {}

  /** Sends commands together. */
  ask<T>(commands: (client: RedisClient) => Promise<T>[]): Promise<T[]> {
    return this.link.ask((client) => Promise.all(commands(client)));
  }

  async size({ sets, below }: Condition): Promise<number> {
    const to = bound(below);
    return sum(await this.ask((client) => sets.map((set) => client.zcount(set, "-inf", to))));
  }

  /** The names that meet a condition. */
  async members({ sets, below }: Condition): Promise<string[]> {
    const to = bound(below);
    return (await this.ask((client) => sets.map((set) => client.zrangebyscore(set, "-inf", to)))).flat();
  }

  /** The score of each name in whichever of these sets it is. @param sharded each is only in the set of its shard */
  async scores(
    locals: readonly string[],
    sets: readonly string[],
    sharded: boolean,
  ): Promise<(number | undefined)[]> {
    const scores: (number | undefined)[] = new Array(locals.length).fill(undefined);
    for (let from = 0; from < locals.length; from += CHUNK) {
      const some = locals.slice(from, from + CHUNK).map((local, i) => ({ local, place: from + i }));
      await this.ask((client) =>
        sets.map(async (set, n) => {
          const mine = sharded ? some.filter(({ local }) => shardOf(local) === n) : some;
          if (mine.length === 0) return;
          const found = await client.zmscore(set, ...mine.map(({ local }) => local));
          for (const [i, score] of found.entries())
            if (score !== null) scores[(mine[i] as { place: number }).place] = Number(score);
        }),
      );
    }
    return scores;
  }

  /** Names that meet a condition. */
  async meet(
    keys: QueueKeys,
    locals: readonly string[],
    { sets, wanted, below }: Condition,
  ): Promise<boolean[]> {
    const scores = await this.scores(locals, sets, sets === keys.dues);
    return scores.map((at) => (at !== undefined && (below === undefined || at < below)) === wanted);
  }
}

function bound(below: number | undefined): string {
  return below === undefined ? "+inf" : `(${below}`;
}

/** The range of an owner's tasks among names: `0` follows `/`. */
export function rangeOf(owner: string): [first: string, last: string] {
  return [`[${owner}/`, `(${owner}0`];
}

/** A member of the index of all names as `owner/id`. */
export function withoutType(name: string): string {
  const space = name.indexOf(" ");
  return space < 0 ? name : name.slice(0, space);
}

/** The part of a filter that indexes answer. */
export function conditionsOf(keys: QueueKeys, filter: TaskFilter): Condition[] {
  const { state, outcomes, neverRan, dueBefore, tag, set, retired } = filter;
  const lastOutcomes = OUTCOMES.map((outcome) => keys.lastOutcome(outcome));
  const off = (["paused", "finished"] as const).map((one) => keys.inState(one));
  return [
    ...(tag === undefined ? [] : [{ sets: [keys.tagged(tag)], wanted: true }]),
    ...(set === undefined
      ? []
      : [{ sets: [keys.owned(set)], wanted: true, ...(retired ? {} : { below: 1 }) }]),
    ...(state === undefined
      ? []
      : [
          state === "scheduled"
            ? { sets: off, wanted: false }
            : { sets: [keys.inState(state)], wanted: true },
        ]),
    ...(outcomes ? [{ sets: [...outcomes].map((outcome) => keys.lastOutcome(outcome)), wanted: true }] : []),
    ...(neverRan ? [{ sets: lastOutcomes, wanted: false }] : []),
    ...(dueBefore === undefined ? [] : [{ sets: keys.dues, wanted: true, below: dueBefore }]),
  ];
}

/** The indexes that an order by time goes by. */
export function setsOf(keys: QueueKeys, order: TaskOrder): readonly string[] {
  return order === "next" ? keys.dues : OUTCOMES.map((outcome) => keys.lastOutcome(outcome));
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
