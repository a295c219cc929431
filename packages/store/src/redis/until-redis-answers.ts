import type { Logger } from "../logger.js";
import { reconnectAfter } from "./connection.js";
import { redisError } from "./redis-error.js";

/**
 * Asks until Redis answers, as long as that takes, and logs why it waits. For the start of nodes and workers.
 *
 * @param signal ends the wait: the promise then resolves without an answer
 * @throws `REDIS_UNSAFE`, `INVALID_OPTION`: Redis has answered, and would answer the same again
 */
export async function untilRedisAnswers(
  ask: () => Promise<unknown>,
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  let [end, timer] = [() => {}, undefined as NodeJS.Timeout | undefined];
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  signal.addEventListener("abort", end);
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      await Promise.race([ask(), ended]);
      break;
    } catch (error) {
      if (signal.aborted) break;
      const coded = redisError(error);
      if (coded.code === "REDIS_UNSAFE" || coded.code === "INVALID_OPTION") throw coded;
      const { code, message } = coded;
      logger.error({ code, failures, error: message }, "waiting for Redis");
      const pause = new Promise((resolve) => {
        timer = setTimeout(resolve, reconnectAfter(failures));
      });
      await Promise.race([pause, ended]);
    }
  }
  clearTimeout(timer);
  signal.removeEventListener("abort", end);
}
