import { withSeams } from "@carillon/store/internal";
import type { WorkerClock } from "./clock.js";
import type { WorkerOptions } from "./options.js";

/** Parts of a worker that only tests may replace. */
export interface WorkerSeams {
  readonly clock?: WorkerClock | undefined;
}

export function withWorkerSeams(options: WorkerOptions, seams: WorkerSeams): WorkerOptions {
  return withSeams(options, seams);
}
