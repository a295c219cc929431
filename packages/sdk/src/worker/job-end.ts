import { type Logger, redisError, type Turn } from "@carillon/store";
import { bull } from "@carillon/store/internal";
import type { Job } from "bullmq";
import { isPermanent, withRoom } from "./errors.js";
import type { JobEnd } from "./verdict.js";

/** A job as BullMQ gave it to us. */
export interface Taken<Data = unknown> {
  readonly queue: string;
  readonly job: Job<Data>;
  readonly token: string;
  /** Undefined: the job is not a run's. */
  readonly turn?: Turn | undefined;
}

/** Minimum delay of a job, in ms: this process' clock may be ahead of the one that set the time. */
const SHORTEST_DELAY = 1_000;

/** Reports the end to BullMQ: a returned value completes the job, an error fails it or says that it was moved. */
export async function endJob(taken: Taken, what: JobEnd, logger: Logger): Promise<unknown> {
  const { job, token } = taken;
  switch (what.end) {
    case "complete":
      return what.value ?? null;
    case "fail":
      throw forBull(withRoom(what.error, job.stacktrace ?? []));
    case "delay": {
      const until = Math.max(what.until, Date.now() + SHORTEST_DELAY);
      await moved(taken, () => job.moveToDelayed(until, token), logger);
      throw new (bull().DelayedError)();
    }
    case "await items":
      if ((await moved(taken, () => job.moveToWaitingChildren(token), logger)) === false) break;
      throw new (bull().WaitingChildrenError)();
    case "hand back":
  }
  await moved(taken, () => job.moveToWait(token), logger);
  throw new (bull().WaitingError)();
}

/** BullMQ retries after any error that is not its own for the end of a job. */
function forBull(error: Error): Error {
  if (!isPermanent(error)) return error;
  const { message, stack = message, cause } = error;
  return Object.assign(new (bull().UnrecoverableError)(message), { stack, cause });
}

/**
 * Moves a job. If that is not possible (in a failover Redis refuses writes for a moment), the job stays, and returns
 * when its lock has expired: failing it would cost the run an attempt, or end it.
 */
async function moved<T>({ queue, job }: Taken, move: () => Promise<T>, logger: Logger) {
  try {
    return await move();
  } catch (error) {
    logger.warn({ queue, job: job.id, code: redisError(error).code }, "a job could not be moved");
    return undefined;
  }
}
