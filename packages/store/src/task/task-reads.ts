import { ALERTS_QUEUE, CarillonError, type Schedule, type TaskName } from "@carillon/core";
import { localName, type ResolvedRef, type Work } from "@carillon/core/internal";
import { scored } from "../redis/scored.js";
import type { Registry } from "../registry.js";
import { type Parts, Repository } from "../repository.js";
import { FACTS } from "../script/facts.js";
import { KEYS } from "../script/libraries.js";
import { answers, script } from "../script/script.js";
import { decodeRevision, decodeTask, isForeign, type Revision, type StoredTask } from "./codec.js";
import type { TaskCounts } from "./counts.js";
import { unreadable, unsupportedFormat } from "./errors.js";
import { type CountFilter, TaskListing, type TaskPage } from "./listing.js";
import { rangeOf, type TaskFilter, withoutType } from "./name-sets.js";
import { readTags, readTimings, type Timing } from "./timings.js";

/** Pages of tasks that are read to find one with a type, and the tasks of each. */
const [MOST_PAGES, PAGE] = [20, 100];

/** Number of keys that are read to find tasks of the same owner and id in other queues. */
const MOST_LOOKUPS = 2_000;

/** Places of an index from which a sample takes neighbours. */
const PLACES = 20;

const SUGGEST = script("suggest", {
  once: "reads",
  keys: ["tasks", "tags"],
  args: ["of", "starts", "owner", "most"],
  uses: [KEYS],
  answer: answers<string[]>(),
});

export interface TaskSample {
  /** Number of tasks that they stand for. */
  readonly all: number;
  readonly locals: readonly string[];
  /** The plans of those that are scheduled. */
  readonly timings: readonly Timing[];
}

export class TaskReads extends Repository {
  readonly #registry: Registry;
  readonly #listing: TaskListing;

  constructor(parts: Parts, registry: Registry) {
    super(parts);
    this.#registry = registry;
    this.#listing = new TaskListing(parts, registry);
  }

  async get(name: TaskName): Promise<StoredTask | undefined> {
    const local = localName(name);
    const key = this.keys.queue(name.queue).task(local);
    const hash = await this.link
      .ask((client) => client.hgetall(key))
      .catch((error: CarillonError) => {
        // Foreign data in place of a task.
        throw error.message.startsWith("WRONGTYPE") ? unreadable(local, error) : error;
      });
    return this.#known(name.queue, local, hash);
  }

  /** Local names of a queue's tasks that were deleted since then and can be put again until a time, newest first. */
  async deleted(
    queue: string,
    since: number,
    now: number,
  ): Promise<{ local: string; at: number; until: number }[]> {
    const { ms } = FACTS.deleted;
    const from = Math.max(since, now - ms);
    const flat = await this.link.ask((client) =>
      client.zrevrangebyscore(this.keys.queue(queue).deleted, ...(["+inf", from, "WITHSCORES"] as const)),
    );
    return scored(flat).map(([local, at]) => ({ local, at, until: at + ms }));
  }

  /** The replaced definitions of a task, newest first. Corrupt ones are left out. */
  async revisions(name: TaskName): Promise<Revision[]> {
    const local = localName(name);
    const kept = await this.link.ask((client) =>
      client.lrange(this.keys.queue(name.queue).revisions(local), 0, -1),
    );
    return kept.flatMap((text) => decodeRevision(name.queue, local, text));
  }

