import { randomBytes } from "node:crypto";
import {
  CarillonError,
  calendarsOf,
  FORMAT_VERSION,
  firstNext,
  localName,
  type ParsedTask,
  quote,
  type ResolvedRef,
  shardOf,
  type TaskName,
  type TaskState,
} from "@carillon/core";
import type { CalendarRepository } from "./calendars.js";
import type { Contention } from "./contention.js";
import { clearGone, GONE_OPEN, LOOK_AGAIN } from "./gone.js";
import type { NamespaceKeys, QueueKeys } from "./keys.js";
import type { Link } from "./link.js";
import { type PutOptions, type PutResult, TaskWriter } from "./put.js";
import type { Registry } from "./registry.js";
import type { Scripts } from "./scripts.js";
import { DEFAULT_LINGER, decodeTask, isForeign, readable, type StoredTask } from "./task-codec.js";
import { noHash, unsupportedFormat } from "./task-errors.js";

export interface TaskFilter {
  queue?: string | undefined;
  owner?: string | undefined;
  tag?: string | undefined;
  state?: TaskState | undefined;
}

export interface TaskPage {
  tasks: StoredTask[];
  /** Where the next page begins; undefined: this was the last. */
  cursor: string | undefined;
}

/** Tasks looked at at once when all are planned anew. */
const REPLAN_PAGE = 200;
/** Names read at once, of tasks to be counted, or of runs. */
const NAMES_PAGE = 5_000;

export class TaskRepository {
  readonly #link: Link;
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;
  readonly #registry: Registry;
  readonly #calendars: CalendarRepository;
  readonly #writer: TaskWriter;

  constructor(
    link: Link,
    keys: NamespaceKeys,
    scripts: Scripts,
    registry: Registry,
    calendars: CalendarRepository,
    contention: Contention,
  ) {
    this.#link = link;
    this.#keys = keys;
    this.#scripts = scripts;
    this.#registry = registry;
    this.#calendars = calendars;
    this.#writer = new TaskWriter(link, keys, scripts, calendars, contention);
  }

