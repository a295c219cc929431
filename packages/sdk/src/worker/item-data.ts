import type { JobData, Json, Occurrence } from "@carillon/core";

/** `job.data` of a run, with the progress of its fan-out. */
export interface RunData extends JobData {
  /** Present from the first item until the run is final. */
  items?: {
    /** Fence of the attempt that began this round of items: a run that is retried from outside does all again. */
    readonly round: number;
    /** Number of items, once all are stored. */
    readonly total?: number;
    /** Time at which `generate` wanted the task to run again, UTC ms. */
    readonly nextAt?: number;
  };
}

export interface ItemData {
  /** Distinguishes an item from a run. */
  readonly child: true;
  readonly item: Json;
  readonly index: number;
  /** Belongs to the attempt that generated the item. */
  readonly fence: number;
  /** `limit`: the run's time limit; `grace`: how long an attempt may then take to end by itself. In ms. */
  readonly limit?: number;
  readonly grace: number;
  /** Belongs to the run. */
  readonly occurrence: Occurrence;
}
