import { CarillonError, type RetryInput, type TaskInput, taskSchema } from "@carillon/core";
import { assertName, assertOptions, invalid, isName, nearestRemedy } from "@carillon/core/internal";
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import type { Context, ItemContext } from "./context.js";
import { assertFanOut } from "./worker/item-options.js";

type Awaitable<T> = T | Promise<T>;
/** Values that become JSON, interfaces and dates too. An `Ending` is an object, a promise is not a result. */
type Result = string | number | boolean | (object & { then?: never }) | null | undefined | void;

interface CommonOptions<Schema extends StandardSchemaV1> {
  /**
   * Any Standard Schema (zod, valibot, arktype, …): checked when a task is put, and again before the handler. Left out: the type takes no
   * payload, and its handler gets `undefined`.
   */
  payload: Schema;
  /** Queue for tasks that name none. */
  queue: string;
}

/** Schema of a task type that was defined without one. */
export type NoPayload = StandardSchemaV1<undefined, undefined>;
type Without<Options> = Omit<Options, "payload"> & { payload?: undefined };

/** Options of a contract. A handler, or `generate` and `process`, would make it a task type. */
export interface TaskContractOptions<Schema extends StandardSchemaV1> extends CommonOptions<Schema> {
  handler?: undefined;
  generate?: undefined;
  process?: undefined;
}

/**
 * Gets the schema's output. What it returns is kept as the run's result, as `JSON.stringify` writes it (a Date as text), or says
 * how the run ended: `context.partial()`, `context.nothingToDo()`.
 */
export type Handler<Schema extends StandardSchemaV1> = (
  payload: StandardSchemaV1.InferOutput<Schema>,
  context: Context,
) => Awaitable<Result>;

export interface TaskTypeOptions<Schema extends StandardSchemaV1> extends CommonOptions<Schema> {
  handler: Handler<Schema>;
}

/** Code of a task type whose runs are many items. */
export interface FanOutHandlers<Schema extends StandardSchemaV1, Item> {
  /**
   * Collects the work of a run: up to 10,000 items (JSON). None: the run ends as `nothing-to-do`. Should its worker die before
   * all are stored, it runs again; items that were stored stay as they were.
   */
  generate: (payload: StandardSchemaV1.InferOutput<Schema>, context: Context) => Awaitable<readonly Item[]>;
  /**
   * Processes one item, as a job of its own: its failure does not stop the other items. The run succeeds if all items
   * do. The task's time limit bounds `generate` and each attempt at an item, not their sum.
   */
  process: (item: Item, context: ItemContext) => Awaitable<Result>;
  /**
   * Items of this type at a time in one worker; default: as many as the worker does jobs. An item that waits for its turn takes
   * one of the worker's places.
   */
  concurrency?: number | undefined;
  /**
   * Attempts at each item, as a task's `retry` has those of a run. Default: one attempt. A worker that dies does not
   * count; the third time, the item failed.
   */
  itemRetry?: RetryInput | undefined;
}

export interface FanOutOptions<Schema extends StandardSchemaV1, Item>
  extends CommonOptions<Schema>,
    FanOutHandlers<Schema, Item> {}

/**
 * A task type without its code: a client can put and enqueue it, and need not import what the handler imports. A worker needs the
 * code too: `implement`. Each task type is a contract.
 */
