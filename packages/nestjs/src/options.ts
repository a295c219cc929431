import type { SetConfig } from "@carillon/ops";
import type { SchedulerOptions } from "@carillon/scheduler";
import type {
  AnyTaskType,
  Client,
  ClientOptions,
  ConnectionSpec,
  Duration,
  WorkerOptions,
} from "@carillon/sdk";
import { ConfigurableModuleBuilder } from "@nestjs/common";
import type { TaskOptions } from "./decorators.js";

type Common = "connection" | "store" | "namespace";

/** The tasks of an app as a set, which owns them: see docs/schedules-as-code.md. */
export interface SetOptions
  extends Pick<SetConfig, "commit" | "adopt" | "protect" | "allowRemovals" | "prune"> {
  /** Default: the `queue` of the module. */
  name?: string | undefined;
  /** Version of the app: a replica of an older one leaves the tasks of a newer one alone. Default: none, the last start wins. */
  version?: string | undefined;
  /** Whether stored tasks of the set without a method are removed. Default false: they are reported. */
  remove?: boolean | undefined;
}

/** Options of `CarillonModule`. */
export interface CarillonOptions {
  /** A Redis URL, several for a cluster, or an ioredis client whose options are taken over. */
  connection?: ConnectionSpec | undefined;
  /** Default `carillon`. */
  namespace?: string | undefined;
  /**
   * Queue of all `@Task` that name none. Give each service one of its own: all workers of a queue need all task types of
   * that queue.
   */
  queue?: string | undefined;
  /** Fields of `@Task` by id, which replace those of the decorator: a schedule from configuration, `enabled: false` in staging. */
  tasks?: Readonly<Record<string, Partial<Omit<TaskOptions, "id">>>> | undefined;
  /** Further task types of the worker, such as `httpRequest` or one whose runs are many items. */
  types?: readonly AnyTaskType[] | undefined;
  /** The set that the tasks of this app are, or its name. Default: named as the `queue`. */
  set?: string | SetOptions | undefined;
  /** Whether the tasks of this app are put when it starts. Default true. */
  sync?: boolean | undefined;
  /** Options of the client that services inject. */
  client?: Omit<ClientOptions, Common> | undefined;
  /** Whether this process is a scheduler node, or the node's options. Default true. */
  node?: boolean | Omit<SchedulerOptions, Common> | undefined;
  /** Whether this process runs handlers, or the worker's options. Default true. */
  worker?: boolean | Omit<WorkerOptions, Common | "types"> | undefined;
  /** Time that running handlers have to end when the app closes, before their signals are aborted. Default `"25s"`. */
  stopWithin?: Duration | undefined;
}

export const KNOWN = [
  "connection",
  "namespace",
  "queue",
  "tasks",
  "types",
  "set",
  "sync",
  "client",
  "node",
  "worker",
  "stopWithin",
] as const;

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN: OPTIONS } =
  new ConfigurableModuleBuilder<CarillonOptions>({ moduleName: "Carillon" })
    .setClassMethodName("forRoot")
    .setFactoryMethodName("createCarillonOptions")
    .setExtras({ isGlobal: true }, (definition, { isGlobal }) => ({ ...definition, global: isGlobal }))
    .build();

/** Token of the test kit, which tests provide instead of node and worker. */
export const KIT = Symbol.for("carillon.nestjs.kit");

/** The `TestKit` of `CarillonTestingModule`. */
export interface Kit {
  readonly client: Client;
  work(options: Pick<WorkerOptions, "types" | "queues" | "middleware" | "concurrency">): Promise<unknown>;
  close(): Promise<void>;
}
