import { CarillonError, type TaskName, type TaskState } from "@carillon/core";
import { localName, quote, type ResolvedRef } from "@carillon/core/internal";
import type { NamespaceKeys, QueueKeys } from "../keys.js";
import type { Link } from "../redis/link.js";
import type { Registry } from "../registry.js";
import { decodeTask, isForeign, readable, type StoredTask } from "./codec.js";
import { noHash, unsupportedFormat } from "./errors.js";

export interface TaskFilter {
  queue?: string | undefined;
  owner?: string | undefined;
  tag?: string | undefined;
  state?: TaskState | undefined;
  /** Without the tasks of this queue, unless it is the filter's own. */
  except?: string | undefined;
}

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

  constructor(link: Link, keys: NamespaceKeys, registry: Registry) {
    this.#link = link;
    this.#keys = keys;
    this.#registry = registry;
  }

  async get(name: TaskName): Promise<StoredTask | undefined> {
    const local = localName(name);
    const hash = await this.#link.ask((client) => client.hgetall(this.#keys.queue(name.queue).task(local)));
    return this.#known(name.queue, local, Object.entries(hash).flat());
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
        remedy: "Say which queue.",
      });
    }
    const queue = holding[0];
    if (queue === undefined) {
      const where = ref.queue === undefined ? "" : ` in queue ${ref.queue}`;
      throw new CarillonError("TASK_NOT_FOUND", `there is no task ${local}${where}.`, {
        remedy: "List the tasks to see what there is.",
      });
    }
    return { queue, owner: ref.owner, id: ref.id };
  }

  /** Tasks in the order of queue, owner, id; a page at a time. */
  async list(filter: TaskFilter, limit: number, cursor?: string): Promise<TaskPage> {
    const start = cursor === undefined ? undefined : decodeCursor(cursor);
    const { queue: only, except } = filter;
    const queues =
      only === undefined ? (await this.#registry.queues()).filter((one) => one !== except) : [only];
    const tasks: StoredTask[] = [];
    for (const queue of queues) {
      if (start && queue < start.queue) continue;
      let after = start && queue === start.queue ? start.local : undefined;
      for (;;) {
        const locals = await this.#locals(this.#keys.queue(queue), filter, after, Math.max(limit, 100));
        for (const task of await this.#read(queue, locals)) {
          if (filter.state !== undefined && task.state !== filter.state) continue;
          if (filter.owner !== undefined && task.definition.owner !== filter.owner) continue;
          tasks.push(task);
          if (tasks.length === limit) {
            return { tasks, cursor: encodeCursor(queue, localName(task.definition)) };
          }
        }
        if (locals.length < Math.max(limit, 100)) break;
        after = locals.at(-1);
      }
    }
    return { tasks, cursor: undefined };
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

  async #read(queue: string, locals: readonly string[]): Promise<StoredTask[]> {
    if (locals.length === 0) return [];
    const keys = this.#keys.queue(queue);
    const hashes = await this.#link.ask(async (client) => {
      const pipeline = client.pipeline();
      for (const local of locals) pipeline.hgetall(keys.task(local));
      const replies = (await pipeline.exec()) ?? [];
      return replies.map(([error, hash]) => (error ? noHash(error) : (hash as Record<string, string>)));
    });
    return hashes.flatMap((hash, i) => {
      const flat = Object.entries(hash).flat();
      const task = readable(queue, locals[i] as string, flat);
      return task && !isForeign(task) ? [task] : [];
    });
  }

  /** Names of the tasks that are looked at until then, and when (UTC ms), earliest first. */
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

function encodeCursor(queue: string, local: string): string {
  return Buffer.from(`${queue} ${local}`).toString("base64url");
}

function decodeCursor(cursor: string): { queue: string; local: string } {
  const [queue, local] = Buffer.from(cursor, "base64url").toString().split(" ");
  if (!queue || !local) {
    throw new CarillonError("INVALID_OPTION", `got ${quote(cursor)}.`, {
      field: "cursor",
      remedy: "Give back the cursor of the page before.",
    });
  }
  return { queue, local };
}