export interface TaskContract<Schema extends StandardSchemaV1 = StandardSchemaV1> {
  readonly type: string;
  readonly payload: Schema;
  readonly queue: string;
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

/** Input for a task whose type is passed separately. */
export type TypedTask<Type extends TaskContract> = TypedFields & PayloadField<Type["payload"]>;

interface TypedFields extends Omit<TaskInput, "type" | "queue" | "payload"> {
  /** The queue that its jobs go to. Default: the type's. */
  queue?: string | undefined;
}

/** Input of the handler, as the type's schema takes it. */
type PayloadField<Schema extends StandardSchemaV1> =
  undefined extends StandardSchemaV1.InferInput<Schema>
    ? { payload?: StandardSchemaV1.InferInput<Schema> }
    : { payload: StandardSchemaV1.InferInput<Schema> };

/**
 * A task of a type, checked by the compiler: what `put` and `putMany` take, and one list of all tasks can hold.
 *
 * @example
 * await client.putMany(tenants.map((owner) => task(digest, { id: "digest", owner, payload: { owner }, schedule })));
 * @throws `INVALID_OPTION` if this is not a task type
 */
export function task<Type extends TaskContract>(type: Type, input: TypedTask<Type>): TaskInput {
  assertTaskType(type, "type");
  return { ...input, queue: input.queue ?? type.queue, type: type.type };
}

/**
 * Defines a task type: with a `handler`, or with `generate` and `process` where a run is many items. Without them it is a contract,
 * for clients that must not import the code: {@link implement}.
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
 *   itemRetry: { attempts: 3 },
 * });
 * @throws `INVALID_NAME`, `INVALID_OPTION`
 */
export function defineTask<Item>(
  name: string,
  options: Without<FanOutOptions<NoPayload, Item>>,
): FanOutType<NoPayload, Item>;
export function defineTask(
  name: string,
  options: Without<TaskContractOptions<NoPayload>>,
): TaskContract<NoPayload>;
export function defineTask(name: string, options: Without<TaskTypeOptions<NoPayload>>): TaskType<NoPayload>;
export function defineTask<Schema extends StandardSchemaV1, Item>(
  name: string,
  options: FanOutOptions<Schema, Item>,
): FanOutType<Schema, Item>;
export function defineTask<Schema extends StandardSchemaV1>(
  name: string,
  options: TaskContractOptions<Schema>,
): TaskContract<Schema>;
export function defineTask<Schema extends StandardSchemaV1>(
  name: string,
  options: TaskTypeOptions<Schema>,
): TaskType<Schema>;
export function defineTask(
  name: string,
  options: Pick<CommonOptions<StandardSchemaV1>, "queue"> & {
    payload?: StandardSchemaV1 | undefined;
    handler?: unknown;
  },
): TaskContract {
  assertName(name, "type");
  if (typeof options !== "object" || options === null)
    throw invalid("options", "not an object.", "Give the queue, the payload's schema and the handler.");
  assertKnown(options);
  assertName(options.queue, "queue");
  const { payload = NO_PAYLOAD } = options;
  if (!isSchema(payload))
    throw invalid(
      "payload",
      "not a Standard Schema.",
      "Give a schema, for example z.object({ … }) of zod, or leave it out for a type without a payload.",
    );
  if ("generate" in options || "process" in options) {
    assertFanOut(options);
  } else if (options.handler !== undefined) {
    assertHandler(options.handler);
  }
  return Object.freeze({ type: name, ...options, payload });
}

/**
 * Adds the code to a contract: a handler, or `generate` and `process` with their options. The result is for workers. A task type may be
 * given too, such as in tests; its code is replaced.
 *
 * @example
 * // contract.ts, which the API server and the worker import
 * export const report = defineTask("report", { queue: "reports", payload: z.object({ tenant: z.string() }) });
 * // worker.ts
 * const worker = new Worker({ connection, types: [implement(report, async ({ tenant }) => mail(tenant))] });
 * @throws `INVALID_OPTION`
 */
export function implement<Schema extends StandardSchemaV1, Item>(
  contract: TaskContract<Schema>,
  handlers: FanOutHandlers<Schema, Item>,
): FanOutType<Schema, Item>;
export function implement<Schema extends StandardSchemaV1>(
  contract: TaskContract<Schema>,
  handler: Handler<Schema>,
): TaskType<Schema>;
export function implement(
  contract: TaskContract,
  code: FanOutHandlers<StandardSchemaV1, unknown> | Handler<StandardSchemaV1>,
): AnyTaskType {
  assertTaskType(contract, "contract");
  const { type, queue, payload } = contract;
  if (typeof code === "object" && code !== null) {
    assertOptions(code, FAN_OUT);
    return defineTask(type, { queue, payload, ...code });
  }
  assertHandler(code);
  return defineTask(type, { queue, payload, handler: code });
}

/** @throws `INVALID_OPTION` */
function assertHandler(handler: unknown): void {
  if (typeof handler === "function") return;
  throw invalid("handler", "not a function.", "Give the handler, or generate and process.");
}

const TAKES_NONE = "this task type takes no payload";
/** `NO_PAYLOAD` as JSON Schema. */
const NONE = { type: "object", nullable: true, maxProperties: 0 };

/** Takes no payload: what a task without one stores counts as none. */
const NO_PAYLOAD: NoPayload & StandardJSONSchemaV1<undefined> = {
  "~standard": {
    version: 1,
    vendor: "carillon",
    jsonSchema: { input: () => NONE, output: () => NONE },
    validate(value) {
      const none = value === undefined || value === null || JSON.stringify(value) === "{}";
      return none ? { value: undefined } : { issues: [{ message: TAKES_NONE }] };
    },
  },
};

/** The schema of types without a payload, if this is its JSON Schema, as a worker publishes it. */
export function noPayload(schema: object): NoPayload | undefined {
  return JSON.stringify(schema) === JSON.stringify(NONE) ? NO_PAYLOAD : undefined;
}

const FAN_OUT = ["generate", "process", "concurrency", "itemRetry"] as const satisfies (keyof FanOutHandlers<
  never,
  never
>)[];
const COMMON = ["payload", "queue", "handler"] as const;
const OF_ITEMS = [...COMMON, ...FAN_OUT] as const;

/** Policies are often looked for here. @throws `INVALID_OPTION` */
function assertKnown(options: object): void {
  const known: readonly string[] = "generate" in options || "process" in options ? OF_ITEMS : COMMON;
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  throw invalid(
    unknown,
    "there is no such option.",
    Object.hasOwn(taskSchema.shape, unknown)
      ? `Give it to the task: put(type, { …, ${unknown} }).`
      : nearestRemedy(unknown, known),
  );
}

/** Task types by name. @throws `INVALID_OPTION` if two have the same name */
export function typesByName<Type extends TaskContract>(types: readonly Type[]): Map<string, Type> {
  const known = new Map<string, Type>();
  for (const [i, type] of types.entries()) {
    if (known.has(type.type))
      throw invalid(`types[${i}]`, `there are two task types ${type.type}.`, "Give each name once.");
    known.set(type.type, type);
  }
  return known;
}

/** @throws `INVALID_OPTION` if the name or the schema of a task type is missing */
export function assertTaskType(value: unknown, field: string): void {
  if (!isTaskType(value)) throw noTaskType(field);
}

export function isTaskType(value: unknown): boolean {
  const { type, payload } = Object(value) as Partial<TaskContract>;
  return isName(type) && isSchema(payload);
}

function isSchema(value: StandardSchemaV1 | undefined): boolean {
  return typeof value?.["~standard"]?.validate === "function";
}

/** Does the same as `assertTaskType`; also refuses types without a handler, such as a contract. @throws `INVALID_OPTION` */
export function assertWorkable(value: unknown, field: string): void {
  assertTaskType(value, field);
  const { type, queue, handler, process } = value as Partial<TaskType & AnyFanOutType>;
  if (!isName(queue)) throw noTaskType(field);
  if (typeof handler === "function" || typeof process === "function") return;
  throw invalid(field, `task type ${type} has no handler.`, "Give implement(contract, handler).");
}

function noTaskType(field: string): CarillonError {
  return invalid(field, "not a task type.", "Give the result of defineTask.");
}

export function isFanOut(type: AnyTaskType): type is AnyFanOutType {
  return "process" in type;
}

/** Checks a payload against a type's schema and returns the schema's output. @throws `INVALID_PAYLOAD` with the path */
export async function validatePayload(type: TaskContract, payload: unknown): Promise<unknown> {
  const result = await type.payload["~standard"].validate(payload);
  if (!result.issues) return result.value;
  const issue = result.issues[0];
  const path = (issue?.path ?? []).map((part) => String(typeof part === "object" ? part.key : part));
  throw new CarillonError("INVALID_PAYLOAD", `${issue?.message ?? "does not fit"}.`, {
    field: ["payload", ...path].join(".").slice(0, 100),
    remedy:
      issue?.message === TAKES_NONE
        ? `Leave it out, or give the type a schema: defineTask("${type.type}", { payload: z.object({ … }) }).`
        : `Give a payload that fits the schema of task type ${type.type}.`,
  });
}
