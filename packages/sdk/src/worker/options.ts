import { CarillonError, type Duration, type Outcome } from "@carillon/core";
import {
  assertOptions,
  assertWhole,
  durationOption,
  invalid,
  isName,
  NAME_REMEDY,
  quote,
} from "@carillon/core/internal";
import {
  assertConnection,
  assertTelemetry,
  type ConnectionSpec,
  defaultLogger,
  type Logger,
  type RetentionOptions,
  type Store,
} from "@carillon/store";
import { assertList, MOST_MS } from "../options.js";
import { type AnyTaskType, assertWorkable, typesByName } from "../task-type.js";
import type { Telemetry } from "../telemetry.js";
import type { Middleware } from "./middleware.js";

export interface WorkerOptions {
  /** A Redis URL, several for a cluster, or an ioredis client whose options are taken over. */
  connection?: ConnectionSpec | undefined;
  /** Instead of `connection`: a store of your own; `stop` leaves it open. */
  store?: Store | undefined;
  /** Default `carillon`. */
  namespace?: string | undefined;
  /** Retention of runs that this worker settles, if their task sets none: as the nodes' option of this name. */
  retention?: RetentionOptions | undefined;
  /** Task types of this worker; it serves every queue that they name, and `queues`. */
  types: readonly AnyTaskType[];
  /** More queues to work. */
  queues?: readonly string[] | undefined;
  /** Code around each attempt, the first outermost. Default: none. */
  middleware?: readonly Middleware[] | undefined;
  /** `openTelemetry()` of `@carillon/sdk/otel`: a span for each attempt, around all middleware. Default: none. */
  telemetry?: Telemetry | undefined;
  /** Jobs at a time, per queue; 1 to 10,000, default 10. */
  concurrency?: number | undefined;
  /** Time until the job of an unresponsive worker is given to another one; at least 1 s, default 30 s. */
  lockDuration?: Duration | undefined;
  /** Time between two checks for jobs whose worker died; default 30 s. The second check takes them over. */
  stalledInterval?: Duration | undefined;
  /**
   * Time between two entries of this worker in the list of workers (`client.workers`); 100 ms to 5 min, default 5 s. A
   * worker that died is shown as dead after three.
   */
  heartbeatEvery?: Duration | undefined;
  /** Keep the `console` output of handlers as their run's output; it is still printed. Default true. */
  captureOutput?: boolean | undefined;
  /** Size limit of an attempt's output, in bytes; the newest is kept. Default 65,536. */
  maxOutput?: number | undefined;
  /**
   * Failed attempts are warnings, failed and crashed runs errors; runs that go well are only logged at debug. Default:
   * pino, as JSON lines on stdout.
   */
  logger?: Logger | undefined;
}

/** Identifies the run of an event. `task`: `owner/id`. */
export interface RunEvent {
  queue: string;
  run: string;
  task: string;
}

export const WORKER_EVENTS = [
  ...(["started", "settled", "generated", "fenced", "dropped", "cancelled", "crashed", "error"] as const),
] as const satisfies (keyof WorkerEvents)[];

export interface WorkerEvents {
  /** `waited`: milliseconds from the enqueue to this start, in Redis time; absent if the run was started before. */
  started: [RunEvent & { attempt: number; waited?: number }];
  /** `error`: text with its stack. `thrown`: what the handler threw, of its class and with its cause; not logged. */
  settled: [
    RunEvent & {
      attempt: number;
      outcome: Outcome | "retrying";
      ms: number;
      error?: string;
      thrown?: unknown;
    },
  ];
  /** A run's items are generated and wait to be done; the run is `settled` when all are. */
  generated: [RunEvent & { items: number }];
  /** The result of an attempt was discarded: another attempt had taken the run over, or the task was deleted. */
  fenced: [RunEvent];
  /** The run would have started too soon after the one before (`minGap`); no handler ran. */
  dropped: [RunEvent];
  /** The run was cancelled before a handler ran. Where one did, the run is `settled` as cancelled. */
  cancelled: [RunEvent];
  /** The run is over because its workers died too often; no handler ran. */
  crashed: [RunEvent & { error: string }];
  /** An error reported by BullMQ's worker: a lost connection or lock, for example. Also logged; needs no listener. */
  error: [Error];
}

export interface StopOptions {
  /**
   * Handlers that still run after this time have their signals aborted; one that then throws hands its job back to the queue.
   * One that does not heed its signal is waited for all the same. Default: they are waited for as long as they take.
   */
  within?: Duration | undefined;
}

const KNOWN = [
  "connection",
  "store",
  "namespace",
  "retention",
  "types",
  "queues",
  "middleware",
  "telemetry",
  "concurrency",
  "lockDuration",
  "stalledInterval",
  "heartbeatEvery",
  "captureOutput",
  "maxOutput",
  "logger",
] as const satisfies (keyof WorkerOptions)[];

export type Settings = ReturnType<typeof checked>;

/** Checks everything once; from here on the settings are frozen. @throws `INVALID_OPTION` */
export function checked(options: WorkerOptions) {
  assertOptions(options, KNOWN);
  const { types, queues = [], middleware = [], telemetry } = options;
  assertList(types, "types", "Give the task types to run.");
  for (const [i, type] of types.entries()) assertWorkable(type, `types[${i}]`);
  if (types.length === 0)
    throw invalid("types", "empty.", "Give a task type: a worker without any would work nothing.");
  assertConnection(options);
  assertTelemetry(telemetry);
  assertList(queues, "queues", "Give a list of names.");
  for (const [i, queue] of queues.entries()) assertQueue(queue, `queues[${i}]`);
  assertList(middleware, "middleware", "Give a list of functions.");
  for (const [i, one] of middleware.entries()) {
    if (typeof one !== "function")
      throw new CarillonError("INVALID_OPTION", "not a function.", { field: `middleware[${i}]` });
  }
  assertWhole(options.concurrency, "concurrency", 1, 10_000);
  assertWhole(options.maxOutput, "maxOutput", 0, 16 * 1024 * 1024);
  return Object.freeze({
    types: typesByName(types),
    queues: [...new Set([...types.map(({ queue }) => queue), ...queues])].sort(),
    middleware: telemetry ? [telemetry.attempt, ...middleware] : middleware,
    concurrency: options.concurrency ?? 10,
    lockDuration: durationOption(options.lockDuration, "lockDuration", 1_000, MOST_MS) ?? 30_000,
    stalledInterval: durationOption(options.stalledInterval, "stalledInterval", 1, MOST_MS) ?? 30_000,
    heartbeatEvery: durationOption(options.heartbeatEvery, "heartbeatEvery", 100, 300_000) ?? 5_000,
    captureOutput: options.captureOutput ?? true,
    maxOutput: options.maxOutput ?? 64 * 1024,
    logger: options.logger ?? defaultLogger(),
  });
}

function assertQueue(queue: string, field: string): void {
  if (isName(queue)) return;
  throw invalid(field, `got ${quote(queue)}.`, NAME_REMEDY);
}
