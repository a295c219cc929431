import { parseLocalName } from "@carillon/core/internal";
import type { DueName, DueRange } from "@carillon/store";
import type { Part } from "../part.js";

/** Most names that are kept of a queue. Of more, each owner keeps the same number: its oldest and its newest. */
const NAMES_AT_MOST = 100_000;
/** Time in ms after which names that have come due meanwhile are read. */
const FRESH_AFTER = 50;

/** Names of one owner's due tasks, taken in turn from the oldest and from the newest. At one instant the higher priority goes first. */
class Share {
  #added: DueName[] = [];
  /** The next one is last in both. */
  #oldest: DueName[] = [];
  #newest: DueName[] = [];
  #turn = false;

  constructor(readonly owner: string) {}

  get size(): number {
    return this.#added.length + this.#oldest.length + this.#newest.length;
  }

  add(name: DueName): void {
    this.#added.push(name);
  }

  take(): DueName {
    if (this.#added.length > 0) this.#sort();
    this.#turn = !this.#turn;
    const [first, second] = this.#turn ? [this.#oldest, this.#newest] : [this.#newest, this.#oldest];
    return (first.pop() ?? second.pop()) as DueName;
  }

  #all(): DueName[] {
    const all = [...this.#oldest, ...this.#newest, ...this.#added];
    return all.sort((a, b) => a.at - b.at || a.priority - b.priority);
  }

  #sort(): void {
    const all = this.#all();
    this.#added = [];
    // An instant is not divided.
    const { at } = all[all.length >> 1] as DueName;
    const from = all.findIndex((one) => one.at === at) || all.findIndex((one) => one.at > at);
    const newest = from < 0 ? [] : all.splice(from);
    this.#newest = newest.sort((a, b) => a.at - b.at || b.priority - a.priority);
    this.#oldest = all.reverse();
  }

  /** @returns the names beyond `most`, which are given up */
  trim(most: number): DueName[] {
    if (this.size <= most) return [];
    this.#added = this.#all();
    this.#oldest = [];
    this.#newest = [];
    return this.#added.splice(Math.ceil(most / 2), this.size - most);
  }
}

/** Deals names out to owners in turn. The owner is the name's beginning. */
class Deal {
  /** Owners with names, in the order of their turns. */
  readonly #shares = new Map<string, Share>();
  #turns = this.#shares.values();

  add(name: DueName): void {
    const { owner } = parseLocalName(name.local);
    let share = this.#shares.get(owner);
    if (!share) {
      share = new Share(owner);
      this.#shares.set(owner, share);
    }
    share.add(name);
  }

  take(): DueName | undefined {
    while (this.#shares.size > 0) {
      const { value: share } = this.#turns.next();
      if (share) {
        const name = share.take();
        this.#shares.delete(share.owner);
        if (share.size > 0) this.#shares.set(share.owner, share);
        return name;
      }
      this.#turns = this.#shares.values();
    }
    return undefined;
  }

  trim(most: number): DueName[] {
    return [...this.#shares.values()].flatMap((share) => share.trim(most));
  }
}

/**
 * The names of all due tasks of a queue, if these do not fit in a read. They are dealt out to owners in turn, so that each owner with a
 * due task is among the first. Names that come due meanwhile are dealt out separately, and get half of the turns.
 */
export class Backlog {
  #old = new Deal();
  #fresh = new Deal();
  #turn = false;
  /** By shard: the number of its names, the time of the first one that was read, and the time up to which they were read. */
  readonly #parts = new Map<Part, { count: number; at: number; by: number }>();
  #size = 0;
  /** Most names of one owner. */
  #share = NAMES_AT_MOST / 2;
  #unread: readonly DueRange[] = [];

  get empty(): boolean {
    return this.#size === 0 && this.#unread.length === 0;
  }

  /** Begins to read these ranges, in place of what is unread. */
  begin(ranges: readonly DueRange[]): void {
    this.#unread = ranges;
  }

  /** The ranges to read next: the rest of those that were begun, or else the times since these. @param by end of such times */
  unread(parts: ReadonlySet<Part>, by: number): readonly DueRange[] {
    this.#unread = this.#unread.filter(({ shard }) => parts.has(String(shard)));
    if (this.#unread.length > 0) return this.#unread;
    for (const [part, one] of this.#parts)
      if (parts.has(part) && one.by + FRESH_AFTER <= by)
        this.#unread = [...this.#unread, { shard: Number(part), after: one.by, by }];
    return this.#unread;
  }

  /** @param names those that were read of the unread ranges @param unread the rest of these ranges */
  add(names: readonly DueName[], unread: readonly DueRange[]): void {
    const ranges = new Map(this.#unread.map((range) => [range.shard, range]));
    for (const name of names) {
      const { shard, at } = name;
      const fresh = ranges.get(shard)?.after !== undefined;
      (fresh ? this.#fresh : this.#old).add(name);
      const part = this.#parts.get(String(shard));
      if (part) part.count += 1;
      else this.#parts.set(String(shard), { count: 1, at, by: at });
      this.#size += 1;
    }
    for (const { shard, by } of ranges.values()) {
      const part = this.#parts.get(String(shard));
      if (part) part.by = by;
    }
    this.#unread = unread;
    this.#trim();
  }

  /** The next name. */
  take(): DueName | undefined {
    this.#turn = !this.#turn;
    let name = (this.#turn ? this.#fresh.take() : undefined) ?? this.#old.take();
    if (!name) {
      [this.#old, this.#fresh] = [this.#fresh, this.#old];
      name = this.#old.take();
    }
    if (name) this.#left(name);
    return name;
  }

  /** The time of the first name that was read of a shard. Undefined: it has no names. */
  first(part: Part): number | undefined {
    return this.#parts.get(part)?.at;
  }

  #left(name: DueName): void {
    const part = String(name.shard);
    const one = this.#parts.get(part);
    this.#size -= 1;
    if (one && --one.count === 0) this.#parts.delete(part);
  }

  #trim(): void {
    if (this.#size <= NAMES_AT_MOST) return;
    for (;;) {
      for (const name of [...this.#old.trim(this.#share), ...this.#fresh.trim(this.#share)]) this.#left(name);
      if (this.#size <= NAMES_AT_MOST / 2 || this.#share <= 1) return;
      this.#share /= 2;
    }
  }
}
