import { hostname } from "node:os";
import { CarillonError, DEFAULT_NAMESPACE, type Duration } from "@carillon/core";
import {
  assertName,
  assertOptions,
  DEFAULT_CATCH_UP_GRACE,
  durationOption,
  invalid,
  MAX_DURATION,
  processId,
} from "@carillon/core/internal";
import {
  type Alert,
  assertConnection,
  assertTelemetry,
  type ClaimTracer,
  type ConnectionSpec,
  defaultLogger,
  type Logger,
  newToken,
  type RetentionOptions,
  type Store,
} from "@carillon/store";
import { claimsOf } from "./seams.js";

export interface SchedulerOptions {
  /** A Redis URL, several for a cluster, or an ioredis client whose options are used. */
  connection?: ConnectionSpec | undefined;
  /** Instead of `connection`: a store of your own; `stop` leaves it open. */
  store?: Store | undefined;
  /** Namespace of the tasks and queues that it serves; default `carillon`. Not used with `store`, which has its own. */
  namespace?: string | undefined;
  /** This node's name in logs, records and the registry; default `host-pid-random`. */
  nodeId?: string | undefined;
  /** Default: pino, as JSON lines on stdout. */
  logger?: Logger | undefined;
  /** Other nodes take over a dead node's work within this time; 100 ms to 60 s, default 3 s. Its mutexes end a tenth earlier. */
  mutexTtl?: Duration | undefined;
  /** All due times are read again at least this often; 10 ms to 30 s, default 30 s. */
  rereadEvery?: Duration | undefined;
  /** Time between two entries of this node in the list of nodes; 100 ms to 5 min, default 10 s. */
  heartbeatEvery?: Duration | undefined;
  /** A lone occurrence later than this is missed if `catchUp` is `skip`; up to ten years, default 60 s. */
  grace?: Duration | undefined;
  /**
   * For a Redis that evicts keys or has no AOF: `refuse` to start (default), or only `warn`. A setting that cannot be read
   * (managed servers hide them) is a warning in either case.
   */
  unsafeRedis?: "refuse" | "warn" | undefined;
  /**
   * Default retention for runs that this node settles; the task's own retention comes first. Not used with `store`,
   * which has its own.
   */
  retention?: RetentionOptions | undefined;
  /**
   * Called for each alert: once for an incident, such as runs that fail, and when it is over. One of the nodes that
   * have `onAlert` calls it; if that node dies meanwhile, another one calls it again. Nodes without it leave alerts to them while
   * one of them is alive. Errors are logged. A call that takes longer than 10 s is logged too, and the next alert follows.
   */
  onAlert?: ((alert: Alert) => void | Promise<void>) | undefined;
  /** Address of the console, for links in webhooks and mails: `https://carillon.example.com`. Default: no links. */
  consoleUrl?: string | undefined;
  /**
   * A watchdog outside, such as a check of healthchecks.io: it gets a POST each minute (`every`, 1 s to 1 d), sent by a
   * worker with `alertWebhook` that handles a task which nodes enqueue. If that fails anywhere, nothing is sent, and
   * the watchdog raises the alarm. Default: none.
   */
  watchdog?: WatchdogOptions | undefined;
  /** `openTelemetry()` of `@carillon/sdk/otel`: a span for each claim, whose trace the run goes on with. Default: none. */
  telemetry?: ClaimTracer | undefined;
}

export interface WatchdogOptions {
  readonly url: string;
  readonly every?: Duration | undefined;
}

export type Settings = ReturnType<typeof checked>;

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
  "consoleUrl",
  "watchdog",
  "telemetry",
] as const satisfies (keyof SchedulerOptions)[];

/** Checks everything once; from here on the settings are frozen. @throws `INVALID_OPTION`, `INVALID_NAME` */
export function checked(options: SchedulerOptions) {
  assertOptions(options, KNOWN);
  assertConnection(options);
  assertTelemetry(options.telemetry);
  const unsafeRedis = options.unsafeRedis ?? "refuse";
  if (unsafeRedis !== "refuse" && unsafeRedis !== "warn") {
    throw new CarillonError("INVALID_OPTION", "must be refuse or warn.", { field: "unsafeRedis" });
  }
  return Object.freeze({
    namespace: assertName(options.store?.namespace ?? options.namespace ?? DEFAULT_NAMESPACE, "namespace"),
    nodeId: assertName(options.nodeId ?? defaultNodeId(), "nodeId"),
    logger: options.logger ?? defaultLogger(),
    /** Time-to-live of a mutex in ms; the rest of the option's time is for the node that takes over. */
    mutexTtl: Math.floor(0.9 * (durationOption(options.mutexTtl, "mutexTtl", 100, 60_000) ?? 3_000)),
    rereadEvery: durationOption(options.rereadEvery, "rereadEvery", 10, 30_000) ?? 30_000,
    heartbeatEvery: durationOption(options.heartbeatEvery, "heartbeatEvery", 100, 300_000) ?? 10_000,
    grace: durationOption(options.grace, "grace", 0, MAX_DURATION) ?? DEFAULT_CATCH_UP_GRACE,
    unsafeRedis,
    onAlert: options.onAlert,
    consoleUrl: consoleUrlOf(options.consoleUrl),
    watchdog: watchdogOf(options.watchdog),
    telemetry: options.telemetry,
    ...claimsOf(options),
  });
}

/** Without a slash at its end. */
function consoleUrlOf(url: string | undefined): string | undefined {
  if (url === undefined) return undefined;
  if (URL.canParse(url) && /^https?:/.test(url)) return url.replace(/\/+$/, "");
  throw invalid(
    "consoleUrl",
    "not an address.",
    "Give the console's http or https address, such as https://carillon.example.com.",
  );
}

function watchdogOf(watchdog: WatchdogOptions | undefined): { url: string; every: number } | undefined {
  if (watchdog === undefined) return undefined;
  assertOptions(watchdog, ["url", "every"], "watchdog");
  const { url, every } = watchdog;
  if (!URL.canParse(url) || !/^https?:/.test(url)) {
    throw invalid(
      "watchdog.url",
      "not an address.",
      "Give the http or https address that expects the heartbeat.",
    );
  }
  return { url, every: durationOption(every, "watchdog.every", 1_000, 86_400_000) ?? 60_000 };
}

function defaultNodeId(): string {
  return processId(hostname(), process.pid, newToken());
}
