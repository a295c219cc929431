import { assertName, CarillonError, isName, type Json, type TaskInput } from "@carillon/core";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Context, ItemContext } from "./context.js";
import type { Ending } from "./worker/ending.js";
import { assertFanOut, type ItemBackoff } from "./worker/item-options.js";

type Awaitable<T> = T | Promise<T>;

interface CommonOptions<Schema extends StandardSchemaV1> {
  /** Any Standard Schema (zod, valibot, arktype, …): checked when a task is put, and again before the handler. */
  payload: Schema;
  /** Where its jobs go when a task names no queue of its own. */
  queue: string;
}

export interface TaskTypeOptions<Schema extends StandardSchemaV1> extends CommonOptions<Schema> {
  /**
   * Gets the schema's output. What it returns is kept as the run's result (JSON), or says how the run ended:
   * `context.quota()`, `context.nothingToDo()`.
   */
  handler: (
    payload: StandardSchemaV1.InferOutput<Schema>,
    context: Context,
  ) => Awaitable<Json | Ending | undefined | void>;
}

export interface FanOutOptions<Schema extends StandardSchemaV1, Item> extends CommonOptions<Schema> {
  /**
   * Collects the work of a run: up to 10,000 items (JSON). None: the run ends as `nothing-to-do`. Should its worker die before
   * all are stored, it runs again; items that were stored stay as they were.
   */
  generate: (payload: StandardSchemaV1.InferOutput<Schema>, context: Context) => Awaitable<readonly Item[]>;
  /**
   * Does one item, as a job of its own: whatever befalls it, the other items go on. The run succeeded when all did. The task's
   * time limit bounds `generate` and each attempt at an item, not their sum.
   */
  process: (item: Item, context: ItemContext) => Awaitable<Json | undefined | void>;
  /**
   * Items of this type at a time in one worker; default: as many as the worker does jobs. An item that waits for its turn takes
   * one of the worker's places.
   */
  concurrency?: number | undefined;
  /** Tries for each item, 1 to 100; default 1. A worker that dies is no try; the third time, the item failed. */
  itemAttempts?: number | undefined;
  itemBackoff?: ItemBackoff | undefined;
}

/** A task type: a name, the shape of its payload, and the code that does it. */
export interface TaskType<Schema extends StandardSchemaV1 = StandardSchemaV1>
  extends TaskTypeOptions<Schema> {
  readonly type: string;
}

/** A task type whose runs are many items. */
export interface FanOutType<Schema extends StandardSchemaV1 = StandardSchemaV1, Item = unknown>
  extends FanOutOptions<Schema, Item> {
  readonly type: string;
}

// A handler's payload is contravariant; a list of task types must hold all of them.
// biome-ignore lint/suspicious/noExplicitAny: see above
export type AnyFanOutType = FanOutType<any, any>;
// biome-ignore lint/suspicious/noExplicitAny: see above
export type AnyTaskType = TaskType<any> | AnyFanOutType;

/** What a caller writes of a task whose type is given apart. */
export type TypedTask<Type extends AnyTaskType> = Omit<TaskInput, "type" | "queue" | "payload"> & {
  payload: StandardSchemaV1.InferInput<Type["payload"]>;
  /** Default: the type's queue. */
  queue?: string | undefined;
};

/**
 * Defines a task type: with a `handler`, or with `generate` and `process` where a run is many items.
 *
 * @example
 * const report = defineTask("report", {
 *   queue: "reports",
 *   payload: z.object({ tenant: z.string() }),
 *   handler: async ({ tenant }, { log }) => log(`report for ${tenant}`),
 * });
 * @example
 * const invoices = defineTask("invoices", {
 *   queue: "invoices",
 *   payload: z.object({ month: z.string() }),
 *   generate: ({ month }) => database.customersOf(month),
 *   process: (customer, { idempotencyKey }) => invoice(customer, idempotencyKey),
 *   itemAttempts: 3,
 * });
 * @throws `INVALID_NAME`, `INVALID_OPTION`, `INVALID_DURATION` (of `itemBackoff`)
 */
export function defineTask<Schema extends StandardSchemaV1, Item>(
  name: string,
  options: FanOutOptions<Schema, Item>,
): FanOutType<Schema, Item>;
export function defineTask<Schema extends StandardSchemaV1>(
  name: string,
  options: TaskTypeOptions<Schema>,
): TaskType<Schema>;
export function defineTask(
  name: string,
  options: TaskTypeOptions<StandardSchemaV1> | FanOutOptions<StandardSchemaV1, unknown>,
): AnyTaskType {
  assertName(name, "type");
  if (typeof options !== "object" || options === null) {
    throw new CarillonError("INVALID_OPTION", "not an object.", {
      field: "options",
      remedy: "Give the queue, the payload's schema and the handler.",
    });
  }
  assertName(options.queue, "queue");
  if (!isSchema(options.payload)) {
    throw new CarillonError("INVALID_OPTION", "not a Standard Schema.", {
      field: "payload",
      remedy: "Give a schema, for example z.object({ … }) of zod.",
    });
  }
  if ("generate" in options || "process" in options) {
    assertFanOut(options);
  } else if (typeof options.handler !== "function") {
    throw new CarillonError("INVALID_OPTION", "not a function.", {
      field: "handler",
      remedy: "Give the handler, or generate and process.",
    });
  }
  return Object.freeze({ type: name, ...options });
}

/** @throws `INVALID_OPTION` for what has no name of a task type, or no schema */
export function assertTaskType(value: unknown, field: string): void {
  if (!isTaskType(value)) throw noTaskType(field);
}

export function isTaskType(value: unknown): boolean {
  const { type, payload } = Object(value) as Partial<TaskType>;
  return isName(type) && isSchema(payload);
}

function isSchema(value: StandardSchemaV1 | undefined): boolean {
  return typeof value?.["~standard"]?.validate === "function";
}

/** As `assertTaskType`; also for what no worker could do. @throws `INVALID_OPTION` */
export function assertWorkable(value: unknown, field: string): void {
  assertTaskType(value, field);
  const { queue, handler, process } = value as Partial<TaskType & AnyFanOutType>;
  const works = typeof handler === "function" || typeof process === "function";
  if (!isName(queue) || !works) throw noTaskType(field);
}

function noTaskType(field: string): CarillonError {
  return new CarillonError("INVALID_OPTION", "not a task type.", {
    field,
    remedy: "Give what defineTask returns.",
  });
}

export function isFanOut(type: AnyTaskType): type is AnyFanOutType {
  return "process" in type;
}

/** Checks a payload against a type's schema and returns the schema's output. @throws `INVALID_PAYLOAD` with the path */
export async function validatePayload(type: AnyTaskType, payload: unknown): Promise<unknown> {
  const schema = type.payload as StandardSchemaV1;
  const result = await schema["~standard"].validate(payload);
  if (!result.issues) return result.value;
  const issue = result.issues[0];
  const path = (issue?.path ?? []).map((part) => String(typeof part === "object" ? part.key : part));
  throw new CarillonError("INVALID_PAYLOAD", `${issue?.message ?? "does not fit"}.`, {
    field: ["payload", ...path].join(".").slice(0, 100),
    remedy: `Give what task type ${type.type} expects.`,
  });
}
