import { CarillonError, type Outcome, type TaskName, type TaskState } from "@carillon/core";
import { localName, quote, type ResolvedRef, SHARDS } from "@carillon/core/internal";
import type { NamespaceKeys, QueueKeys } from "../keys.js";
import type { Link } from "../redis/link.js";
import type { Registry } from "../registry.js";
import { answers, script } from "../script/script.js";
import type { Scripts } from "../script/scripts.js";
import { decodeRevision, decodeTask, isForeign, type Revision, readable, type StoredTask } from "./codec.js";
import { noHash, unsupportedFormat } from "./errors.js";

const LIST_DUE = script("list-due", {
  keys: ["dues[]"],
  args: ["at", "after", "most"],
  answer: answers<string[][]>(),
});

/** Tasks read for one page of a list: a filter that few tasks match must not read all of them. */
const MOST_READ = 5_000;

export interface TaskFilter {
  queue?: string | undefined;
  owner?: string | undefined;
  tag?: string | undefined;
  state?: TaskState | undefined;
  /** The outcome of the last run is one of these; runs with nothing to do are ignored. */
  outcomes?: ReadonlySet<Outcome> | undefined;
  /** Without the tasks of this queue, unless it is the filter's own. */
  except?: string | undefined;
}

/** May be short, even empty, before the last page: a filter reads a bounded number of tasks per page. */
export interface TaskPage {
  tasks: StoredTask[];
  /** The start of the next page; undefined: this was the last. */
  cursor: string | undefined;
}

/** Reads tasks. */
export class TaskReads {
  readonly #link: Link;
  readonly #keys: NamespaceKeys;
  readonly #registry: Registry;
  readonly #scripts: Scripts;

  constructor(link: Link, keys: NamespaceKeys, registry: Registry, scripts: Scripts) {
    this.#link = link;
    this.#keys = keys;
    this.#registry = registry;
    this.#scripts = scripts;
  }

  async get(name: TaskName): Promise<StoredTask | undefined> {
    const local = localName(name);
    const hash = await this.#link.ask((client) => client.hgetall(this.#keys.queue(name.queue).task(local)));
    return this.#known(name.queue, local, Object.entries(hash).flat());
  }

  /** The replaced definitions of a task, newest first. Corrupt ones are left out. */
  async revisions(name: TaskName): Promise<Revision[]> {
    const local = localName(name);
    const kept = await this.#link.ask((client) =>
      client.lrange(this.#keys.queue(name.queue).revisions(local), 0, -1),
    );
    return kept.flatMap((text) => decodeRevision(name.queue, local, text));
  }

