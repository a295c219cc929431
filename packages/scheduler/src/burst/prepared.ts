import { type ClaimItem, type DueEntry, isForeign, type PackedCommit } from "@carillon/store";
import { keyOf } from "../part.js";

/** Time in ms after its due time for which a preparation is used; then the tasks are read again. */
const USED_FOR = 2_000;
/** Most tasks of a shard that are prepared. */
const TASKS_AT_MOST = 2_000;
/** Limit for all preparations together, in characters. */
const SIZE_AT_MOST = 16_000_000;

/** Claims of one shard that were read, decided and packed ahead of their time. */
export class Prepared {
  readonly at: number;
  readonly commits: PackedCommit[] = [];
  /** In characters. */
  size = 0;
  /** Whether every task that is due then is in a commit. */
  complete = true;
  /** Whether any task that was read has a priority. */
  prioritized = false;
  #tasks = 0;
  #until: number;
  /** Most urgent priority of a task that could not be prepared: a less urgent task must not overtake it. */
  #before = Number.POSITIVE_INFINITY;

  /** @param grace lateness in ms after which an occurrence is decided differently */
  constructor(at: number, grace: number) {
    this.at = at;
    this.#until = at + Math.min(USED_FOR, grace);
  }

  /** Whether the same would be decided now: no task in it has reached its next time, and it is not too old. */
  holds(now: number): boolean {
    return now < this.#until;
  }

  get full(): boolean {
    return this.#tasks >= TASKS_AT_MOST;
  }

  /** The `items` that may go into the next commit, in the order in which their tasks were read. */
  choose(entries: readonly DueEntry[], items: readonly ClaimItem[]): ClaimItem[] {
    const byName = new Map(items.map((item) => [item.entry.local, item]));
    return entries.flatMap(({ local, task }) => {
      if (!task || isForeign(task)) {
        this.complete = false;
        return [];
      }
      const { priority } = task.definition;
      this.prioritized ||= priority > 0;
      const item = byName.get(local);
      if (item && priority <= this.#before) return [item];
      this.complete = false;
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

/** All preparations of a node, by queue and shard. */
export class Preparations {
  readonly #all = new Map<string, Prepared>();

  get(queue: string, shard: number): Prepared | undefined {
    return this.#all.get(keyOf(queue, String(shard)));
  }

  set(queue: string, shard: number, prepared: Prepared): void {
    this.#all.set(keyOf(queue, String(shard)), prepared);
  }

  /** Drops it unless a newer preparation has replaced it. */
  drop(queue: string, shard: number, prepared: Prepared): void {
    if (this.get(queue, shard) === prepared) this.#all.delete(keyOf(queue, String(shard)));
  }

  /** Drops preparations that are too old to be used. */
  forget(now: number): void {
    for (const [key, { at }] of this.#all) if (at < now - USED_FOR) this.#all.delete(key);
  }

  get full(): boolean {
    let size = 0;
    for (const prepared of this.#all.values()) size += prepared.size;
    return size >= SIZE_AT_MOST;
  }
}

/** Number of oldest, and of newest, due tasks among which a fair choice is made: mostly all of them. */
export const WINDOW = TASKS_AT_MOST / 2;
