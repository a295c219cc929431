import type { Logger, Store } from "@carillon/store";
import type { AnyTaskType } from "../task-type.js";
import type { ActiveJobs } from "./active.js";
import type { WorkerClock } from "./clock.js";
import type { Lacking } from "./heartbeat.js";
import type { ItemQueues } from "./item-queues.js";
import type { Middleware } from "./middleware.js";
import type { WorkerEvents } from "./options.js";
import type { OutputSaver } from "./output-saver.js";

/** Dependencies shared by a worker's attempts. */
export interface Parts {
  readonly store: Store;
  readonly types: ReadonlyMap<string, AnyTaskType>;
  readonly logger: Logger;
  readonly clock: WorkerClock;
  readonly middleware: readonly Middleware[];
  readonly active: ActiveJobs;
  readonly lacking: Lacking;
  readonly outputs: OutputSaver;
  readonly items: ItemQueues;
  /** Size limit of an attempt's output, in bytes. */
  readonly maxOutput: number;
  /** In ms. */
  readonly lockDuration: number;
  /** The worker takes no more jobs. */
  readonly stopping: () => boolean;
  /** Logs it and calls the listeners. What a listener throws is logged too. */
  readonly emit: <Event extends keyof Omit<WorkerEvents, "error">>(
    event: Event,
    about: WorkerEvents[Event][0],
  ) => void;
}
