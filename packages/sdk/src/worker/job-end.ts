import { DelayedError, type Job, WaitingChildrenError, WaitingError } from "bullmq";
import type { JobEnd } from "./verdict.js";

/** A job as BullMQ gave it to us. */
export interface Taken<Data = unknown> {
  readonly queue: string;
  readonly job: Job<Data>;
  readonly token: string;
}

/** A job that is delayed is looked at again no sooner, in ms: our clock may be ahead of the one that said until when. */
const SHORTEST_DELAY = 1_000;

/** Tells BullMQ: what is returned completes the job, what is thrown fails it or says that it was moved. */
export async function endJob({ job, token }: Taken, what: JobEnd): Promise<unknown> {
  switch (what.end) {
    case "complete":
      return what.value ?? null;
    case "fail":
      throw what.error;
    case "delay":
      await job.moveToDelayed(Math.max(what.until, Date.now() + SHORTEST_DELAY), token);
      throw new DelayedError();
    case "await items":
      if (await job.moveToWaitingChildren(token)) throw new WaitingChildrenError();
      break;
    case "hand back":
  }
  await job.moveToWait(token);
  throw new WaitingError();
}
