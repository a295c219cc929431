import { CarillonError, type TaskInput, type TaskRef, type TriggerOptions } from "@carillon/core";
import { Store } from "@carillon/store";
import { rememberStore } from "@carillon/store/internal";
import { type EventsOptions, type LiveEvent, liveEvents } from "./client/events.js";
import { isTyped } from "./client/input.js";
import { checkedOptions } from "./client/options.js";
import { Runs } from "./client/runs.js";
import { rememberScope, Scope } from "./client/scope.js";
import { deleteTask, pause, resume, trigger } from "./client/task-actions.js";
import { countTasks, listTasks, readTask } from "./client/task-reader.js";
import { TaskWriter } from "./client/task-writer.js";
import type {
  AuthorOptions,
  ClientOptions,
  DeleteOptions,
  EnqueueOptions,
  EnqueueResult,
  ListOptions,
  PauseOptions,
  PutManyOptions,
  PutOptions,
  PutResult,
  ResumeOptions,
  TaskPage,
  TriggerResult,
} from "./client/types.js";
import type { ValidateOptions, Validation } from "./client/validation.js";
import type { Definition, Task } from "./client/view.js";
import { type TaskContract, type TypedTask, task as typedTask } from "./task-type.js";

/**
 * Puts tasks and asks about them. Tasks have their methods here; everything else has its own object, such as `client.runs`. One connection;
 * safe to share. A method refuses an option that it does not know (`INVALID_OPTION`).
 *
 * @example
 * const client = new Client({ connection: "redis://localhost:6379" });
 * await client.put({ id: "nightly", type: "report", queue: "reports", schedule: { cron: "0 3 * * *", timezone: "Europe/Berlin" } });
 * const [last] = await client.runs.list("nightly", { limit: 1 });
 */
export class Client {
  /** Runs and their records, and skipped occurrences. */
  readonly runs: Runs;
  readonly #store: Store;
  readonly #ownsStore: boolean;
  readonly #scope: Scope;
  readonly #writer: TaskWriter;
  readonly #options: ClientOptions;