  /** The time of this queue's Redis, in ms. */
  async time(queue: string): Promise<number> {
    return (await this.#link.run(this.#scripts["read-time"], [this.#keys.queue(queue).tasks], [])) as number;
  }

  /**
   * Stores tasks of one queue, each for itself, in the order given. An identical one changes nothing.
   *
   * @throws `CONFLICT` of the field `ifRevision` where it says otherwise than is, and what is there is not what is put
   */
  async put(queue: string, tasks: readonly ParsedTask[], options: PutOptions = {}): Promise<PutResult[]> {
    const shared = tasks.some(({ definition }) => calendarsOf(definition.schedule).length > 0);
    await Promise.all([
      this.#registry.assertTypes([...new Set(tasks.map(({ definition }) => definition.type))]),
      shared && this.assertCalendars(tasks),
    ]);
    const mark = this.#registry.enter(queue);
    try {
      const [now] = await Promise.all([this.time(queue), mark]);
      const results = await this.#writer.put(queue, tasks, now, options);
      // A calendar that changed meanwhile was re-planned without these; so it was when this put was cut off before.
      if (shared) await this.#lookAgain(queue, tasks);
      return results;
    } finally {
      await this.#registry.leave(queue, await mark);
    }
  }

  /** @throws `INVALID_SCHEDULE` where one names a calendar that is not there */
  async assertCalendars(tasks: readonly ParsedTask[]): Promise<void> {
    await this.#calendars.refresh();
    for (const { definition } of tasks) this.#calendars.schedules.get(definition.schedule, definition.id);
  }

  async #lookAgain(queue: string, tasks: readonly ParsedTask[]): Promise<void> {
    const known = this.#calendars.known;
    await this.#calendars.refresh();
    const names = new Set(tasks.flatMap(({ definition }) => calendarsOf(definition.schedule)));
    for (const name of names) await this.#calendars.restore(known, name);
    await this.#calendars.refresh();
    await this.#calendars.replanStale(queue);
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

  /** Finds a task whose queue was not said. @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
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
    const queues = filter.queue === undefined ? await this.#registry.queues() : [filter.queue];
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
    const first = filter.owner === undefined ? "-" : `[${filter.owner}/`;
    const last = filter.owner === undefined ? "+" : `(${filter.owner}0`;
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

  /** Local names of a queue's tasks, whoever can read these, in their order. @param after the one before the first */
  async names(queue: string, limit: number, after?: string): Promise<string[]> {
    return this.#locals(this.#keys.queue(queue), {}, after, limit);
  }

  /** How many tasks a queue holds: of all owners, or of one. */
  async count(queue: string, owner?: string): Promise<number> {
    const keys = this.#keys.queue(queue);
    if (owner === undefined) return this.#link.ask((client) => client.zcard(keys.tasks));
    // Not ZLEXCOUNT: ACLs that were written for earlier versions do not allow it.
    let count = 0;
    for (let after: string | undefined; ; ) {
      const locals = await this.#locals(keys, { owner }, after, NAMES_PAGE);
      count += locals.length;
      if (locals.length < NAMES_PAGE) return count;
      after = locals.at(-1);
    }
  }

  /** The queues in which an owner has tasks. */
  async queuesOf(owner: string): Promise<string[]> {
    const queues = await this.#registry.queues();
    const has = await Promise.all(
      queues.map(async (queue) => this.#locals(this.#keys.queue(queue), { owner }, undefined, 1)),
    );
    return queues.filter((_, i) => has[i]?.length);
  }

  /**
   * Plans all tasks of a queue anew, where their next time is another one.
   * @returns how many were; `left`: those that cannot be planned, for what this version does not know or others have written
   */
  async replanAll(queue: string): Promise<{ replanned: number; left: number }> {
    const keys = this.#keys.queue(queue);
    await this.#calendars.refresh();
    let [replanned, left] = [0, 0];
    for (let after: string | undefined; ; ) {
      const locals = await this.#locals(keys, {}, after, REPLAN_PAGE);
      const page = await this.#calendars.replan(queue, locals, false);
      replanned += page.done;
      left += page.left;
      if (locals.length < REPLAN_PAGE) return { replanned, left };
      after = locals.at(-1);
    }
  }

  /** Makes the indexes of a queue say what its definitions say. Returns how many tasks and parts were put right. */
  async audit(queue: string): Promise<number> {
    const keys = this.#keys.queue(queue);
    let mended = 0;
    for (let after: string | undefined; ; ) {
      const locals = await this.#locals(keys, {}, after, REPLAN_PAGE);
      const last = locals.length < REPLAN_PAGE;
      mended += (await this.#link.run(
        this.#scripts.audit,
        [keys.next, ...keys.dues, keys.priorities, ...locals.map((local) => keys.task(local))],
        [keys.run(""), locals.length, last ? 1 : 0, ...locals.flatMap((local) => [local, shardOf(local)])],
      )) as number;
      if (last) return mended;
      after = locals.at(-1);
    }
  }

  async pause(name: TaskName, by = "", note = ""): Promise<"OK" | "UNCHANGED" | "MISSING" | "FINISHED"> {
    const keys = this.#keys.queue(name.queue);
    const local = localName(name);
    const shard = shardOf(local);
    const answer = await this.#link.run(
      this.#scripts.pause,
      [keys.task(local), keys.due(shard), keys.next, keys.expected],
      [local, shard, note, by, FORMAT_VERSION],
    );
    const [word, version] = String(answer).split(" ");
    if (word === "FOREIGN") throw unsupportedFormat(local, version as string);
    return answer as "OK" | "UNCHANGED" | "MISSING" | "FINISHED";
  }

