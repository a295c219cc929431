import { withSeams } from "@carillon/store/internal";
import type { WorkerClock } from "./clock.js";
import type { WorkerOptions } from "./options.js";

/** What only tests may change of a worker. */
export interface WorkerSeams {
  readonly clock?: WorkerClock | undefined;
}

export function withWorkerSeams(options: WorkerOptions, seams: WorkerSeams): WorkerOptions {
  return withSeams(options, seams);
}