  /** @throws `INVALID_OPTION`, `INVALID_NAME` */
  constructor(options: ClientOptions) {
    const { owner, by, origin, types, maxPayloadBytes, connectTimeout } = checkedOptions(options);
    const { onProgress, telemetry } = options;
    this.#ownsStore = !options.store;
    this.#store =
      options.store ??
      new Store({
        connection: options.connection,
        namespace: options.namespace,
        readyTimeout: connectTimeout,
      });
    rememberStore(this, this.#store);
    this.#options = options;
    this.#scope = new Scope(this.#store, owner, by, origin, onProgress, telemetry);
    rememberScope(this, this.#scope);
    this.#writer = new TaskWriter(this.#scope, types, maxPayloadBytes);
    this.runs = new Runs(this.#scope);
  }

  get namespace(): string {
    return this.#store.namespace;
  }

  /** The owner that it is bound to, if any. */
  get owner(): string | undefined {
    return this.#scope.owner;
  }

  /**
   * A client that is bound to one owner, with this client's connection and options. Costs next to nothing: make one for each
   * request if you like. Closing it leaves the connection open.
   *
   * @throws `INVALID_NAME`; `FORBIDDEN` if this client is bound to another owner
   */
  forOwner(owner: string): Client {
    if (this.owner !== undefined && this.owner !== owner) {
      throw new CarillonError("FORBIDDEN", `this client is bound to the owner ${this.owner}.`, {
        field: "owner",
        remedy: "Use a client without an owner.",
      });
    }
    return new Client({ ...this.#options, connection: undefined, store: this.#store, owner });
  }

  /** The time of Redis, which all times of Carillon are based on, in UTC ms. @throws `REDIS_UNAVAILABLE` */
  async serverTime(): Promise<number> {
    return this.#store.serverTime();
  }

  /**
   * Stores a task, or changes it. Idempotent: an identical put changes nothing. A put never resumes a paused task; if it does not change
   * the schedule, the next time stays. With `dryRun` it only says what it would do.
   *
   * @throws `INVALID_TASK`, `INVALID_SCHEDULE` and others (each names the field), `NEVER_FIRES`, `UNKNOWN_TASK_TYPE`, `PAYLOAD_TOO_LARGE`;
   * `QUOTA_TASKS`, `QUOTA_INTERVAL`; `CONFLICT` of the field `ifRevision` if the stored task has another revision
   */
  put(task: TaskInput): Promise<PutResult>;
  put<First extends TaskContract | TaskInput>(
    first: First,
    second: First extends TaskContract ? TypedTask<First> : PutOptions,
    options?: PutOptions,
  ): Promise<PutResult>;
  async put(
    first: TaskInput | TaskContract,
    second?: TypedTask<TaskContract> | PutOptions,
    third?: PutOptions,
  ): Promise<PutResult> {
    if (!isTyped(first, second)) return this.#writer.put(first as TaskInput, undefined, second as PutOptions);
    const type = first as TaskContract;
    return this.#writer.put(typedTask(type, second as TypedTask<TaskContract>), type, third);
  }

  /**
   * Stores many tasks. All are checked before the first is written; each is then stored by itself, in batches.
   *
   * @throws as `put`; `INVALID_TASK` for a name that comes twice; the field begins with the task's position: `[3].schedule.cron`
   */
  async putMany(
    tasks: readonly TaskInput[] | Iterable<TaskInput>,
    options: PutManyOptions = {},
  ): Promise<PutResult[]> {
    return this.#writer.putMany(tasks, options);
  }

  /**
   * Changes a task as it is stored: `change` gets its definition and returns the new one. If someone else changes the task at the same time,
   * `change` is called again with their definition; if the answer of Redis is lost, it may be called with its own. A one-off task of
   * `enqueue` stays one, unless its new schedule repeats.
   *
   * @example
   * await client.update("nightly", (task) => ({ ...task, priority: 10 }));
   * @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`, as `put`; `CONFLICT` if others came first ten times; `INVALID_NAME` if the name was changed;
   * `INVALID_OPTION`; what `change` throws
   */
  async update(
    ref: TaskRef,
    change: (task: Definition) => TaskInput | Promise<TaskInput>,
    options: AuthorOptions = {},
  ): Promise<PutResult> {
    return this.#writer.update(ref, change, options);
  }

  /** Checks a task as a put does, explains its schedule, and says what the put would change; stores nothing. @throws as `put` */
  async validate(task: TaskInput, options: ValidateOptions = {}): Promise<Validation> {
    return this.#writer.validate(task, options);
  }

  /** @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` (say which queue) */
  async get(ref: TaskRef): Promise<Task> {
    return readTask(this.#scope, ref);
  }

  /** A page of tasks in the order of queue, owner, id. @throws `INVALID_OPTION`, `INVALID_NAME` */
  async list(options: ListOptions = {}): Promise<TaskPage> {
    return listTasks(this.#scope, options);
  }

  /** Counts the tasks of a queue or the namespace: of all owners, or of the one that the client is bound to. */
  async count(options: { queue?: string | undefined } = {}): Promise<number> {
    return countTasks(this.#scope, options);
  }

  /**
   * Deletes a task with its records, and its jobs unless a worker holds them. Its definition can be restored for 7 days.
   *
   * @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`
   */
  async delete(ref: TaskRef, options: DeleteOptions = {}): Promise<void> {
    await deleteTask(this.#scope, ref, options);
  }

  /**
   * Holds a task's future occurrences, and its runs that wait after a crash. Other queued runs go on, unless `cancelQueued` cancels them.
   * Returns false if it was paused already.
   *
   * @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`, `CONFLICT` if it is finished
   */
  async pause(ref: TaskRef, options: PauseOptions = {}): Promise<boolean> {
    return pause(this.#scope, ref, options);
  }

  /** Lets a paused task go on. Returns false if it was not paused. @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
  async resume(ref: TaskRef, options: ResumeOptions = {}): Promise<boolean> {
    return resume(this.#scope, ref, options);
  }

  /**
   * Runs a task now, paused or not; its schedule is not touched. The overlap policy applies unless `overlap` names another.
   * `payload` replaces the task's for this run and its attempts; if it waits for another run, it keeps the payload. With a `key`, calls for
   * the same cause make one run, within a day.
   *
   * @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`, `INVALID_OPTION`, `INVALID_NAME` for the key, `INVALID_PAYLOAD`, `PAYLOAD_TOO_LARGE`; `FROZEN` during a
   * freeze, unless `force`
   */
  async trigger(ref: TaskRef, options: TriggerOptions = {}): Promise<TriggerResult> {
    return trigger(this.#scope, this.#writer, ref, options);
  }

  /** Runs a task type once, now or later, with a checked payload. The one-off task is deleted after its run. */
  async enqueue<Type extends TaskContract>(
    type: Type,
    payload: TypedTask<Type>["payload"],
    options: EnqueueOptions = {},
  ): Promise<EnqueueResult> {
    return this.#writer.enqueue(type, payload, options);
  }

  /**
   * Events from now on: runs start and end, occurrences are skipped, tasks change, nodes come and go; within a second or so. A bound
   * client sees what concerns its owner. Bounded: who reads too slowly, or comes back too late, gets `reset`. All clients of one store
   * share one reader, which asks Redis at most some 20 times a second.
   *
   * @example
   * for await (const event of client.events({ signal })) if (event.kind === "run-ended") console.log(event.run, event.outcome);
   * @throws `INVALID_OPTION`, `REDIS_UNAVAILABLE`
   */
  events(options: EventsOptions = {}): AsyncGenerator<LiveEvent> {
    return liveEvents(this.#scope, options);
  }

  /** Closes its connection once its entries of the change log are stored; a store of your own stays open. */
  async close(): Promise<void> {
    if (this.#ownsStore) await this.#store.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
