import type { Store } from "@carillon/store";
import type { ActiveJobs } from "./active.js";
import type { WorkerClock } from "./clock.js";
import type { Lacking } from "./heartbeat.js";
import type { ItemQueues } from "./item-queues.js";
import type { Settings, WorkerEvents } from "./options.js";
import type { OutputSaver } from "./output-saver.js";

/** Settings and dependencies shared by a worker's attempts. */
export interface Parts extends Settings {
  readonly store: Store;
  readonly clock: WorkerClock;
  readonly active: ActiveJobs;
  readonly lacking: Lacking;
  readonly outputs: OutputSaver;
  readonly items: ItemQueues;
  /** The worker takes no more jobs. */
  readonly stopping: () => boolean;
  /** Logs it and calls the listeners. What a listener throws is logged too. */
  readonly emit: <Event extends keyof Omit<WorkerEvents, "error">>(
    event: Event,
    about: WorkerEvents[Event][0],
  ) => void;
}
