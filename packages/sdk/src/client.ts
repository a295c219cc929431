import { randomBytes, randomUUID } from "node:crypto";
import { hostname } from "node:os";
import {
  assertName,
  assertOptions,
  assertOverlap,
  assertWhole,
  CarillonError,
  calendarsOf,
  DEFAULT_OWNER,
  DEFAULT_PAYLOAD_LIMITS,
  neverFires,
  type Outcome,
  type ParsedTask,
  parseDuration,
  parseRef,
  parseTask,
  type ResolvedRef,
  type Run,
  type TaskInput,
  type TaskName,
  type TaskRef,
  type TriggerOptions,
} from "@carillon/core";
import {
  assertConnection,
  assertKnown,
  type Backfill,
  type ConnectionSpec,
  definitionFields,
  type LedgerEntry,
  type PutResult,
  revisionOf,
  type SharedCalendar,
  Store,
  type StoredTask,
} from "@carillon/store";
import { type BackfillOptions, findBackfill, type PutBackfill, putBackfill } from "./backfill.js";
import { type BulkFilter, eachTask } from "./bulk.js";
import {
  assertCursor,
  assertRef,
  assertRevision,
  assertState,
  at,
  calendarNotFound,
  fill,
  isTyped,
  moment,
  notFound,
  putView,
  resumeFrom,
  runNotFound,
  shortText,
  wholeNumber,
} from "./client-input.js";
import type {
  CalendarView,
  ClientOptions,
  Enqueued,
  EnqueueOptions,
  ListOptions,
  Put,
  PutCalendar,
  PutOptions,
  RunDetails,
  Triggered,
} from "./client-types.js";
import { type Explanation, explain } from "./explain.js";
import { roundedInstant } from "./instant.js";
import { type JournalFilter, type JournalPage, journal } from "./journal.js";
import { assertList, MOST_MS } from "./options.js";
import { statsView, type TaskStats } from "./stats.js";
import { type AnyTaskType, assertTaskType, type TypedTask, validatePayload } from "./task-type.js";
import { forecast, type Upcoming, upNext } from "./up-next.js";
import { update } from "./update.js";
import { type Validation, validationOf } from "./validation.js";
import {
  type Definition,
  displayState,
  lastStatus,
  type NodeView,
  nodeView,
  type Task,
  taskView,
} from "./view.js";

const CLIENT_OPTIONS = [
  "connection",
  "store",
  "namespace",
  "owner",
  "maxPayloadBytes",
  "types",
  "connectTimeout",
] as const satisfies (keyof ClientOptions)[];

/** Open runs that are looked at for a task's display state. */
const MOST_SHOWN = 100;

/**
 * Puts tasks and asks about them. One connection; safe to share. An option that a method does not know is refused
 * (`INVALID_OPTION`).
 *
 * @example
 * const client = new Client({ connection: "redis://localhost:6379" });
 * await client.put({ id: "nightly", type: "report", queue: "reports", schedule: { cron: "0 3 * * *", timezone: "Europe/Berlin" } });
 */
export class Client {
  readonly store: Store;
  readonly #ownsStore: boolean;
  readonly #owner: string | undefined;
  readonly #maxPayloadBytes: number;
  readonly #types: ReadonlyMap<string, AnyTaskType> | undefined;
  readonly #who = `client-${hostname().replace(/[^A-Za-z0-9._-]/g, "-")}-${process.pid}`;

  /** @throws `INVALID_OPTION`, `INVALID_NAME` */
  constructor(options: ClientOptions) {
    assertOptions(options, CLIENT_OPTIONS);
    assertConnection(options);
    this.#owner = options.owner === undefined ? undefined : assertName(options.owner, "owner");
    this.#maxPayloadBytes = options.maxPayloadBytes ?? DEFAULT_PAYLOAD_LIMITS.maxBytes;
    assertWhole(options.maxPayloadBytes, "maxPayloadBytes", 1, Number.MAX_SAFE_INTEGER);
    assertWhole(options.connectTimeout, "connectTimeout", 1, MOST_MS);
    if (options.types !== undefined)
      assertList(options.types, "types", "Give the task types that may be put.");
    for (const [i, type] of (options.types ?? []).entries()) assertTaskType(type, `types[${i}]`);
    this.#types = options.types && new Map(options.types.map((type) => [type.type, type]));
    this.#ownsStore = !options.store;
    this.store =
      options.store ??
      new Store({
        connection: options.connection as ConnectionSpec,
        namespace: options.namespace,
        readyTimeout: options.connectTimeout,
      });
  }

