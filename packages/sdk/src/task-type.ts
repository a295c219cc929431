import { assertName, CarillonError, type Json, type TaskInput } from "@carillon/core";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Context } from "./context.js";

type Awaitable<T> = T | Promise<T>;

export interface TaskTypeOptions<Schema extends StandardSchemaV1> {
  /** Any Standard Schema (zod, valibot, arktype, …): checked when a task is put, and again before the handler. */
  payload: Schema;
  /** Where its jobs go when a task names no queue of its own. */
  queue: string;
  /** Gets the schema's output. What it returns is kept as the run's result (JSON). */
  handler: (
    payload: StandardSchemaV1.InferOutput<Schema>,
    context: Context,
  ) => Awaitable<Json | undefined | void>;
}

/** A task type: a name, the shape of its payload, and the code that does it. */
export interface TaskType<Schema extends StandardSchemaV1 = StandardSchemaV1>
  extends TaskTypeOptions<Schema> {
  readonly type: string;
}

// A handler's payload is contravariant; a list of task types must hold all of them.
// biome-ignore lint/suspicious/noExplicitAny: see above
export type AnyTaskType = TaskType<any>;

/** What a caller writes of a task whose type is given apart. */
export type TypedTask<Type extends AnyTaskType> = Omit<TaskInput, "type" | "queue" | "payload"> & {
  payload: StandardSchemaV1.InferInput<Type["payload"]>;
  /** Default: the type's queue. */
  queue?: string;
};

/**
 * Defines a task type.
 *
 * @example
 * const report = defineTask("report", {
 *   queue: "reports",
 *   payload: z.object({ tenant: z.string() }),
 *   handler: async ({ tenant }, { log }) => log(`report for ${tenant}`),
 * });
 * @throws `INVALID_NAME`, `INVALID_OPTION`
 */
export function defineTask<Schema extends StandardSchemaV1>(
  name: string,
  options: TaskTypeOptions<Schema>,
): TaskType<Schema> {
  assertName(name, "type");
  assertName(options.queue, "queue");
  if (typeof options.payload?.["~standard"]?.validate !== "function") {
    throw new CarillonError("INVALID_OPTION", "not a Standard Schema.", {
      field: "payload",
      remedy: "Give a schema, for example z.object({ … }) of zod.",
    });
  }
  if (typeof options.handler !== "function") {
    throw new CarillonError("INVALID_OPTION", "not a function.", {
      field: "handler",
      remedy: "Give the handler.",
    });
  }
  return Object.freeze({ type: name, ...options });
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
