import { assertName, assertOptions, assertWhole } from "@carillon/core/internal";
import type { AnyTaskType, Middleware } from "@carillon/sdk";
import type { Telemetry } from "@carillon/sdk/internal";
import type { RetentionOptions } from "@carillon/store";
import type { RedisServer } from "../redis.js";
import { type Moment, timeOf } from "./moment.js";

export interface TestKitOptions {
  /** Task types of the worker; it works every queue that these types name, and `queues`. */
  types?: readonly AnyTaskType[] | undefined;
  queues?: readonly string[] | undefined;
  /** Start of virtual time; default 2026-01-01T00:00:00Z. */
  start?: Moment | undefined;
  /** Number of scheduler nodes; default 1. At each moment all of them look for work. */
  nodes?: number | undefined;
  /** Whether the kit has Carillon's own worker; default true. Tests that use only `bullWorker` set it to false. */
  worker?: boolean | undefined;
  /** Code around each attempt of the worker. */
  middleware?: readonly Middleware[] | undefined;
  /** `openTelemetry()`, for client, nodes and worker. Default: none. */
  telemetry?: Telemetry | undefined;
  /** Concurrent jobs of the worker, per queue; default 10. */
  concurrency?: number | undefined;
  /** A server that several kits use, one after the other; `close` leaves it running. Default: a server of its own. */
  redis?: RedisServer | undefined;
  /** Default: a new one for each kit. */
  namespace?: string | undefined;
  /** Default: all runs and jobs are kept. */
  retention?: RetentionOptions | undefined;
  /** Real time in ms that the real work of a handler may take before `advance` gives up; default 4,000. */
  patience?: number | undefined;
}

export type Settings = ReturnType<typeof checked>;

const KNOWN = [
  "types",
  "queues",
  "start",
  "nodes",
  "worker",
  "middleware",
  "telemetry",
  "concurrency",
  "redis",
  "namespace",
  "retention",
  "patience",
] as const satisfies (keyof TestKitOptions)[];

const START = "2026-01-01T00:00:00Z";
let serial = 0;

/** @throws `INVALID_OPTION`, `INVALID_NAME` */
export function checked(options: TestKitOptions) {
  assertOptions(options, KNOWN);
  serial += 1;
  return Object.freeze({
    types: options.types ?? [],
    queues: (options.queues ?? []).map((queue) => assertName(queue, "queues")),
    start: timeOf(options.start ?? START, Date.parse(START), "start"),
    nodes: whole(options.nodes ?? 1, "nodes", 100),
    worker: options.worker ?? true,
    middleware: options.middleware ?? [],
    telemetry: options.telemetry,
    concurrency: whole(options.concurrency ?? 10, "concurrency", 10_000),
    redis: options.redis,
    namespace: assertName(options.namespace ?? `kit${serial}`, "namespace"),
    retention: options.retention,
    patience: whole(options.patience ?? 4_000, "patience", 3_600_000),
  });
}

function whole(value: number, field: string, most: number): number {
  assertWhole(value, field, 1, most);
  return value;
}
