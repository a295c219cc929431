import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { CarillonError, DEFAULT_OWNER, isCarillonError, type TaskName, type TaskRef } from "@carillon/core";
import { assertName, invalid, parseRef, type ResolvedRef } from "@carillon/core/internal";
import { newToken, type Store } from "@carillon/store";
import type { Telemetry } from "../telemetry.js";
import type { ChangeFacts, ChangeKind, ChangeScope } from "./change.js";
import { assertRef, shortText } from "./input.js";
import { WorkerWarnings } from "./worker-warnings.js";

const SCOPES = new WeakMap<object, Scope>();

export function rememberScope(client: object, scope: Scope): void {
  SCOPES.set(client, scope);
}

/** The scope of a client. @throws `INVALID_OPTION` for anything else */
export function scopeOf(client: object): Scope {
  const scope = SCOPES.get(client);
  if (scope) return scope;
  throw invalid(
    "client",
    "not a client of this copy of @carillon/sdk.",
    "Give new Client(…), from the one installed copy of the package.",
  );
}

/** The store of a client, and the owner that it is bound to. All parts of a client share one. */
export class Scope {
  readonly store: Store;
  readonly owner: string | undefined;
  readonly coverage: WorkerWarnings;
  /** Default author of a change. */
  readonly actor = `client-${hostname().replace(/[^A-Za-z0-9._-]/g, "-")}-${process.pid}`;

  /** Reports tasks that a call for many has done. */
  readonly progress: (tasks: number) => void;

  /** @param by the default author @param origin the kind of program, and its host or its client's address */
  constructor(
    store: Store,
    owner: string | undefined,
    private readonly by = "",
    private readonly origin = `sdk ${hostname()}`,
    progress = (_tasks: number): void => {},
    private readonly telemetry?: Telemetry,
  ) {
    this.store = store;
    this.owner = owner;
    this.progress = progress;
    this.coverage = new WorkerWarnings(store);
  }

  /** The author that a call names, or the client's; "" none. @throws `INVALID_OPTION` */
  author(by: string | undefined): string {
    return shortText(by, "by") || this.by;
  }

  /** Does work that sends tasks or runs to a queue, in a span if the client has `telemetry`. */
  produce: Telemetry["produce"] = (operation, task, work) =>
    this.telemetry ? this.telemetry.produce(operation, task, work) : work(undefined);

  /** Adds an entry to the change log, after the change. @param by as `author` returned it */
  log(kind: ChangeKind, scope: ChangeScope, by: string, facts: ChangeFacts = {}): void {
    this.store.changes.add(this.#entry(kind, scope, by, facts));
  }

  /** Adds the entry of a change that can be undone, before the change. Returns its id. */
  record(kind: ChangeKind, scope: ChangeScope, by: string, facts: ChangeFacts): Promise<string> {
    return this.store.changes.put(this.#entry(kind, scope, by, facts));
  }

  #entry(kind: ChangeKind, scope: ChangeScope, by: string, facts: ChangeFacts): string {
    return JSON.stringify({ kind, by: by || undefined, origin: this.origin, scope, ...facts });
  }

  /**
   * A token for one call that enqueues: its repetition is recognised.
   *
   * @param name of the requester; "" none @param key of the occurrence; default: a random one
   */
  identity(
    name: string,
    key: string = randomUUID(),
  ): { key: string; token: string; node: string; name: string } {
    return { key, token: newToken(), node: this.actor, name };
  }

  /** The full name of a task. @throws `INVALID_NAME`, `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
  async locate(ref: TaskRef): Promise<TaskName> {
    return this.store.tasks.locate(this.resolve(ref));
  }

  /**
   * Locates like `locate`, but the task need not exist: then the queue is undefined unless it is given. @throws `INVALID_NAME`,
   * `AMBIGUOUS_TASK`
   */
  async nameOf(ref: TaskRef): Promise<ResolvedRef> {
    const resolved = this.resolve(ref);
    if (resolved.queue !== undefined) return resolved;
    return this.store.tasks.locate(resolved).catch((error: unknown) => {
      if (isCarillonError(error, "TASK_NOT_FOUND")) return resolved;
      throw error;
    });
  }

  /**
   * The owner of a reference that names none. @throws `INVALID_NAME`, `TASK_NOT_FOUND` for a task of another owner than
   * the bound one
   */
  resolve(ref: TaskRef): ResolvedRef {
    assertRef(ref);
    const resolved = parseRef(ref, this.owner ?? DEFAULT_OWNER);
    if (this.owner !== undefined && resolved.owner !== this.owner) {
      // Tasks of others do not exist for a bound client.
      throw new CarillonError("TASK_NOT_FOUND", `there is no task ${resolved.owner}/${resolved.id}.`);
    }
    return resolved;
  }

  /** Refuses changes to the whole namespace by a bound client. @throws `FORBIDDEN` */
  assertUnbound(): void {
    if (this.owner !== undefined) throw this.#foreignOwner();
  }

  /** The input with the bound owner. Another owner is refused, not corrected. @throws `FORBIDDEN` */
  bind<Input extends { readonly owner?: string | undefined }>(input: Input): Input {
    if (this.owner === undefined || typeof input !== "object" || input === null) return input;
    if (input.owner !== undefined && input.owner !== this.owner) throw this.#foreignOwner();
    return { ...input, owner: this.owner };
  }

  #foreignOwner(): CarillonError {
    return new CarillonError("FORBIDDEN", `this client is bound to owner ${this.owner}.`, { field: "owner" });
  }

  queues(): Promise<string[]> {
    return this.store.registry.queues();
  }

  /** The queue, or all queues if it is undefined. @throws `INVALID_NAME` */
  async queuesOf(queue: string | undefined): Promise<string[]> {
    return queue === undefined ? this.queues() : [assertName(queue, "queue")];
  }
}
