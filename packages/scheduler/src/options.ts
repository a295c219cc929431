import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { assertName, assertOptions, CarillonError, DEFAULT_NAMESPACE } from "@carillon/core";
import {
  type Alert,
  assertConnection,
  type ConnectionSpec,
  type Retention,
  type Store,
} from "@carillon/store";
import { pino } from "pino";

/** What the node says goes here: pino, or anything with its four methods. */
export interface Logger {
  debug(details: object, message: string): void;
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

export interface SchedulerOptions {
  /** A Redis URL, several for a cluster, or an ioredis client whose options are taken over. */
  connection?: ConnectionSpec | undefined;
  /** Instead of `connection`: a store of your own; `stop` leaves it open. */
  store?: Store | undefined;
  /** Which tasks and queues it serves; default `carillon`. Not used with `store`, which has its own. */
  namespace?: string | undefined;
  /** This node's name in logs, records and the registry; default `host-pid-random`. */
  nodeId?: string | undefined;
  /** Default: pino, as JSON lines on stdout. */
  logger?: Logger | undefined;
  /** A dead node's work is taken over within this time, in ms; 100 to 60,000, default 3,000. Its mutexes end a tenth before. */
  mutexTtl?: number | undefined;
  /** All due times are read again at least this often, in ms; 10 to 30,000, default 30,000. */
  rereadEvery?: number | undefined;
  /** Time between two entries of this node in the list of nodes, in ms; 100 to 300,000, default 10,000. */
  heartbeatEvery?: number | undefined;
  /** A lone occurrence later than this is missed where `catchUp` is `skip`, in ms; default 60,000. */
  grace?: number | undefined;
  /**
   * A Redis that evicts keys or has no AOF: `refuse` to start (default), or only `warn`. What cannot be read
   * (managed servers hide it) is a warning in either case.
   */
  unsafeRedis?: "refuse" | "warn" | undefined;
  /** What is kept of runs that this node settles, where their task says nothing. Not used with `store`, which has its own. */
  retention?: Partial<Retention> | undefined;
  /**
   * Told of each run that failed or crashed, each task that was paused for it, and each missed deadline: by one node of those
   * that have it, and again where that one dies meanwhile. Nodes without it leave alerts to these while one of them is alive. What
   * it throws is logged, and so is that it takes longer than 10 s: then the next is told.
   */
  onAlert?: ((alert: Alert) => void | Promise<void>) | undefined;
}

export interface Settings {
  readonly namespace: string;
  readonly nodeId: string;
  readonly logger: Logger;
  /** How long a mutex is taken for, in ms: what is left of the option's time is for whoever takes over. */
  readonly mutexTtl: number;
  readonly rereadEvery: number;
  readonly heartbeatEvery: number;
  readonly grace: number;
  readonly unsafeRedis: "refuse" | "warn";
  readonly onAlert: ((alert: Alert) => void | Promise<void>) | undefined;
}

const KNOWN = [
  "connection",
  "store",
  "namespace",
  "nodeId",
  "logger",
  "mutexTtl",
  "rereadEvery",
  "heartbeatEvery",
  "grace",
  "unsafeRedis",
  "retention",
  "onAlert",
] as const satisfies (keyof SchedulerOptions)[];

/** Checks everything once; from here on the settings are frozen. @throws `INVALID_OPTION`, `INVALID_NAME` */
export function settle(options: SchedulerOptions): Settings {
  assertOptions(options, KNOWN);
  assertConnection(options);
  const unsafeRedis = options.unsafeRedis ?? "refuse";
  if (unsafeRedis !== "refuse" && unsafeRedis !== "warn") {
    throw new CarillonError("INVALID_OPTION", "must be refuse or warn.", { field: "unsafeRedis" });
  }
  return Object.freeze({
    namespace: assertName(options.store?.namespace ?? options.namespace ?? DEFAULT_NAMESPACE, "namespace"),
    nodeId: assertName(options.nodeId ?? defaultNodeId(), "nodeId"),
    // Synchronous: the last lines before an exit must not be lost or overtaken.
    logger: options.logger ?? pino({ name: "carillon" }, pino.destination({ sync: true })),
    mutexTtl: Math.floor(0.9 * ms(options.mutexTtl, "mutexTtl", 3_000, 100, 60_000)),
    rereadEvery: ms(options.rereadEvery, "rereadEvery", 30_000, 10, 30_000),
    heartbeatEvery: ms(options.heartbeatEvery, "heartbeatEvery", 10_000, 100, 300_000),
    grace: ms(options.grace, "grace", 60_000, 0, Number.MAX_SAFE_INTEGER),
    unsafeRedis,
    onAlert: options.onAlert,
  });
}

function ms(value: number | undefined, field: string, fallback: number, least: number, most: number): number {
  if (value === undefined) return fallback;
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new CarillonError("INVALID_OPTION", `got ${String(value)}.`, {
    field,
    remedy: `Give whole milliseconds from ${least} to ${most}.`,
  });
}

function defaultNodeId(): string {
  const host =
    hostname()
      .replace(/[^A-Za-z0-9._-]/g, "-")
      .slice(0, 80) || "node";
  return `${host}-${process.pid}-${randomBytes(2).toString("hex")}`;
}
