import type { Schedule, TaskName } from "@carillon/core";
import { localName, parseLocalName, SHARDS } from "@carillon/core/internal";
import type { QueueKeys } from "../keys.js";
import { readHashes } from "../redis/hashes.js";
import type { Registry } from "../registry.js";
import { type Parts, Repository } from "../repository.js";
import { answers, script } from "../script/script.js";
import { isForeign, readable, type StoredTask } from "./codec.js";
import { countAll, countThese, type TaskCounts, totalOf } from "./counts.js";
import {
  CHUNK,
  conditionsOf,
  NameSets,
  rangeOf,
  setsOf,
  sum,
  type TaskFilter,
  type TaskOrder,
  withoutType,
} from "./name-sets.js";
import { byQueue, decodeCursor, type Entry, encodeCursor, merged, type Slice, sorted } from "./positions.js";
import { readTimings, type Timing } from "./timings.js";

const LIST_SCORED = script("list-scored", {
  once: "reads",
  keys: ["sets[]"],
  args: ["at", "after", "most"],
  answer: answers<string[][]>(),
});

const FIND_NAMES = script("find-names", {
  once: "reads",
  keys: ["tasks"],
  args: ["from", "to", "read", "text", "most"],
  answer: answers<string[]>(),
});

/** Names read for one page of a list: a filter that few tasks match must not read all of them. */
const MOST_READ = 5_000;
/** The same while names are searched for a text, which costs less. */
const MOST_SEARCHED = 16_000;
/** The same for an order by time, which needs all that match. */
const MOST_SEARCHED_FOR_TIMES = 40_000;
/** Tasks read for one page if no index has their types: each task must be read. */
const MOST_READ_FOR_TEXT = 1_000;
/** Names up to which an index is a shorter way than a search. */
const MOST_INSTEAD_OF_SEARCH = 500;
const SEARCHED_AT_ONCE = 4_000;

export type CountFilter = Pick<TaskFilter, "queue" | "owner" | "tag" | "except">;

/** May be short, even empty, before the last page: a filter reads a bounded number of tasks per page. */
export interface TaskPage {
  tasks: StoredTask[];
  /** Names among these whose data this version cannot read; indexes say that they match. */
  unreadable: TaskName[];
  /** The start of the next page; undefined: this was the last. */
  cursor: string | undefined;
}

/** Lists and counts tasks, by indexes: what an index tells is not read from each task. */
export class TaskListing extends Repository {
  readonly #registry: Registry;
  readonly #sets: NameSets;

  constructor(parts: Parts, registry: Registry) {
    super(parts);
    this.#registry = registry;
    this.#sets = new NameSets(parts.link);
  }

