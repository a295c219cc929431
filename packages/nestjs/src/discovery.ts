import {
  type AnyTaskType,
  type Context,
  defineTask,
  implement,
  type TaskContract,
  type TaskInput,
} from "@carillon/sdk";
import { lintSchedule, parseTask } from "@carillon/sdk/schedule";
import { Inject, Injectable } from "@nestjs/common";
import { ContextIdFactory, DiscoveryService, ExternalContextCreator, ModuleRef } from "@nestjs/core";
import { type Mark, marksOf, type Once } from "./decorators.js";
import type { CarillonOptions } from "./options.js";

type Wrapper = ReturnType<DiscoveryService["getProviders"]>[number];
type Method = (payload: unknown, context: Context) => Promise<never>;

/** Takes any payload. */
const ANY: TaskContract["payload"] = {
  "~standard": { version: 1, vendor: "carillon", validate: (value) => ({ value }) },
};

/** Nest's names for what `@UseGuards` and the like put on a method or a class. */
const ENHANCERS = { guards: "__guards__", interceptors: "__interceptors__", filters: "__exceptionFilters__" };

/** Definitions by the decorators of an app. */
export class Found {
  readonly types: AnyTaskType[] = [];
  readonly tasks: TaskInput[] = [];
  readonly onces: { readonly type: TaskContract; readonly once: Once }[] = [];
  readonly faults: string[] = [];
  /** Places of the definitions of types and tasks, because each may come once. */
  readonly #places = new Map<string, string>();

  /** Returns false if there is a type of this name. */
  addType(type: AnyTaskType, place: string): boolean {
    const first = this.#isFirst(`type ${type.type}`, place);
    if (first) this.types.push(type);
    return first;
  }

  /** Checks all that a put checks without Redis. */
  async addTask(type: TaskContract, input: TaskInput, place: string): Promise<void> {
    const { definition } = parseTask(input);
    const never = lintSchedule(definition.schedule).find(({ code }) => code === "NEVER_FIRES");
    if (never) throw new Error(`schedule: ${never.message}`);
    const { issues } = await type.payload["~standard"].validate(definition.payload);
    if (issues) throw new Error(`payload: ${issues[0]?.message}.`);
    const { queue, owner, id } = definition;
    if (this.#isFirst(`task ${queue}/${owner}/${id}`, place)) this.tasks.push(input);
  }

  #isFirst(what: string, place: string): boolean {
    const other = this.#places.get(what);
    if (other === undefined) this.#places.set(what, place);
    else this.faults.push(`${place}: ${other} has the ${what} too. Use another id.`);
    return other === undefined;
  }
}

/** Finds the decorated methods of an app. */
@Injectable()
export class TaskDiscovery {
  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(ModuleRef) private readonly modules: ModuleRef,
    @Inject(ExternalContextCreator) private readonly contexts: ExternalContextCreator,
  ) {}

  async find(options: CarillonOptions): Promise<Found> {
    const found = new Found();
    for (const type of options.types ?? []) found.addType(type, "options.types");
    for (const wrapper of [...this.discovery.getProviders(), ...this.discovery.getControllers()]) {
      for (const [method, marks] of methodsOf(wrapper)) {
        const place = `${wrapper.name}.${String(method)}`;
        try {
          await this.#add(found, { wrapper, method, marks, place, options });
        } catch (error) {
          found.faults.push(`${place}: ${(error as Error).message}`);
        }
      }
    }
    const ids = found.tasks.map(({ id }) => id);
    for (const id of Object.keys(options.tasks ?? {})) {
      if (!ids.includes(id)) found.faults.push(`options.tasks.${id}: no @Task has this id.`);
    }
    return found;
  }

  async #add(found: Found, { wrapper, method, marks, place, options }: Decorated): Promise<void> {
    const fault = marks.find((one) => one.fault !== undefined)?.fault;
    if (fault !== undefined) throw new Error(fault);
    const contracts = marks.flatMap(({ contract }) => contract ?? []);
    const tasks = marks.flatMap(({ task }) => (task ? { ...task, ...options.tasks?.[task.id] } : []));
    const onces = marks.flatMap(({ once }) => once ?? []);
    const named = [...contracts, ...tasks, ...onces];
    if (contracts.length > 1) throw new Error("several @TaskHandler. Give each a method of its own.");
    if (contracts.length === 0 && named.length > 1)
      throw new Error("several @Task. Add @TaskHandler with the type that they share.");
    if (named.some((one) => !("type" in one || one.id)))
      throw new Error("id: missing. Give the task a name that stays the same.");
    const type = typeOf(named[0] as (typeof named)[0], this.#handler(wrapper, method), options.queue);
    if (!found.addType(type, place)) return;
    for (const once of onces) found.onces.push({ type, once });
    for (const task of tasks) {
      await found.addTask(type, { queue: type.queue, ...task, type: type.type } as TaskInput, place);
    }
  }

  /**
   * The method as Nest calls it: with the guards, interceptors and filters of the method or its class. If a dependency has the scope of a
   * request, each attempt gets an instance of its own, for which `REQUEST` is the attempt's context.
   */
  #handler(wrapper: Wrapper, method: string): Method {
    const prototype = Object.getPrototypeOf(wrapper.instance);
    const declared = Object.fromEntries(
      Object.entries(ENHANCERS).map(([kind, key]) => [
        kind,
        Reflect.hasMetadata(key, prototype.constructor) || Reflect.hasMetadata(key, prototype[method]),
      ]),
    );
    const bind = (instance: Record<string, (...args: unknown[]) => unknown>, contextId?: { id: number }) => {
      const callback = instance[method] as (...args: unknown[]) => unknown;
      const none = undefined;
      const { contexts } = this;
      const how = [none, none, contextId, none, declared, "carillon"] as const;
      return contexts.create(instance, callback, method, ...how) as Method;
    };
    if (wrapper.isDependencyTreeStatic() && !wrapper.isTransient) return bind(wrapper.instance);
    return async (payload, context) => {
      const contextId = ContextIdFactory.create();
      this.modules.registerRequestByContextId(context, contextId);
      const instance = await this.modules.resolve(wrapper.token as never, contextId, { strict: false });
      return bind(instance, contextId)(payload, context);
    };
  }
}

interface Decorated {
  readonly wrapper: Wrapper;
  readonly method: string;
  readonly marks: readonly Mark[];
  readonly place: string;
  readonly options: CarillonOptions;
}

/** The type of a contract; or one named as its only task. */
function typeOf(
  named: TaskContract | { id: string; queue?: string | undefined; payload?: unknown },
  handler: Method,
  queue: string | undefined,
): AnyTaskType {
  if ("type" in named) return implement(named, handler);
  const common = { queue: named.queue ?? queue ?? "", handler };
  if (common.queue === "") throw new Error("queue: missing. Give `queue` to CarillonModule, or to the task.");
  return named.payload === undefined
    ? defineTask(named.id, common)
    : defineTask(named.id, { ...common, payload: ANY });
}

function methodsOf({ instance, isAlias }: Wrapper): Map<string, Mark[]> {
  const methods = new Map<string, Mark[]>();
  if (isAlias || typeof instance !== "object" || instance === null) return methods;
  for (const one of marksOf(Object.getPrototypeOf(instance) ?? {})) {
    methods.set(one.method, [...(methods.get(one.method) ?? []), one]);
  }
  return methods;
}