  get namespace(): string {
    return this.store.namespace;
  }

  /**
   * Stores a task, or changes it. Idempotent: an identical put changes nothing. A put never resumes a paused task;
   * one that leaves the schedule alone leaves the next time alone.
   *
   * @throws `INVALID_TASK` and its kin (each names the field), `NEVER_FIRES`, `UNKNOWN_TASK_TYPE`, `PAYLOAD_TOO_LARGE`;
   * `CONFLICT` of the field `ifRevision` where that says otherwise than is
   */
  put(task: TaskInput, options?: PutOptions): Promise<Put>;
  put<Type extends AnyTaskType>(type: Type, task: TypedTask<Type>, options?: PutOptions): Promise<Put>;
  async put(
    first: TaskInput | AnyTaskType,
    second?: TypedTask<AnyTaskType> | PutOptions,
    third?: PutOptions,
  ): Promise<Put> {
    if (!isTyped(first, second))
      return this.#put(await this.#parse(first as TaskInput), second as PutOptions);
    assertTaskType(first, "type");
    const task = fill(first as AnyTaskType, second as TypedTask<AnyTaskType>);
    return this.#put(await this.#parse(task, first as AnyTaskType), third);
  }

  async #put(parsed: ParsedTask, options: PutOptions = {}, once = false): Promise<Put> {
    assertRevision(options);
    const [result] = await this.store.tasks.put(parsed.definition.queue, [parsed], { ...options, once });
    return putView(result as PutResult, parsed);
  }

  /**
   * Changes a task as it is: `change` gets all that a put can say of it and returns what it is to be. Where someone else
   * changes it in between, `change` is asked again, with what it is then. A one-off task of `enqueue` stays one, unless its
   * schedule becomes one that repeats. If the answer of Redis is lost, `change` may be asked once more, with its own change in what
   * it gets.
   *
   * @example
   * await client.update("nightly", (task) => ({ ...task, priority: 10 }));
   * @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`, as `put`; `CONFLICT` where others came first ten times;
   * `INVALID_NAME` where the name was changed; `INVALID_OPTION`; what `change` throws
   */
  async update(ref: TaskRef, change: (task: Definition) => TaskInput | Promise<TaskInput>): Promise<Put> {
    const name = await this.#locate(ref);
    let oneOff = false;
    const read = async () => {
      const stored = await this.store.tasks.get(name);
      if (!stored) throw notFound(name);
      oneOff = stored.fields.has("once");
      return taskView(stored);
    };
    return update(read, change, async (task, ifRevision) => {
      const parsed = await this.#parse(task);
      const once = oneOff && "at" in parsed.definition.schedule;
      const done = await this.#put(parsed, { ifRevision }, once);
      return { done, revision: revisionOf(definitionFields(parsed, once)) };
    });
  }

  /**
   * Stores many tasks. All are checked before the first is written; each is then stored for itself, in batches.
   *
   * @throws as `put`; the field begins with the task's position: `[3].schedule.cron`
   */
  async putMany(tasks: Iterable<TaskInput>): Promise<Put[]> {
    if (typeof tasks?.[Symbol.iterator] !== "function") {
      throw new CarillonError("INVALID_TASK", "not a list.", {
        field: "tasks",
        remedy: "Give the tasks, each as put takes it.",
      });
    }
    const parsed: ParsedTask[] = [];
    for (const task of tasks) {
      try {
        parsed.push(await this.#parse(task));
      } catch (error) {
        throw at(error, parsed.length);
      }
    }
    const known = await this.store.registry.types();
    for (const [index, { definition }] of parsed.entries()) {
      try {
        assertKnown(definition.type, known);
      } catch (error) {
        throw at(error, index);
      }
    }
    const byQueue = new Map<string, { index: number; task: ParsedTask }[]>();
    for (const [index, task] of parsed.entries()) {
      const list = byQueue.get(task.definition.queue) ?? [];
      list.push({ index, task });
      byQueue.set(task.definition.queue, list);
    }
    const results = new Array<Put>(parsed.length);
    const shared = parsed.filter(({ definition }) => calendarsOf(definition.schedule).length > 0);
    for (const task of shared) {
      try {
        await this.store.tasks.assertCalendars([task]);
      } catch (error) {
        throw at(error, parsed.indexOf(task));
      }
    }
    for (const [queue, list] of byQueue) {
      const stored = await this.store.tasks.put(
        queue,
        list.map(({ task }) => task),
      );
      for (const [i, { index, task }] of list.entries())
        results[index] = putView(stored[i] as PutResult, task);
    }
    return results;
  }

  /**
   * Everything that a put checks, and what the schedule means, without storing anything.
   *
   * @param options `from` epoch ms, default now by Redis; `count` of next times, default 5, at most 1,000
   * @throws as `put`
   */
  async validate(
    task: TaskInput,
    options: { from?: number | undefined; count?: number | undefined } = {},
  ): Promise<Validation> {
    assertOptions(options, ["from", "count"]);
    const count = wholeNumber(options.count ?? 5, "count", 0, 1_000);
    const { definition } = await this.#parse(task);
    await Promise.all([
      this.store.registry.assertTypes([definition.type]),
      calendarsOf(definition.schedule).length > 0 && this.store.calendars.refresh(),
    ]);
    const from = options.from ?? (await this.store.tasks.time(definition.queue));
    if (!Number.isFinite(from))
      throw new CarillonError("INVALID_OPTION", "not a time.", { field: "from", remedy: "Give epoch ms." });
    return validationOf(
      this.store.calendars.schedules.get(definition.schedule, definition.id),
      definition,
      from,
      count,
    );
  }

  async #parse(input: TaskInput, given?: AnyTaskType): Promise<ParsedTask> {
    const bound = this.#bind(input);
    const parsed = parseTask(bound, { ...DEFAULT_PAYLOAD_LIMITS, maxBytes: this.#maxPayloadBytes });
    const type = given ?? this.#types?.get(parsed.definition.type);
    if (this.#types && !this.#types.has(parsed.definition.type)) {
      throw new CarillonError(
        "UNKNOWN_TASK_TYPE",
        `${parsed.definition.type} is not one of this client's types.`,
        {
          field: "type",
          remedy: `Known: ${[...this.#types.keys()].join(", ") || "none"}.`,
        },
      );
    }
    if (type) await validatePayload(type, parsed.definition.payload);
    if (neverFires(parsed.definition.schedule)) {
      throw new CarillonError("NEVER_FIRES", "no such date ever exists.", {
        field: "schedule",
        remedy: "Check day and month; `carillon next` shows what an expression means.",
      });
    }
    return parsed;
  }

  /** A bound client's tasks belong to its owner; naming another one is refused, not corrected. */
  #bind(input: TaskInput): TaskInput {
    if (this.#owner === undefined || typeof input !== "object" || input === null) return input;
    if (input.owner !== undefined && input.owner !== this.#owner) throw this.#foreignOwner();
    return { ...input, owner: this.#owner };
  }

  #foreignOwner(): CarillonError {
    return new CarillonError("FORBIDDEN", `this client is bound to owner ${this.#owner}.`, {
      field: "owner",
    });
  }

  #resolve(ref: TaskRef): ResolvedRef {
    assertRef(ref);
    const resolved = parseRef(ref, this.#owner ?? DEFAULT_OWNER);
    if (this.#owner !== undefined && resolved.owner !== this.#owner) {
      // What belongs to others does not exist for a bound client.
      throw new CarillonError("TASK_NOT_FOUND", `there is no task ${resolved.owner}/${resolved.id}.`);
    }
    return resolved;
  }

  async #locate(ref: TaskRef): Promise<TaskName> {
    return this.store.tasks.locate(this.#resolve(ref));
  }

  /** @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` (say which queue) */
  async get(ref: TaskRef): Promise<Task> {
    const name = await this.#locate(ref);
    const stored = await this.store.tasks.get(name);
    if (!stored) throw notFound(name);
    const [task, open] = await Promise.all([
      this.#withStatus(stored),
      this.store.runs.open(name, MOST_SHOWN),
    ]);
    const runs = await this.store.runs.many(name.queue, open);
    return { ...task, displayState: displayState(task, runs) };
  }

  async #withStatus(stored: StoredTask): Promise<Task> {
    const { queue, owner, id } = stored.definition;
    const { lastRun } = await this.store.runs.stats({ queue, owner, id });
    const run = lastRun === undefined ? undefined : await this.store.runs.get(queue, lastRun);
    // One that is retried from outside is not over.
    return { ...taskView(stored), ...(run?.state === "final" ? { lastStatus: lastStatus(run) } : {}) };
  }

  /** A page of tasks in the order of queue, owner, id. @throws `INVALID_FILTER`, `INVALID_NAME` */
  async list(options: ListOptions = {}): Promise<{ tasks: Task[]; cursor: string | undefined }> {
    assertOptions(options, ["queue", "owner", "tag", "state", "limit", "cursor"]);
    const limit = wholeNumber(options.limit ?? 100, "limit", 1, 1_000);
    assertState(options.state);
    assertCursor(options.cursor);
    for (const field of ["queue", "owner", "tag"] as const) {
      if (options[field] !== undefined) assertName(options[field], field);
    }
    if (this.#owner !== undefined && options.owner !== undefined && options.owner !== this.#owner) {
      return { tasks: [], cursor: undefined };
    }
    const filter = { ...options, owner: this.#owner ?? options.owner };
    const page = await this.store.tasks.list(filter, limit, options.cursor);
    return {
      tasks: await Promise.all(page.tasks.map((task) => this.#withStatus(task))),
      cursor: page.cursor,
    };
  }

  /** How many tasks a queue holds, or the namespace: of all owners, or of the one that the client is bound to. */
  async count(options: { queue?: string | undefined } = {}): Promise<number> {
    assertOptions(options, ["queue"]);
    const queues = await this.#queuesOf(options.queue);
    const counts = await Promise.all(queues.map((queue) => this.store.tasks.count(queue, this.#owner)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Deletes a task with its records. Jobs that no worker holds go with it. @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
  async delete(ref: TaskRef): Promise<void> {
    const name = await this.#locate(ref);
    // It was there a moment ago. Gone since: by someone else, or by our own call, whose answer was lost and which was repeated.
    await this.store.tasks.delete(name);
  }

  /**
   * Holds a task's future occurrences; queued runs go on, unless `cancelQueued` takes them back. Returns false where it was
   * paused already.
   */
  async pause(
    ref: TaskRef,
    options: { note?: string | undefined; by?: string | undefined; cancelQueued?: boolean | undefined } = {},
  ): Promise<boolean> {
    assertOptions(options, ["note", "by", "cancelQueued"]);
    const name = await this.#locate(ref);
    const answer = await this.store.tasks.pause(
      name,
      shortText(options.by, "by"),
      shortText(options.note, "note"),
    );
    if (answer === "MISSING") throw notFound(name);
    if (answer === "FINISHED") {
      throw new CarillonError("CONFLICT", `${name.id} is finished; there is nothing to pause.`);
    }
    if (options.cancelQueued) {
      await this.store.runs.cancelQueued(name, shortText(options.by, "by") || this.#who);
    }
    return answer === "OK";
  }

  /**
   * Lets a paused task go on. `from: "now"` (default) passes over what fell due meanwhile; `"catch-up"` owes it, and the
   * task's catch-up policy decides. Returns false where it was not paused.
   */
  async resume(
    ref: TaskRef,
    options: { from?: "now" | "catch-up" | undefined; by?: string | undefined } = {},
  ): Promise<boolean> {
    assertOptions(options, ["from", "by"]);
    const from = resumeFrom(options.from);
    const name = await this.#locate(ref);
    const answer = await this.store.tasks.resume(name, from, shortText(options.by, "by").replace(/\s/g, "_"));
    if (answer === "MISSING") throw notFound(name);
    return answer === "OK";
  }

  /**
   * Runs a task now, paused or not; its schedule is not touched. The overlap policy applies unless told otherwise.
   *
   * @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`, `INVALID_OPTION`
   */
  async trigger(ref: TaskRef, options: TriggerOptions = {}): Promise<Triggered> {
    assertOptions(options, ["overlap"]);
    assertOverlap(options.overlap);
    const name = await this.#locate(ref);
    const by = this.#identity();
    const result = await this.store.claims.trigger(name, by, options.overlap);
    if (result.outcome === "skipped") return { outcome: "skipped", code: "SKIPPED_OVERLAP" };
    if (result.outcome === "queued") return { outcome: "queued", key: by.key };
    return { outcome: "enqueued", run: result.run, key: by.key, enqueued: result.enqueued };
  }

  /** Runs a task type once, now or later, with a checked payload. The one-off task goes away after its run. */
  async enqueue<Type extends AnyTaskType>(
    type: Type,
    payload: TypedTask<Type>["payload"],
    options: EnqueueOptions = {},
  ): Promise<Enqueued> {
    assertOptions(options, ["at", "delay", "id", "queue", "owner", "priority"]);
    assertTaskType(type, "type");
    const id = options.id ?? `${type.type.slice(0, 100)}-${randomBytes(8).toString("hex")}`;
    const queue = assertName(options.queue ?? type.queue, "queue");
    const now = await this.store.tasks.time(queue);
    const at = moment(options, now);
    const parsed = await this.#parse(
      {
        ...fill(type, { id, payload, schedule: { at } }),
        queue,
        owner: options.owner,
        priority: options.priority ?? 0,
      },
      type,
    );
    const task = { queue, owner: parsed.definition.owner, id };
    if (at > now) {
      const [result] = await this.store.tasks.put(queue, [parsed], { once: true });
      if (result?.state === "scheduled" || result?.outcome === "unchanged")
        return { task, run: undefined, at };
      // Its time passed while it was put: stored, but finished without a run.
      const run = await this.store.claims.trigger(task, this.#identity(), "allow");
      if (run.outcome === "enqueued") return { task, run: run.run, at: run.enqueued };
    }
    const enqueued = await this.#enqueueNow(queue, parsed);
    return { task, run: enqueued.run, at: enqueued.enqueued };
  }

  async #enqueueNow(queue: string, parsed: ParsedTask): Promise<{ run: string; enqueued: number }> {
    await this.store.registry.assertTypes([parsed.definition.type]);
    const mark = await this.store.registry.enter(queue);
    try {
      return await this.store.claims.enqueueNow(parsed, this.#identity());
    } finally {
      await this.store.registry.leave(queue, mark);
    }
  }

  #identity(): { key: string; token: string; node: string } {
    return { key: randomUUID(), token: randomBytes(8).toString("hex"), node: this.#who };
  }

  /** A task's runs, newest first; those that are not final before the others. */
  async runs(
    ref: TaskRef,
    options: { limit?: number | undefined; offset?: number | undefined } = {},
  ): Promise<Run[]> {
    assertOptions(options, ["limit", "offset"]);
    const limit = wholeNumber(options.limit ?? 20, "limit", 1, 1_000);
    const offset = wholeNumber(options.offset ?? 0, "offset", 0, 1_000_000);
    return this.store.runs.list(await this.#locate(ref), limit, offset);
  }

  /** One run, with where its attempts ran and what they printed. @throws `RUN_NOT_FOUND` */
  async run(id: string): Promise<RunDetails> {
    const run = await this.#findRun(id);
    const [attempts, output] = await Promise.all([
      this.store.runs.attempts(run.task.queue, id),
      this.store.runs.output(run.task.queue, id),
    ]);
    return { ...run, attemptList: attempts, output };
  }

  /**
   * Asks for the end of a run, wherever in the cluster it is: one that has not started never does, a running one gets its
   * signal aborted. Returns false where that was asked before.
   *
   * @throws `RUN_NOT_FOUND`, `CONFLICT` where it is over
   */
  async cancel(id: string, options: { by?: string | undefined } = {}): Promise<boolean> {
    assertOptions(options, ["by"]);
    const { task } = await this.#findRun(id);
    const by = shortText(options.by, "by") || this.#who;
    const word = await this.store.runs.cancel(task, id, by);
    if (word === "GONE") throw runNotFound(id);
    if (word === "FINAL") throw new CarillonError("CONFLICT", `run ${id} is over.`);
    return word === "OK";
  }

  async #findRun(id: string): Promise<Run> {
    if (typeof id !== "string" || !/^[A-Za-z0-9._-]{1,128}@[a-z0-9-]+\.[A-Za-z0-9.]+$/.test(id))
      throw runNotFound(id);
    const found = await Promise.all((await this.#allQueues()).map((queue) => this.store.runs.get(queue, id)));
    const run = found.find((one) => one !== undefined);
    if (!run || (this.#owner !== undefined && run.task.owner !== this.#owner)) throw runNotFound(id);
    return run;
  }

  /** Final runs by their end, newest first: of a task, with an outcome, by a node, in a time. @throws `INVALID_FILTER`, `INVALID_OPTION` */
  async journal(filter: JournalFilter & { task?: TaskRef | undefined } = {}): Promise<JournalPage> {
    assertOptions(filter, ["task", "queue", "outcome", "node", "from", "to", "limit", "cursor"]);
    const limit = wholeNumber(filter.limit ?? 100, "limit", 1, 1_000);
    if (filter.queue !== undefined) assertName(filter.queue, "queue");
    const task = filter.task === undefined ? undefined : await this.#locate(filter.task);
    return journal(this.store, { ...filter, limit, task, owner: this.#owner });
  }

  /** A task's statistics. @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
  async stats(ref: TaskRef): Promise<TaskStats> {
    const name = await this.#locate(ref);
    const [stored, open] = await Promise.all([this.store.runs.stats(name), this.store.runs.open(name)]);
    const runs = await this.store.runs.many(name.queue, open);
    const running = runs.filter(({ state }) => state === "running" || state === "terminating").length;
    return statsView(stored, open.length, running);
  }

  /**
   * How many runs of a queue ended how, over all processes. Runs of tasks that are deleted by now are among them; a run that ended, was
   * retried from outside and ended again counts twice. For metrics: the numbers only grow, and begin anew once nothing was left in the
   * queue.
   *
   * @throws `INVALID_NAME`, `FORBIDDEN` for a bound client
   */
  async outcomes(queue: string): Promise<Record<Outcome, number>> {
    this.#unbound();
    return this.store.runs.outcomes(assertName(queue, "queue"));
  }

  /**
   * Why a task did, or did not, run at a time: each decision, attempt and end that is on record, in order.
   *
   * @param time the nominal time: ISO 8601 with offset, a Date or epoch ms
   * @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`, `INVALID_OPTION`
   */
  async explain(ref: TaskRef, time: string | number | Date): Promise<Explanation> {
    const name = await this.#locate(ref);
    const at = roundedInstant(time, "time");
    const stored = await this.store.tasks.get(name);
    if (!stored) throw notFound(name);
    return explain(this.store, stored, at);
  }

  /** The tasks that are acted on next, earliest first. */
  async upNext(
    options: { queue?: string | undefined; limit?: number | undefined } = {},
  ): Promise<Upcoming[]> {
    assertOptions(options, ["queue", "limit"]);
    const limit = wholeNumber(options.limit ?? 20, "limit", 1, 1_000);
    return upNext(this.store, await this.#queuesOf(options.queue), limit, this.#owner);
  }

  /**
   * Each occurrence of the next hours, as the schedules stand now, earliest first; where there are more than `limit` (1,000, at most
   * 100,000), the earliest. What is owed is due now, as far as the task's catch-up policy keeps it.
   *
   * @throws `INVALID_DURATION`; `INVALID_OPTION` also where working it out takes more than 5 s: ask for a shorter time, or for fewer
   */
  async forecast(options: {
    within: string;
    queue?: string | undefined;
    limit?: number | undefined;
  }): Promise<Upcoming[]> {
    assertOptions(options, ["within", "queue", "limit"]);
    const limit = wholeNumber(options.limit ?? 1_000, "limit", 1, 100_000);
    const queues = await this.#queuesOf(options.queue);
    const now = queues[0] === undefined ? 0 : await this.store.tasks.time(queues[0]);
    const until = now + parseDuration(options.within, "within");
    return forecast(this.store, queues, { now, until }, limit, this.#owner);
  }

  async #queuesOf(queue: string | undefined): Promise<string[]> {
    return queue === undefined ? this.#allQueues() : [assertName(queue, "queue")];
  }

  /** Runs past occurrences of a task again, or for the first time, under its overlap policy or another. A node does it. */
  async backfill(ref: TaskRef, options: BackfillOptions): Promise<PutBackfill> {
    assertOptions(options, ["from", "to", "dryRun", "overlap", "every", "by"]);
    return putBackfill(
      this.store,
      await this.#locate(ref),
      options,
      shortText(options.by, "by") || this.#who,
    );
  }

  /** How far a backfill is. @throws `BACKFILL_NOT_FOUND` */
  async backfillStatus(id: string): Promise<Backfill> {
    const backfill = await findBackfill(this.store, await this.#allQueues(), id);
    if (this.#owner !== undefined && backfill.task.owner !== this.#owner)
      return findBackfill(this.store, [], id);
    return backfill;
  }

  /** Stops a backfill; what it has enqueued goes on. Returns whether it was running. @throws `BACKFILL_NOT_FOUND` */
  async cancelBackfill(id: string): Promise<boolean> {
    const { task } = await this.backfillStatus(id);
    return this.store.backfills.end(task.queue, id, "cancelled");
  }

  /** Pauses all tasks of an owner, a tag or a queue. Returns how many it paused. @throws `INVALID_FILTER` */
  async pauseAll(
    filter: BulkFilter,
    options: { note?: string | undefined; by?: string | undefined } = {},
  ): Promise<number> {
    assertOptions(options, ["note", "by"]);
    const [by, note] = [shortText(options.by, "by"), shortText(options.note, "note")];
    return eachTask(this.store, this.#boundTo(filter), "scheduled", async (name) => {
      return (await this.store.tasks.pause(name, by, note)) === "OK";
    });
  }

  /** Resumes all paused tasks of an owner, a tag or a queue. Returns how many it resumed. @throws `INVALID_FILTER` */
  async resumeAll(
    filter: BulkFilter,
    options: { from?: "now" | "catch-up" | undefined; by?: string | undefined } = {},
  ): Promise<number> {
    assertOptions(options, ["from", "by"]);
    const by = shortText(options.by, "by").replace(/\s/g, "_");
    const from = resumeFrom(options.from);
    return eachTask(this.store, this.#boundTo(filter), "paused", async (name) => {
      return (await this.store.tasks.resume(name, from, by)) === "OK";
    });
  }

  /** Deletes all tasks of an owner, a tag or a queue, with their records. Returns how many. @throws `INVALID_FILTER` */
  async deleteAll(filter: BulkFilter): Promise<number> {
    return eachTask(this.store, this.#boundTo(filter), undefined, (name) => this.store.tasks.delete(name));
  }

  #boundTo(filter: BulkFilter): BulkFilter {
    assertOptions(filter, ["owner", "tag", "queue"]);
    for (const field of ["queue", "owner", "tag"] as const) {
      if (filter[field] !== undefined) assertName(filter[field], field);
    }
    if (this.#owner === undefined) return filter;
    if (filter.owner !== undefined && filter.owner !== this.#owner) throw this.#foreignOwner();
    return { ...filter, owner: this.#owner };
  }

  /** What of a task was not enqueued, and why; newest first. */
  async ledger(ref: TaskRef): Promise<LedgerEntry[]> {
    return this.store.runs.ledger(await this.#locate(ref));
  }

  /**
   * Stores a shared calendar: dates (`2026-12-25`) and calendar events (`*-05-01`), which schedules name in `except`. The
   * tasks that name it are planned anew before this resolves; should that be cut short, put it again, or a node does it.
   *
   * @throws `INVALID_NAME`, `INVALID_SCHEDULE` and `INVALID_TIMEZONE` naming the entry, `FORBIDDEN` for a client that is bound
   * to an owner: calendars belong to the whole namespace
   */
  async putCalendar(
    name: string,
    entries: readonly string[],
    options: { by?: string | undefined } = {},
  ): Promise<PutCalendar> {
    assertOptions(options, ["by"]);
    this.#unbound();
    assertName(name, "name");
    const { calendars } = this.store;
    const stored = await calendars.put(name, entries, shortText(options.by, "by"));
    await calendars.refresh();
    let replanned = 0;
    for (const queue of await this.#allQueues()) replanned += await calendars.replanStale(queue);
    return { name, ...stored, replanned };
  }

  /** @throws `CALENDAR_NOT_FOUND` */
  async calendar(name: string): Promise<SharedCalendar> {
    const calendar = (await this.store.calendars.list()).find((one) => one.name === name);
    if (!calendar) throw calendarNotFound(name);
    return calendar;
  }

  /** The shared calendars, with how many tasks name each. */
  async calendars(): Promise<CalendarView[]> {
    const [calendars, queues] = await Promise.all([this.store.calendars.list(), this.#allQueues()]);
    return Promise.all(
      calendars.map(async ({ entries, ...calendar }) => ({
        ...calendar,
        entries: entries.length,
        tasks: await this.#usersOf(calendar.name, queues),
      })),
    );
  }

  /** @throws `CALENDAR_NOT_FOUND`, `CALENDAR_IN_USE` while a task names it, `FORBIDDEN` for a bound client */
  async deleteCalendar(name: string): Promise<void> {
    this.#unbound();
    assertName(name, "name");
    const tasks = await this.#usersOf(name, await this.#allQueues());
    if (tasks > 0) {
      throw new CarillonError(
        "CALENDAR_IN_USE",
        `${tasks === 1 ? "1 task names" : `${tasks} tasks name`} the calendar ${name}.`,
        {
          remedy: "Change or delete them first.",
        },
      );
    }
    const calendar = await this.calendar(name);
    if (!(await this.store.calendars.delete(name))) throw calendarNotFound(name);
    // A task that names it was put meanwhile.
    const since = await this.#usersOf(name, await this.#allQueues());
    if (since > 0) {
      await this.putCalendar(name, calendar.entries, { by: calendar.by });
      throw new CarillonError("CALENDAR_IN_USE", `${since} tasks name the calendar ${name}.`);
    }
  }

  async #usersOf(name: string, queues: readonly string[]): Promise<number> {
    const counts = await Promise.all(queues.map((queue) => this.store.calendars.users(queue, name)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  #unbound(): void {
    if (this.#owner !== undefined) throw this.#foreignOwner();
  }

  /**
   * From now on only these task types may be put into the namespace, by whatever client; an empty list: any. Tasks that are
   * stored stay.
   *
   * @throws `INVALID_NAME`, `INVALID_OPTION`, `FORBIDDEN` for a bound client
   */
  async allowTypes(types: readonly string[]): Promise<void> {
    this.#unbound();
    assertList(types, "types", "Give a list of names; an empty one allows any type.");
    await this.store.registry.setTypes([...new Set(types.map((type) => assertName(type, "type")))]);
  }

  /** The task types that may be put; empty: any. */
  async allowedTypes(): Promise<string[]> {
    return this.store.registry.types();
  }

  async nodes(): Promise<NodeView[]> {
    const [nodes, now] = await Promise.all([this.store.registry.nodes(), this.store.serverTime()]);
    return nodes.map((node) => nodeView(node, now));
  }

  /**
   * Deletes a queue with its tasks and all that BullMQ keeps of it. Returns how many tasks there were. Stop its workers first.
   *
   * @throws `INVALID_NAME`, `FORBIDDEN` for a bound client
   */
  async deleteQueue(queue: string): Promise<number> {
    this.#unbound();
    return this.store.deleteQueue(assertName(queue, "queue"));
  }

  /** The queues of the namespace; of a bound client: those that hold tasks of its owner. */
  async queues(): Promise<string[]> {
    return this.#owner === undefined ? this.#allQueues() : this.store.tasks.queuesOf(this.#owner);
  }

  #allQueues(): Promise<string[]> {
    return this.store.registry.queues();
  }

  async close(): Promise<void> {
    if (this.#ownsStore) await this.store.close();
  }
}