  /**
   * Resumes a paused task. `from: "now"`: what fell due in the pause is passed over, with a ledger entry.
   * `"catch-up"`: it is owed, and the catch-up policy decides.
   */
  async resume(name: TaskName, from: "now" | "catch-up", by = ""): Promise<"OK" | "UNCHANGED" | "MISSING"> {
    const keys = this.#keys.queue(name.queue);
    const local = localName(name);
    const shard = shardOf(local);
    for (;;) {
      const [now, task] = await Promise.all([this.time(name.queue), this.get(name)]);
      if (!task) return "MISSING";
      if (task.state !== "paused") return "UNCHANGED";
      if (task.calendarRevision > this.#calendars.revision) await this.#calendars.refresh();
      const schedule = this.#calendars.schedules.get(task.definition.schedule, task.definition.id);
      const owed = task.nominal;
      // The run that it waits for is not over: that gives the next time.
      const kept = from === "catch-up" || task.waiting !== undefined;
      const { nominal, due } = (kept ? task : firstNext(schedule, task, now)) ?? {};
      const over = nominal === undefined && !task.waiting && task.pending.length === 0;
      const skipped =
        from === "now" && owed !== undefined && owed <= now ? (schedule.latest(now) ?? owed) : undefined;
      const answer = await this.#link.run(
        this.#scripts.resume,
        [
          ...[keys.task(local), keys.due(shard), keys.next, keys.ledger(local), keys.stats(local)],
          ...[keys.expected, keys.runs],
        ],
        [
          ...[local, shard, task.generation, skipped ?? "", nominal ?? "", due ?? ""],
          ...[
            this.#keys.wake,
            name.queue,
            skipped === undefined ? "" : (owed as number),
            skipped ?? "",
            by || "-",
            over ? "finished" : "scheduled",
            // What waits is looked at, and put off again if it must.
            over ? "" : task.pending.length > 0 ? now : (due ?? ""),
            DEFAULT_LINGER,
          ],
        ],
      );
      if (answer !== "STALE") return answer as "OK" | "MISSING";
    }
  }

  /**
   * Deletes a task with all that belongs to it. Returns whether there was one.
   *
   * @param which `finished`: only while nothing is left for it to do
   */
  async delete(name: TaskName, which: "any" | "finished" = "any"): Promise<boolean> {
    const keys = this.#keys.queue(name.queue);
    const local = localName(name);
    const shard = shardOf(local);
    const token = randomBytes(8).toString("hex");
    const marks = [`${GONE_OPEN}${local}`, `gone:${token}.hist`, `gone:${token}.fail`];
    const gone = await this.#link.run(
      this.#scripts.delete,
      [
        ...[keys.task(local), keys.due(shard), keys.next, keys.tasks, keys.ledger(local), keys.stats(local)],
        ...[keys.expected, keys.runs, keys.alerts, keys.backfills, keys.priorities],
        ...[keys.open(local), keys.history(local), keys.failures(local)],
        ...marks.map((mark) => keys.gone(mark)),
      ],
      [
        ...[local, shard, keys.tagged(""), keys.planned(""), keys.backfill(""), ...marks],
        ...[which === "finished" ? "1" : "", LOOK_AGAIN],
      ],
    );
    // Where this is cut off a node does what is left of it, or `clearGone`.
    for (const mark of marks) await clearGone(this.#link, this.#scripts["clear-runs"], keys, mark);
    await this.#registry.forgetIfEmpty(name.queue);
    return gone === 1;
  }

  /** Clears what deletes that were cut off have left of a queue's runs. */
  async clearGone(queue: string): Promise<void> {
    const keys = this.#keys.queue(queue);
    const marks: string[] = [];
    for (let from = 0; ; from += NAMES_PAGE) {
      const page = await this.#link.ask((client) => client.zrevrange(keys.runs, from, from + NAMES_PAGE - 1));
      for (const member of page) if (member.startsWith("gone:")) marks.push(member);
      if (page.length < NAMES_PAGE) break;
    }
    for (const mark of marks) await clearGone(this.#link, this.#scripts["clear-runs"], keys, mark);
  }
}

function encodeCursor(queue: string, local: string): string {
  return Buffer.from(`${queue} ${local}`).toString("base64url");
}

function decodeCursor(cursor: string): { queue: string; local: string } {
  const [queue, local] = Buffer.from(cursor, "base64url").toString().split(" ");
  if (!queue || !local) {
    throw new CarillonError("INVALID_FILTER", `got ${quote(cursor)}.`, {
      field: "cursor",
      remedy: "Give back the cursor of the page before.",
    });
  }
  return { queue, local };
}
