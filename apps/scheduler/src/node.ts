import { Scheduler } from "@carillon/scheduler";
import { isCarillonError } from "@carillon/sdk";
import type { Logger } from "pino";
import type { Config } from "./config.js";
import { EXIT } from "./exit-codes.js";
import { boundPort, type Readiness, serve } from "./http.js";
import { schedulerMetrics } from "./metrics.js";

/** Longest wait for what is under way when told to stop, in ms. */
const STOP_WITHIN = 10_000;
/** Without Redis nothing under way can be finished: waiting helps nobody. */
const STOP_WITHIN_WITHOUT_REDIS = 1_000;

type Failpoint = NonNullable<ConstructorParameters<typeof Scheduler>[1]>["failpoint"];

/** Runs one node until a signal ends it. Resolves with the exit code. @param failpoint for tests only */
export async function runNode(config: Config, logger: Logger, failpoint?: Failpoint): Promise<number> {
  const scheduler = createScheduler(config, logger, failpoint);
  const metrics = schedulerMetrics(scheduler);
  let lost = "waiting for Redis";
  scheduler.on("connection", ({ message = "Redis cannot be reached" }) => {
    lost = message;
  });
  let stopping = false;
  const readiness = (): Readiness => {
    if (stopping) return { ready: false, why: "stopping" };
    if (scheduler.ready) return { ready: true };
    return { ready: false, why: scheduler.store.link.ready ? (scheduler.trouble ?? "starting") : lost };
  };

  // Before Redis is reached: from the first moment on someone can ask why it is not ready.
  const server = await serve(
    { readiness, metrics: async () => ({ type: metrics.contentType, text: await metrics.metrics() }) },
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
  stopping = true;
  const code = typeof end === "string" ? await stop(scheduler, end, logger) : explain(end.error, logger);
  // Last, so that /ready says "stopping" until the work is done.
  server.close();
  server.closeAllConnections();
  return code;
}

function createScheduler(config: Config, logger: Logger, failpoint: Failpoint): Scheduler {
  const { connection, namespace, nodeId, mutexTtl, rereadEvery, heartbeatEvery, grace, unsafeRedis } = config;
  const { sabotage } = config;
  if (sabotage.length > 0) {
    logger.warn({ sabotage }, "CARILLON_TEST_ONLY_SABOTAGE IS SET: THIS NODE BREAKS THE PROMISE ON PURPOSE");
  }
  return new Scheduler(
    { connection, namespace, nodeId, logger, mutexTtl, rereadEvery, heartbeatEvery, grace, unsafeRedis },
    { sabotage, ...(failpoint ? { failpoint } : {}) },
  );
}

/** The first signal stops in good order; a second one means now. */
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

async function stop(scheduler: Scheduler, signal: string, logger: Logger): Promise<number> {
  logger.info({ signal }, "stopping");
  const within = scheduler.store.link.ready ? STOP_WITHIN : STOP_WITHIN_WITHOUT_REDIS;
  const late = new Promise<"late">((resolve) => setTimeout(resolve, within, "late").unref());
  const how = await Promise.race([scheduler.stop().then(() => "done" as const), late]);
  // Safe all the same: a claim is one atomic step, and the others take over.
  if (how === "late") logger.warn({ within }, "not everything came to an end in time");
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