  #known(queue: string, local: string, stored: Parameters<typeof decodeTask>[2]): StoredTask | undefined {
    const task = decodeTask(queue, local, stored);
    if (task && isForeign(task)) throw unsupportedFormat(local, task.version);
    return task;
  }

  /**
   * Finds a task whose queue may be unknown. @param what `revisions`: also a deleted task whose definition is kept
   *
   * @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`
   */
  async locate(ref: ResolvedRef, what: "task" | "revisions" = "task"): Promise<TaskName> {
    const local = localName(ref);
    const all = () => (what === "task" ? this.#registry.queues() : this.#registry.queuesAndPast());
    const queues = ref.queue === undefined ? await all() : [ref.queue];
    const holding = await this.#holding(queues, local, what);
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
        remedy: `It may have another owner or queue: list the tasks with the search text ${ref.id}.`,
      });
    }
    return { queue, owner: ref.owner, id: ref.id };
  }

  async #holding(queues: readonly string[], local: string, what: "task" | "revisions"): Promise<string[]> {
    const found = await Promise.all(
      queues.map((queue) => this.link.ask((client) => client.exists(this.keys.queue(queue)[what](local)))),
    );
    return queues.filter((_, i) => found[i] === 1);
  }

  /**
   * For each task the other queues that have one of the same owner and id. Reads `MOST_LOOKUPS` keys at most: the answer
   * leaves out the last of many tasks.
   */
  async elsewhere(names: readonly TaskName[]): Promise<Map<TaskName, string[]>> {
    // Alerts and the watchdog have ids of their own.
    const isOwn = (queue: string) => queue !== ALERTS_QUEUE;
    const queues = (await this.#registry.queues()).filter(isOwn);
    const ours = names.filter(({ queue }) => isOwn(queue));
    const looked = ours.slice(0, Math.ceil(MOST_LOOKUPS / Math.max(1, queues.length)));
    const found = await Promise.all(
      looked.map(async (name): Promise<[TaskName, string[]]> => {
        const others = queues.filter((queue) => queue !== name.queue);
        return [name, await this.#holding(others, localName(name), "task")];
      }),
    );
    return new Map(found.filter(([, others]) => others.length > 0));
  }

  /** Tasks in the order of queue, owner, id; a page at a time. */
  list(filter: TaskFilter, limit: number, cursor?: string): Promise<TaskPage> {
    return this.#listing.page(filter, "name", limit, cursor);
  }

  /** All tasks that match, in the order of queue, owner, id; a page at a time. */
  async *pages(filter: TaskFilter, size = 500): AsyncGenerator<TaskPage> {
    let cursor: string | undefined;
    do {
      const page = await this.list(filter, size, cursor);
      yield page;
      cursor = page.cursor;
    } while (cursor !== undefined);
  }

  /** Tasks that have a next time, by their next check, then by queue, owner and id; a page at a time. */
  listDue(filter: TaskFilter, limit: number, cursor?: string): Promise<TaskPage> {
    return this.#listing.page(filter, "next", limit, cursor);
  }

  /** Tasks of which a run has ended, by the end of the last one, newest first; a page at a time. */
  listLast(filter: TaskFilter, limit: number, cursor?: string): Promise<TaskPage> {
    return this.#listing.page(filter, "last", limit, cursor);
  }

  /**
   * Number of tasks that match each filter.
   * @param dueBefore tasks whose next check was due before this time (UTC ms) are overdue
   */
  counts(filter: CountFilter, dueBefore: number): Promise<TaskCounts> {
    return this.#listing.count(filter, dueBefore);
  }

  /** Whether a task of a queue has this type. True if too many names would have to be read. */
  async hasType({ queue, type }: Work): Promise<boolean> {
    let left = MOST_PAGES;
    for await (const { tasks, cursor } of this.pages({ queue, text: type.toLowerCase() }, PAGE)) {
      left -= 1;
      if (tasks.some(({ definition }) => definition.type === type)) return true;
      if (left === 0) return cursor !== undefined;
    }
    return false;
  }

  /**
   * The facts that decide the times of a queue's scheduled tasks, some tasks at a time.
   * @param known schedules by their text, shared by the queues of one question
   */
  timings(
    filter: CountFilter & { readonly queue: string },
    known = new Map<string, Schedule>(),
  ): AsyncGenerator<Timing[]> {
    return this.#listing.timings(filter, known);
  }

  /** At most about this many tasks of a queue, from places evenly apart in the order of their names. */
  async sample(filter: CountFilter & { readonly queue: string }, most: number): Promise<TaskSample> {
    const { queue, owner, tag } = filter;
    const keys = this.keys.queue(queue);
    const { all, found } = await this.#spread(tag === undefined ? keys.tasks : keys.tagged(tag), owner, most);
    const locals = [...new Set(found.map(withoutType))];
    return { all, locals, timings: await readTimings(this.scripts, keys, locals, new Map()) };
  }

  /** At most about this many entries of an index of names, from places evenly apart. */
  async #spread(index: string, owner: string | undefined, most: number) {
    const [first, last] = owner === undefined ? ["-", "+"] : rangeOf(owner);
    const [all, before] = await this.link.ask((client) =>
      Promise.all([
        client.zlexcount(index, first, last),
        owner === undefined ? 0 : client.zlexcount(index, "-", first.replace("[", "(")),
      ]),
    );
    const places = all <= most ? 1 : PLACES;
    const size = Math.min(all, Math.ceil(most / places));
    const found = await this.link.ask((client) =>
      Promise.all(
        Array.from({ length: size === 0 ? 0 : places }, (_, i) => {
          const start = before + Math.floor((i * (all - size)) / Math.max(1, places - 1));
          return client.zrange(index, start, String(start + size - 1));
        }),
      ),
    );
    return { all, found: found.flat() };
  }

  /**
   * Names of a queue's owners, or of the tags of its tasks, that begin with a text, in their order.
   * @param owner only tags of this owner's tasks; undefined: all
   */
  suggest(queue: string, of: "owner" | "tag", starts: string, owner: string | undefined, most: number) {
    const { tasks, tags } = this.keys.queue(queue);
    return this.scripts.run(SUGGEST, { tasks, tags }, { of, starts, owner, most });
  }

  /** The types of at most about this many tasks of a queue, which stand for all: no index has every type. */
  async types(queue: string, owner: string | undefined, most: number): Promise<string[]> {
    const { found } = await this.#spread(this.keys.queue(queue).tasks, owner, most);
    return [...new Set(found.flatMap((entry) => entry.split(" ")[1] ?? []))];
  }

  /** The tags of these tasks; none of unknown and corrupt ones. One round trip. */
  tags(queue: string, locals: readonly string[]): Promise<string[][]> {
    return readTags(this.scripts, this.keys.queue(queue), locals);
  }

  /** Names of the tasks with a check due until then, and its time (UTC ms), earliest first. */
  async due(queue: string, until: number, limit: number): Promise<{ local: string; at: number }[]> {
    const keys = this.keys.queue(queue);
    const to = until === Number.POSITIVE_INFINITY ? "+inf" : until;
    const shards = await this.link.ask((client) =>
      Promise.all(
        keys.dues.map((key) => client.zrangebyscore(key, "-inf", to, "WITHSCORES", "LIMIT", 0, limit)),
      ),
    );
    const due = shards.flatMap(scored).sort(([, a], [, b]) => a - b);
    return due.slice(0, limit).map(([local, at]) => ({ local, at }));
  }

  /**
   * Local names of a queue's tasks, those that this version cannot read included: pages in their order, only the last
   * one shorter than `size`.
   */
  async *names(queue: string, size: number): AsyncGenerator<string[]> {
    const keys = this.keys.queue(queue);
    let page: string[] = [];
    do {
      const from = page.length === 0 ? "-" : `(${page.at(-1)}!`;
      const names = await this.link.ask((client) =>
        client.zrangebylex(keys.tasks, from, "+", "LIMIT", 0, size),
      );
      page = names.map(withoutType);
      yield page;
    } while (page.length === size);
  }

  /** Number of tasks that a queue holds: of all owners, or of one. */
  async count(queue: string, owner?: string): Promise<number> {
    const keys = this.keys.queue(queue);
    if (owner === undefined) return this.link.ask((client) => client.zcard(keys.tasks));
    const [first, last] = rangeOf(owner);
    return this.link.ask((client) => client.zlexcount(keys.tasks, first, last));
  }

  /** Number of tasks of a queue that have a next time, are paused, are finished, or wait: for a run's end, or for a trigger. */
  async countStates(queue: string): Promise<Record<"planned" | "waiting" | "paused" | "finished", number>> {
    const keys = this.keys.queue(queue);
    const [all = 0, paused = 0, finished = 0, ...dues] = await this.link.ask((client) =>
      Promise.all(
        [keys.tasks, keys.inState("paused"), keys.inState("finished"), ...keys.dues].map((key) =>
          client.zcard(key),
        ),
      ),
    );
    const planned = dues.reduce((sum, count) => sum + count, 0);
    return { planned, waiting: Math.max(0, all - planned - paused - finished), paused, finished };
  }

  async queuesOf(owner: string): Promise<string[]> {
    const queues = await this.#registry.queues();
    const counts = await Promise.all(queues.map((queue) => this.count(queue, owner)));
    return queues.filter((_, i) => counts[i]);
  }
}