  /** A page. Tasks that are replanned, or run, between two pages of an order by time move. */
  async page(
    filter: TaskFilter,
    order: TaskOrder,
    limit: number,
    cursor: string | undefined,
  ): Promise<TaskPage> {
    const start = decodeCursor(cursor, order);
    const queues = (await this.#queuesOf(filter)).filter(
      (queue) => order !== "name" || queue >= (start?.queue ?? ""),
    );
    const few = await this.#few(queues, filter, order);
    // Names that an index may remove are read in larger parts.
    const narrowed = conditionsOf(this.keys.queue(""), filter).length > 0;
    const size = narrowed ? CHUNK : Math.max(limit, 100);
    const names = few
      ? sorted(few, start)
      : order === "name"
        ? this.#byName(queues, filter, start, size)
        : this.#byTime(queues, filter, order, start, size);
    const tasks: StoredTask[] = [];
    const unreadable: TaskName[] = [];
    let last: Entry | undefined;
    for await (const { entries, end } of names) {
      const left = await this.#narrowed(entries, filter);
      while (left.length > 0) {
        const some = left.splice(0, Math.max(limit - tasks.length, 20));
        for (const [i, task] of (await this.#read(some, filter)).entries()) {
          const { queue, local } = some[i] as Entry;
          if (task === "unreadable") unreadable.push({ queue, ...parseLocalName(local) });
          else if (task) tasks.push(task);
          if (tasks.length === limit || unreadable.length === limit)
            return { tasks, unreadable, cursor: encodeCursor(some[i] as Entry, order) };
        }
      }
      last = end;
    }
    return { tasks, unreadable, cursor: last && encodeCursor(last, order) };
  }

  /** @param dueBefore of those that count as overdue, UTC ms */
  async count(filter: CountFilter, dueBefore: number): Promise<TaskCounts> {
    const rows = (await this.#queuesOf(filter)).map(async (queue) => {
      const keys = this.keys.queue(queue);
      if (filter.owner === undefined && filter.tag === undefined)
        return [await countAll(this.#sets, keys, dueBefore)];
      const some = [];
      for await (const { entries } of this.#byName(
        [queue],
        filter,
        undefined,
        CHUNK,
        Number.POSITIVE_INFINITY,
      )) {
        const locals = entries.map(({ local }) => local);
        some.push(await countThese(this.#sets, keys, locals, dueBefore));
      }
      return some;
    });
    return totalOf((await Promise.all(rows)).flat());
  }

  /** The facts that decide the times of a queue's scheduled tasks, some at a time. */
  async *timings(
    filter: CountFilter & { readonly queue: string },
    known: Map<string, Schedule>,
  ): AsyncGenerator<Timing[]> {
    const keys = this.keys.queue(filter.queue);
    const names = this.#byName([filter.queue], filter, undefined, CHUNK, Number.POSITIVE_INFINITY);
    for await (const { entries } of names) {
      const locals = entries.map(({ local }) => local);
      yield await readTimings(this.scripts, keys, locals, known);
    }
  }

  async #queuesOf({ queue, except }: TaskFilter): Promise<string[]> {
    if (queue !== undefined) return [queue];
    return (await this.#registry.queues()).filter((one) => one !== except);
  }

  /** All names that can match, if an index shows that they are few. */
  async #few(queues: readonly string[], filter: TaskFilter, order: TaskOrder): Promise<Entry[] | undefined> {
    const { text } = filter;
    const found = await Promise.all(queues.map((queue) => this.#smallest(queue, filter, order)));
    const size = sum(found.map((one) => one.size));
    if (text !== undefined && order !== "name" && size > MOST_INSTEAD_OF_SEARCH) {
      const names = await this.#search(queues, filter);
      if (names) return this.#withTimes(names, order);
    }
    if (size > (text === undefined || order !== "name" ? MOST_READ : MOST_INSTEAD_OF_SEARCH))
      return undefined;
    const all = await Promise.all(found.map(({ read }) => read()));
    return this.#withTimes(all.flat(), order);
  }

  /** The index with the fewest names of a queue that can match. */
  async #smallest(
    queue: string,
    filter: TaskFilter,
    order: TaskOrder,
  ): Promise<{ size: number; read: () => Promise<Entry[]> }> {
    const keys = this.keys.queue(queue);
    const { owner } = filter;
    const entries = (locals: readonly string[]) => locals.map((local) => ({ at: 0, queue, local }));
    const ways = conditionsOf(keys, filter)
      .filter(({ wanted }) => wanted)
      .map((condition) => ({
        count: () => this.#sets.size(condition),
        read: async () => {
          const all = await this.#sets.members(condition);
          return entries(all.filter((local) => owner === undefined || local.startsWith(`${owner}/`)));
        },
      }));
    // By name, the tasks of an owner are in order already.
    if (owner !== undefined && order !== "name") {
      const [first, last] = rangeOf(owner);
      ways.push({
        count: () => this.link.ask((client) => client.zlexcount(keys.tasks, first, last)),
        read: async () => {
          const all = await this.link.ask((client) => client.zrangebylex(keys.tasks, first, last));
          return entries(all.map(withoutType));
        },
      });
    }
    const sizes = await Promise.all(ways.map(({ count }) => count()));
    const size = Math.min(...sizes);
    return { size, read: async () => ways[sizes.indexOf(size)]?.read() ?? [] };
  }

  /** All names that contain a text; undefined: they are too many, or there are too many names to search. */
  async #search(queues: readonly string[], filter: TaskFilter): Promise<Entry[] | undefined> {
    const all: Entry[] = [];
    for await (const { entries, end } of this.#byName(
      queues,
      filter,
      undefined,
      CHUNK,
      MOST_SEARCHED_FOR_TIMES,
    )) {
      all.push(...entries);
      if (end !== undefined || all.length > MOST_READ) return undefined;
    }
    return all;
  }

  /** Entries with the time that the order uses; drops those without one. */
  async #withTimes(entries: readonly Entry[], order: TaskOrder): Promise<Entry[]> {
    if (order === "name") return [...entries];
    const found = await Promise.all(
      byQueue(entries).map(async ([queue, locals]) => {
        const keys = this.keys.queue(queue);
        const scores = await this.#sets.scores(locals, setsOf(keys, order), order === "next");
        return locals.flatMap((local, i) => {
          const at = scores[i];
          return at === undefined ? [] : [{ at, queue, local }];
        });
      }),
    );
    return found.flat();
  }

