import type { Context, Handler, TaskContract, TaskInput } from "@carillon/sdk";

/** A task of `@Task`. Its type follows from its method; its queue is the module's, and its schedule may come from the module's options. */
export interface TaskOptions extends Omit<TaskInput, "type" | "queue" | "schedule"> {
  queue?: string | undefined;
  schedule?: TaskInput["schedule"] | undefined;
}

/** A one-off that is enqueued at each start of the app. */
export interface Once {
  readonly id: string;
  readonly delay: number;
}

/** Facts that a decorator gives about a method. */
export interface Mark {
  readonly method: string;
  readonly contract?: TaskContract;
  readonly task?: TaskOptions;
  readonly once?: Once;
  /** Error of its arguments, reported at boot with all others. */
  readonly fault?: string;
}

// A method's payload is contravariant, and no payload fits all methods but this one.
// biome-ignore lint/suspicious/noExplicitAny: see above
type AnyMethod = (payload: any, context: Context) => unknown;
type On<Method> = <M extends Method>(
  target: object,
  method: string,
  descriptor: TypedPropertyDescriptor<M>,
) => void;

const MARKS = "carillon:marks";

/** Keeps marks with the class, not with the function: another decorator may replace that. */
export function mark(what: Omit<Mark, "method">): On<AnyMethod> {
  return (target, method) => Reflect.defineMetadata(MARKS, [...marksOf(target), { ...what, method }], target);
}

/** The marks of a class and of those that it extends. */
export function marksOf(prototype: object): readonly Mark[] {
  return (Reflect.getMetadata(MARKS, prototype) as Mark[] | undefined) ?? [];
}

/**
 * Runs the method when the task's schedule says so, on one of all replicas. The method gets payload and context, as a handler does.
 * Together with `@TaskHandler`, each `@Task` is a task of that type; alone it is the only task of a type of its name.
 *
 * @example
 * \@Task({ id: "nightly", schedule: { cron: "0 3 * * *", timezone: "Europe/Berlin" } })
 * async nightly() {}
 */
export function Task(options: TaskOptions): On<AnyMethod> {
  return mark({ task: options });
}

/**
 * Makes the method the handler of a task type, for tasks that are put, triggered or enqueued elsewhere.
 *
 * @example
 * \@TaskHandler(report)
 * async build({ tenant }: { tenant: string }, { signal }: Context) {}
 */
export function TaskHandler<Schema extends TaskContract["payload"]>(
  contract: TaskContract<Schema>,
): On<Handler<Schema>> {
  return mark({ contract }) as On<Handler<Schema>>;
}
