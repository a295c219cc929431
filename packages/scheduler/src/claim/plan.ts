import type { PackedItem } from "@carillon/store";
import type { Part } from "../part.js";
import { Backlog } from "./backlog.js";

/** Limit of what is planned, in tasks. */
const TASKS_AT_MOST = 16_000;

/** A task whose next claim is known before it is due. */
export interface Planned {
  readonly shard: Part;
  readonly local: string;
  /** Its time in the due index, UTC ms of Redis. */
  readonly at: number;
  /** Time from which it is committed, or read first. */
  from: number;
  /** The decision; undefined: the task must be read first. */
  item: PackedItem | undefined;
  /** Time from which another decision would be made. */
  until: number;
  /** In characters. */
  size: number;
  /** Whether it is read as soon as there is room, and not at its time. */
  soon: boolean;
  /** Number of times that the commit refused it because it had changed. */
  refusals: number;
}

/** A task whose decision is known. */
export type Ready = Planned & { readonly item: PackedItem };

export function unread(shard: Part, local: string, at: number, soon: boolean, refusals = 0): Planned {
  return { shard, local, at, from: at, item: undefined, until: 0, size: 0, soon, refusals };
}

/** The next claims of a queue that a node knows of, in the order in which they are committed when due. */
export class Plan {
  /** Names of tasks that are due, or soon, and not in the plan yet. */
  readonly backlog = new Backlog();
  #all: Planned[] = [];
  #firsts: Map<Part, { at: number; from: number }> | undefined;
  /** Whether any task that was read has a priority. */
  prioritized = false;
  /** Size of all decisions, in characters. */
  size = 0;

  /** @param first whether they go before all others */
  add(planned: readonly Planned[], first = false): void {
    this.#all = first ? [...planned, ...this.#all] : [...this.#all, ...planned];
    for (const one of planned) this.size += one.size;
    this.#firsts = undefined;
  }

  drop(which: (one: Planned) => boolean): void {
    this.#all = this.#all.filter((one) => {
      const dropped = which(one);
      if (dropped) this.size -= one.size;
      return !dropped;
    });
    this.#firsts = undefined;
  }

  /** Gives tasks that were to be read what was read of them; those that are not due any more are dropped. */
  fill(wanted: readonly Planned[], found: readonly Planned[]): void {
    const byName = new Map(found.map((one) => [one.local, one]));
    const asked = new Set(wanted);
    this.#all = this.#all.flatMap((one) => {
      if (!asked.has(one)) return [one];
      this.size -= one.size;
      const now = byName.get(one.local);
      if (!now) return [];
      this.size += now.size;
      now.refusals = one.refusals;
      return [now];
    });
    this.#firsts = undefined;
  }

  /** Takes the decisions that can be committed now. @param full whether fewer than `most` are left in the plan */
  take(now: number, parts: ReadonlySet<Part>, most: number, full: boolean): Ready[] {
    const taken = new Set<Planned>();
    for (const one of this.#all) {
      if (taken.size === most) break;
      if (one.from > now || !parts.has(one.shard)) continue;
      if (one.item && now < one.until) taken.add(one);
      // It may be more urgent than those behind it.
      else if (this.prioritized) break;
    }
    if (taken.size === 0 || (full && taken.size < most)) return [];
    this.drop((one) => taken.has(one));
    return [...taken] as Ready[];
  }

  /** Takes names from the backlog, unless enough tasks for all commits are waiting. @param most at a time */
  deal(now: number, parts: ReadonlySet<Part>, most: number, room: boolean): void {
    if (this.backlog.empty) return;
    let ready = 0;
    for (const one of this.#all) if (one.from <= now && parts.has(one.shard)) ready += 1;
    if (ready >= most || this.#all.length >= TASKS_AT_MOST || (ready > 0 && !room)) return;
    const dealt: Planned[] = [];
    while (dealt.length < most) {
      const name = this.backlog.take();
      if (!name) break;
      const shard = String(name.shard);
      // A shard that is not visited now is read again when it is.
      if (parts.has(shard)) dealt.push(unread(shard, name.local, name.at, true));
    }
    this.add(dealt);
  }

  /** Tasks that must be read now. @param room whether tasks may be read before their time */
  toRead(now: number, parts: ReadonlySet<Part>, most: number, room: boolean): Planned[] {
    const needed: Planned[] = [];
    for (const one of this.#all) {
      if (needed.length === most) break;
      if (!parts.has(one.shard)) continue;
      const isRead = one.item && now < one.until;
      if (!isRead && (one.from <= now || (one.soon && room))) needed.push(one);
    }
    return needed;
  }

  /** The earliest time of a shard's tasks in the plan, and when something must be done about them. */
  first(shard: Part, room: boolean): { at: number; from: number } | undefined {
    if (!this.#firsts) {
      this.#firsts = new Map();
      for (const { shard: of, at, from, soon, item } of this.#all) {
        const time = soon && room && !item ? Number.NEGATIVE_INFINITY : from;
        const first = this.#firsts.get(of) ?? { at, from: time };
        this.#firsts.set(of, { at: Math.min(at, first.at), from: Math.min(time, first.from) });
      }
    }
    const first = this.#firsts.get(shard);
    const at = this.backlog.first(shard);
    if (at === undefined) return first;
    const from = room ? Number.NEGATIVE_INFINITY : at;
    return first ? { at: Math.min(at, first.at), from: Math.min(from, first.from) } : { at, from };
  }

  get empty(): boolean {
    return this.#all.length === 0 && this.backlog.empty;
  }
}
