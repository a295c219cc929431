import { type ClaimItem, type DueEntry, isForeign, type PackedCommit } from "@carillon/store";
import { keyOf } from "./agenda.js";

/** How long after its time what was prepared is used, in ms; then it is read anew. */
const USED_FOR = 2_000;
/** How many tasks of a shard are prepared. */
const TASKS_AT_MOST = 2_000;
/** How much is prepared, of all shards together, in characters. */
const SIZE_AT_MOST = 16_000_000;

/** The claims of a shard that were read, decided and packed ahead of their time. */
export class Prepared {
  readonly at: number;
  readonly commits: PackedCommit[] = [];
  /** Characters. */
  size = 0;
  /** Some of what was read has a priority. */
  prioritized = false;
  #tasks = 0;
  #until: number;
  /** The first priority of which a task could not be prepared: a task of a later one must not overtake it. */
  #before = Number.POSITIVE_INFINITY;

  /** @param grace after which an occurrence is decided otherwise, in ms */
  constructor(at: number, grace: number) {
    this.at = at;
    this.#until = at + Math.min(USED_FOR, grace);
  }

  /** Whether it would still be decided in the same way: no task in it has come to its next time, and it is not too old. */
  holds(now: number): boolean {
    return now < this.#until;
  }

  get full(): boolean {
    return this.#tasks >= TASKS_AT_MOST;
  }

  /**
   * Which of the tasks that were read, in their order, go into the next commit.
   *
   * @param foresee the decision at that time, where nothing but the clock is in between
   */
  choose(entries: readonly DueEntry[], foresee: (entry: DueEntry) => ClaimItem | undefined): ClaimItem[] {
    return entries.flatMap((entry) => {
      if (!entry.task || isForeign(entry.task)) return [];
      const { priority } = entry.task.definition;
      this.prioritized ||= priority > 0;
      const item = foresee(entry);
      if (item && priority <= this.#before) return [item];
      this.#before = Math.min(this.#before, priority);
      return [];
    });
  }

  add(commit: PackedCommit): void {
    this.commits.push(commit);
    this.#tasks += commit.items.length;
    for (const text of [...commit.keys, ...commit.args]) this.size += String(text).length;
    for (const { decision } of commit.items) {
      const { next } = decision;
      if (typeof next === "object" && "due" in next) this.#until = Math.min(this.#until, next.due);
    }
  }
}

/** All that a node has prepared, by queue and shard. */
export class Preparations {
  readonly #all = new Map<string, Prepared>();

  get(queue: string, shard: number): Prepared | undefined {
    return this.#all.get(keyOf(queue, String(shard)));
  }

  set(queue: string, shard: number, prepared: Prepared): void {
    this.#all.set(keyOf(queue, String(shard)), prepared);
  }

  /** Where it has not been prepared anew since. */
  drop(queue: string, shard: number, prepared: Prepared): void {
    if (this.get(queue, shard) === prepared) this.#all.delete(keyOf(queue, String(shard)));
  }

  /** What is too old to be used goes. */
  forget(now: number): void {
    for (const [key, { at }] of this.#all) if (at < now - USED_FOR) this.#all.delete(key);
  }

  get full(): boolean {
    let size = 0;
    for (const prepared of this.#all.values()) size += prepared.size;
    return size >= SIZE_AT_MOST;
  }
}

/** How many of the oldest, and of the newest, a fair choice is made among: all of them, mostly. */
export const WINDOW = TASKS_AT_MOST / 2;
