import { Scheduler } from "@carillon/scheduler";
import { Store, type StoreSeams, withSeams } from "@carillon/scheduler/internal";
import { isCarillonError } from "@carillon/sdk";
import type { Logger } from "pino";
import type { Config } from "./config.js";
import { EXIT } from "./exit-codes.js";
import { boundPort, serve } from "./http.js";
import { schedulerMetrics } from "./metrics.js";

/** Longest wait for work in progress when stopping, in ms. */
const STOP_WITHIN = 10_000;
/** The same without Redis, when no work can be finished. */
const STOP_WITHIN_WITHOUT_REDIS = 1_000;

type Failpoint = StoreSeams["failpoint"];

/** Runs one node until a signal ends it. Resolves with the exit code. @param failpoint for tests only */
export async function runNode(config: Config, logger: Logger, failpoint?: Failpoint): Promise<number> {
  const { store, scheduler } = open(config, logger, failpoint);
  const metrics = schedulerMetrics(scheduler, store, config.metricsTag);

  // Before Redis is reached, so that /ready can report from the start why the node is not ready.
  const server = await serve(
    {
      readiness: () => scheduler.readiness,
      metrics: async () => ({ type: metrics.contentType, text: await metrics.metrics() }),
    },
    config.host,
    config.port,
  );
  logger.info({ port: boundPort(server), host: config.host }, "listening");

  const signalled = firstSignal(logger);
  const failed = scheduler.start().then(
    () => signalled,
    (error: unknown) => ({ error }),
  );
  const end = await Promise.race([signalled, failed]);
  const code =
    typeof end === "string" ? await stop(scheduler, store, end, logger) : explain(end.error, logger);
  await store.close();
  // Closed last, so that /ready reports "stopping" until the work is done.
  server.close();
  server.closeAllConnections();
  return code;
}

function open(
  { connection, namespace, sabotage, ...config }: Config,
  logger: Logger,
  failpoint: Failpoint,
): { store: Store; scheduler: Scheduler } {
  const { nodeId, mutexTtl, rereadEvery, heartbeatEvery, grace, unsafeRedis, consoleUrl, watchdog } = config;
  if (sabotage.length > 0)
    logger.warn({ sabotage }, "CARILLON_TEST_ONLY_SABOTAGE IS SET: THIS NODE BREAKS THE PROMISE ON PURPOSE");
  const store = new Store(withSeams({ connection, namespace }, { sabotage, failpoint }));
  const options = {
    nodeId,
    logger,
    mutexTtl,
    rereadEvery,
    heartbeatEvery,
    grace,
    unsafeRedis,
    consoleUrl,
    watchdog,
  };
  return { store, scheduler: new Scheduler({ store, ...options }) };
}

/** The first signal stops the node gracefully; a second one exits at once. */
function firstSignal(logger: Logger): Promise<string> {
  return new Promise((resolve) => {
    let seen = false;
    const onSignal = (signal: NodeJS.Signals) => {
      if (seen) {
        logger.warn({ signal }, "second signal: exiting at once");
        process.exit(EXIT.killed);
      }
      seen = true;
      resolve(signal);
    };
    process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
  });
}

async function stop(scheduler: Scheduler, store: Store, signal: string, logger: Logger): Promise<number> {
  logger.info({ signal }, "stopping");
  const within = store.ready ? STOP_WITHIN : STOP_WITHIN_WITHOUT_REDIS;
  const late = new Promise<"late">((resolve) => setTimeout(resolve, within, "late").unref());
  const how = await Promise.race([scheduler.stop().then(() => "done" as const), late]);
  // Still safe: a claim is one atomic step, and other nodes take over.
  if (how === "late") logger.warn({ within }, "stopped before all work was finished");
  logger.info({}, "stopped");
  return EXIT.stopped;
}

function explain(error: unknown, logger: Logger): number {
  if (isCarillonError(error)) {
    logger.fatal({ code: error.code, remedy: error.remedy }, error.message);
    return error.code === "REDIS_UNSAFE" ? EXIT.unsafeRedis : EXIT.unexpected;
  }
  logger.fatal({ err: error }, "could not start");
  return EXIT.unexpected;
}