  #known(queue: string, local: string, flat: string[]): StoredTask | undefined {
    const task = decodeTask(queue, local, flat);
    if (task && isForeign(task)) throw unsupportedFormat(local, task.version);
    return task;
  }

  /** Finds a task whose queue may be unknown. @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
  async locate(ref: ResolvedRef): Promise<TaskName> {
    const local = localName(ref);
    const queues = ref.queue === undefined ? await this.#registry.queues() : [ref.queue];
    const found = await Promise.all(
      queues.map(async (queue) =>
        (await this.#link.ask((client) => client.exists(this.#keys.queue(queue).task(local))))
          ? queue
          : undefined,
      ),
    );
    const holding = found.filter((queue) => queue !== undefined);
    if (holding.length > 1) {
      throw new CarillonError("AMBIGUOUS_TASK", `${local} exists in the queues ${holding.join(", ")}.`, {
        field: "queue",
        remedy: "Name the queue.",
      });
    }
    const queue = holding[0];
    if (queue === undefined) {
      const where = ref.queue === undefined ? "" : ` in queue ${ref.queue}`;
      throw new CarillonError("TASK_NOT_FOUND", `there is no task ${local}${where}.`, {
        remedy: "List the tasks to find its name.",
      });
    }
    return { queue, owner: ref.owner, id: ref.id };
  }

  /** Tasks in the order of queue, owner, id; a page at a time. */
  async list(filter: TaskFilter, limit: number, cursor?: string): Promise<TaskPage> {
    const [startQueue = "", startLocal] = decodeCursor(cursor, 2);
    const size = Math.max(limit, 100);
    const tasks: StoredTask[] = [];
    let seen = 0;
    for (const queue of await this.#queuesOf(filter)) {
      if (queue < startQueue) continue;
      let after = queue === startQueue ? startLocal : undefined;
      for (;;) {
        const locals = await this.#locals(this.#keys.queue(queue), filter, after, size);
        for (const task of await this.#read(queue, locals, filter)) {
          tasks.push(task);
          if (tasks.length === limit)
            return { tasks, cursor: encodeCursor(queue, localName(task.definition)) };
        }
        after = locals.at(-1);
        if (after === undefined) break;
        seen += locals.length;
        if (seen >= MOST_READ) return { tasks, cursor: encodeCursor(queue, after) };
        if (locals.length < size) break;
      }
    }
    return { tasks, cursor: undefined };
  }

  /**
   * Tasks that have a next time, by their next check, then by queue, owner and id; a page at a time. Tasks that are replanned
   * between two pages move.
   */
  async listDue(filter: TaskFilter, limit: number, cursor?: string): Promise<TaskPage> {
    let start = decodeCursor(cursor, 3);
    if (start.length > 0 && !Number.isSafeInteger(Number(start[0]))) throw badCursor(cursor);
    const size = Math.max(limit, 100);
    // Tasks are spread evenly over shards, so each is asked for twice its share.
    const each = Math.ceil((2 * size) / SHARDS);
    const queues = await this.#queuesOf(filter);
    const tasks: StoredTask[] = [];
    for (let seen = 0; ; ) {
      const pages = (await Promise.all(queues.map((queue) => this.#dueAfter(queue, start, each)))).flat();
      const { names, last } = merged(pages, each, size);
      const found = await this.#readAll(names, filter);
      for (const [i, task] of found.entries()) {
        if (!task) continue;
        tasks.push(task);
        if (tasks.length === limit) return { tasks, cursor: dueCursor(names[i]) };
      }
      const end = names.at(-1);
      if (last || !end) return { tasks, cursor: undefined };
      seen += names.length;
      if (seen >= MOST_READ) return { tasks, cursor: dueCursor(end) };
      start = [String(end.at), end.queue, end.local];
    }
  }

  /** Entries after `start` (a time, a queue and a name; empty: all) in each due index of a queue. */
  async #dueAfter(queue: string, start: readonly string[], most: number): Promise<DueEntry[][]> {
    const [at = "", startQueue = "", local = ""] = start;
    const { dues } = this.#keys.queue(queue);
    const past = at !== "" && queue < startQueue;
    const shards = await this.#scripts.run(
      LIST_DUE,
      { dues },
      { at: past ? Number(at) + 1 : at, after: queue === startQueue ? local : "", most },
    );
    return shards.map((flat) =>
      Array.from({ length: flat.length / 2 }, (_, i) => ({
        queue,
        local: flat[2 * i] as string,
        at: Number(flat[2 * i + 1]),
      })),
    );
  }

  /** Tasks of several queues, in the order of their names; undefined: it does not match, or cannot be read. */
  async #readAll(names: readonly DueEntry[], filter: TaskFilter): Promise<(StoredTask | undefined)[]> {
    const { owner } = filter;
    const byQueue = new Map<string, string[]>();
    for (const { queue, local } of names) {
      if (owner !== undefined && !local.startsWith(`${owner}/`)) continue;
      const locals = byQueue.get(queue);
      if (locals) locals.push(local);
      else byQueue.set(queue, [local]);
    }
    const found = await Promise.all([...byQueue].map(([queue, locals]) => this.#read(queue, locals, filter)));
    const byName = new Map(found.flat().map((task) => [nameOf(task), task]));
    return names.map(({ queue, local }) => byName.get(`${queue} ${local}`));
  }

  async #queuesOf({ queue, except }: TaskFilter): Promise<string[]> {
    if (queue !== undefined) return [queue];
    return (await this.#registry.queues()).filter((one) => one !== except);
  }

  /** Names of a queue's tasks after `after`. All scores are 0, so a range by name is a range by owner. */
  async #locals(
    keys: QueueKeys,
    filter: TaskFilter,
    after: string | undefined,
    limit: number,
  ): Promise<string[]> {
    const source = filter.tag === undefined ? keys.tasks : keys.tagged(filter.tag);
    const [first, last] = filter.owner === undefined ? ["-", "+"] : rangeOf(filter.owner);
    const from = after === undefined ? first : `(${after}`;
    return this.#link.ask((client) => client.zrangebylex(source, from, last, "LIMIT", 0, limit));
  }

  /** The tasks of these names that match. */
  async #read(queue: string, locals: readonly string[], filter: TaskFilter): Promise<StoredTask[]> {
    if (locals.length === 0) return [];
    const keys = this.#keys.queue(queue);
    const { outcomes } = filter;
    const replies = await this.#link.ask(async (client) => {
      const pipeline = client.pipeline();
      for (const local of locals) pipeline.hgetall(keys.task(local));
      if (outcomes) for (const local of locals) pipeline.hget(keys.stats(local), "lastOutcome");
      return (await pipeline.exec()) ?? [];
    });
    return locals.flatMap((local, i) => {
      const [error, hash] = replies[i] ?? [];
      if (outcomes && !outcomes.has(replies[locals.length + i]?.[1] as Outcome)) return [];
      const flat = Object.entries(error ? noHash(error) : (hash as Record<string, string>)).flat();
      const task = readable(queue, local, flat);
      return task && !isForeign(task) && matches(task, filter) ? [task] : [];
    });
  }

  /** Names of the tasks with a check due until then, and its time (UTC ms), earliest first. */
  async due(queue: string, until: number, limit: number): Promise<{ local: string; at: number }[]> {
    const keys = this.#keys.queue(queue);
    const to = until === Number.POSITIVE_INFINITY ? "+inf" : until;
    const shards = await this.#link.ask((client) =>
      Promise.all(
        keys.dues.map((key) => client.zrangebyscore(key, "-inf", to, "WITHSCORES", "LIMIT", 0, limit)),
      ),
    );
    const scored = shards.flatMap((flat) =>
      Array.from({ length: flat.length / 2 }, (_, i) => ({
        local: flat[2 * i] as string,
        at: Number(flat[2 * i + 1]),
      })),
    );
    return scored.sort((a, b) => a.at - b.at).slice(0, limit);
  }

  /** Local names of a queue's tasks, those that this version cannot read included: pages in their order, only the last one shorter than `size`. */
  async *names(queue: string, size: number): AsyncGenerator<string[]> {
    const keys = this.#keys.queue(queue);
    let page: string[] = [];
    do {
      page = await this.#locals(keys, {}, page.at(-1), size);
      yield page;
    } while (page.length === size);
  }

  /** How many tasks a queue holds: of all owners, or of one. */
  async count(queue: string, owner?: string): Promise<number> {
    const keys = this.#keys.queue(queue);
    if (owner === undefined) return this.#link.ask((client) => client.zcard(keys.tasks));
    const [first, last] = rangeOf(owner);
    return this.#link.ask((client) => client.zlexcount(keys.tasks, first, last));
  }

  /** How many tasks of a queue have a next time. The others are paused or finished, or wait for a run's end. */
  async countPlanned(queue: string): Promise<number> {
    const { dues } = this.#keys.queue(queue);
    const counts = await this.#link.ask((client) => Promise.all(dues.map((due) => client.zcard(due))));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** The queues in which an owner has tasks. */
  async queuesOf(owner: string): Promise<string[]> {
    const queues = await this.#registry.queues();
    const has = await Promise.all(
      queues.map(async (queue) => this.#locals(this.#keys.queue(queue), { owner }, undefined, 1)),
    );
    return queues.filter((_, i) => has[i]?.length);
  }
}

/** The range of an owner's tasks among names: `0` follows `/`. */
function rangeOf(owner: string): [first: string, last: string] {
  return [`[${owner}/`, `(${owner}0`];
}

function matches({ state, definition }: StoredTask, filter: TaskFilter): boolean {
  if (filter.state !== undefined && state !== filter.state) return false;
  if (filter.owner !== undefined && definition.owner !== filter.owner) return false;
  return filter.tag === undefined || definition.tags.includes(filter.tag);
}

/** A task in a due index, and when it is checked. */
interface DueEntry {
  readonly queue: string;
  readonly local: string;
  readonly at: number;
}

function byDue(a: DueEntry, b: DueEntry): number {
  if (a.at !== b.at) return a.at - b.at;
  if (a.queue !== b.queue) return a.queue < b.queue ? -1 : 1;
  return a.local === b.local ? 0 : a.local < b.local ? -1 : 1;
}

/**
 * The first entries of several indexes. `last`: there are no others.
 *
 * @param pages the beginning of each index; one with `each` entries may go on
 */
function merged(
  pages: readonly DueEntry[][],
  each: number,
  most: number,
): { names: DueEntry[]; last: boolean } {
  // Entries after the end of a page that may go on are dropped: others of that index may come first.
  const [end] = pages.flatMap((page) => (page.length < each ? [] : page.slice(-1))).sort(byDue);
  const known = pages.flat().filter((one) => end === undefined || byDue(one, end) <= 0);
  const names = known.sort(byDue).slice(0, most);
  return { names, last: end === undefined && names.length === known.length };
}

function nameOf({ definition }: StoredTask): string {
  return `${definition.queue} ${localName(definition)}`;
}

function dueCursor(entry: DueEntry | undefined): string | undefined {
  return entry && encodeCursor(String(entry.at), entry.queue, entry.local);
}

function encodeCursor(...parts: readonly string[]): string {
  return Buffer.from(parts.join(" ")).toString("base64url");
}

/** The parts of a cursor; none without one. @throws `INVALID_OPTION` */
function decodeCursor(cursor: string | undefined, count: number): string[] {
  if (cursor === undefined) return [];
  const parts = Buffer.from(cursor, "base64url").toString().split(" ");
  if (parts.length !== count || parts.includes("")) throw badCursor(cursor);
  return parts;
}

function badCursor(cursor: string | undefined): CarillonError {
  return new CarillonError("INVALID_OPTION", `got ${quote(cursor)}.`, {
    field: "cursor",
    remedy: "Give the cursor of the previous page, with the same sort.",
  });
}