  /** Names in order. `end`: the last name that one page may read. */
  async *#byName(
    queues: readonly string[],
    filter: TaskFilter,
    start: Entry | undefined,
    size: number,
    most = mostNames(filter),
  ): AsyncGenerator<Slice> {
    let read = 0;
    for (const queue of queues) {
      const keys = this.keys.queue(queue);
      let after = queue === start?.queue ? start.local : undefined;
      do {
        const at = await this.#namesAfter(keys, filter, after, size);
        after = at.last;
        read += at.read;
        const end = read >= most && after !== undefined ? { at: 0, queue, local: after } : undefined;
        yield { entries: at.locals.map((local) => ({ at: 0, queue, local })), end };
        if (end) return;
      } while (after !== undefined);
    }
  }

  /** `last`: the name to continue after; undefined: there are no more. `read`: number of names read. */
  async #namesAfter(
    keys: QueueKeys,
    { tag, owner, text }: TaskFilter,
    after: string | undefined,
    size: number,
  ): Promise<{ locals: string[]; last: string | undefined; read: number }> {
    const [first, to] = owner === undefined ? ["-", "+"] : rangeOf(owner);
    // Continues after the name, whatever its type.
    const from = after === undefined ? first : `(${after}!`;
    if (text !== undefined && tag === undefined) {
      const [last = "", ...found] = await this.scripts.run(
        FIND_NAMES,
        { tasks: keys.tasks },
        { from, to, read: SEARCHED_AT_ONCE, text, most: size },
      );
      return {
        locals: found.map(withoutType),
        last: last === "" ? undefined : withoutType(last),
        read: SEARCHED_AT_ONCE,
      };
    }
    const source = tag === undefined ? keys.tasks : keys.tagged(tag);
    const names = await this.link.ask((client) => client.zrangebylex(source, from, to, "LIMIT", 0, size));
    const locals = names.map(withoutType);
    return { locals, last: names.length < size ? undefined : locals.at(-1), read: names.length };
  }

  async *#byTime(
    queues: readonly string[],
    { owner, text }: TaskFilter,
    order: TaskOrder,
    start: Entry | undefined,
    size: number,
  ): AsyncGenerator<Slice> {
    // Tasks are spread evenly over shards, so each is asked for twice its share.
    const each = order === "next" ? Math.ceil((2 * size) / SHARDS) : size;
    let after = start;
    for (let read = 0; ; ) {
      const from = after;
      const pages = await Promise.all(queues.map((queue) => this.#scoredAfter(queue, order, from, each)));
      const { names, last } = merged(pages.flat(), each, size);
      after = names.at(-1);
      read += names.length;
      const end = !last && read >= (text === undefined ? MOST_READ : MOST_READ_FOR_TEXT) ? after : undefined;
      yield {
        entries: owner === undefined ? names : names.filter(({ local }) => local.startsWith(`${owner}/`)),
        end,
      };
      if (last || end || !after) return;
    }
  }

  /** Entries after `start` (undefined: all) in each of a queue's sets that this order goes by. */
  async #scoredAfter(
    queue: string,
    order: TaskOrder,
    start: Entry | undefined,
    most: number,
  ): Promise<Entry[][]> {
    const sets = setsOf(this.keys.queue(queue), order);
    const past = start !== undefined && queue < start.queue;
    const at = start === undefined ? "" : past ? start.at + 1 : start.at;
    const after = queue === start?.queue ? start.local : "";
    const found = await this.scripts.run(LIST_SCORED, { sets }, { at, after, most });
    return found.map((flat) =>
      Array.from({ length: flat.length / 2 }, (_, i) => ({
        queue,
        local: flat[2 * i] as string,
        at: Number(flat[2 * i + 1]),
      })),
    );
  }

  /** The names that match, as far as indexes can decide. */
  async #narrowed(entries: readonly Entry[], filter: TaskFilter): Promise<Entry[]> {
    const found = await Promise.all(
      byQueue(entries).map(async ([queue, locals]) => {
        const keys = this.keys.queue(queue);
        let names = locals;
        for (const condition of conditionsOf(keys, filter)) {
          const meets = await this.#sets.meet(keys, names, condition);
          names = names.filter((_, i) => meets[i]);
        }
        return [queue, new Set(names)] as const;
      }),
    );
    const left = new Map(found);
    return entries.filter(({ queue, local }) => left.get(queue)?.has(local));
  }

  /** The tasks of these names, in their order; undefined: it does not match, or was deleted. */
  async #read(entries: readonly Entry[], filter: TaskFilter): Promise<Read[]> {
    const found = await Promise.all(
      byQueue(entries).map(async ([queue, locals]) => {
        const read = await this.#readIn(queue, locals, filter);
        return locals.map((local, i) => [`${queue} ${local}`, read[i]] as const);
      }),
    );
    const byName = new Map(found.flat());
    return entries.map(({ queue, local }) => byName.get(`${queue} ${local}`));
  }

  async #readIn(queue: string, names: readonly string[], filter: TaskFilter): Promise<Read[]> {
    const keys = this.keys.queue(queue);
    const hashes = await readHashes(this.link, names.map(keys.task));
    return names.map((local, i) => {
      const stored = hashes[i];
      if (!stored) return "unreadable";
      if (Object.keys(stored).length === 0) return undefined;
      const task = readable(queue, local, stored);
      if (!task || isForeign(task)) return "unreadable";
      return matches(task, filter) ? task : undefined;
    });
  }
}

type Read = StoredTask | "unreadable" | undefined;

/** Names read for one page in the order of names. */
function mostNames({ text, tag }: TaskFilter): number {
  if (text === undefined) return MOST_READ;
  return tag === undefined ? MOST_SEARCHED : MOST_READ_FOR_TEXT;
}

/** Checks the task itself: it may have changed since the indexes were read. */
function matches({ state, definition, set }: StoredTask, filter: TaskFilter): boolean {
  if (filter.state !== undefined && state !== filter.state) return false;
  if (filter.owner !== undefined && definition.owner !== filter.owner) return false;
  if (filter.tag !== undefined && !definition.tags.includes(filter.tag)) return false;
  if (filter.set !== undefined && (set?.name !== filter.set || !(filter.retired || set.revision)))
    return false;
  const { text } = filter;
  return text === undefined || `${localName(definition)} ${definition.type}`.toLowerCase().includes(text);
}
