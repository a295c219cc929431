import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { bullVersion, Heartbeat, type Logger, type Store, VERSION, type WorkerInfo } from "@carillon/store";
import type { ActiveJobs } from "./active.js";

/** What a worker's beats report, and what they need for it. */
interface About extends Pick<WorkerInfo, "queues" | "types" | "every"> {
  readonly active: ActiveJobs;
  /** Whether the worker takes no more jobs. */
  readonly stopping: () => boolean;
}

/** The name of a worker of this process in the list of workers. */
export function workerId(): string {
  return `${hostname()}-${process.pid}-${randomBytes(2).toString("hex")}`;
}

/** Announces regularly that a worker is alive, with its runs in progress. */
export function workerHeartbeat(store: Store, logger: Logger, id: string, about: About): Heartbeat {
  const { registry } = store;
  const { active, stopping, queues, types, every } = about;
  const versions = { carillon: VERSION, bullmq: bullVersion(), node: process.versions.node };
  const own = { id, host: hostname(), pid: process.pid, queues, types, versions, every };
  let started: number | undefined;

  return new Heartbeat(store, logger, {
    id,
    every,
    list: () => registry.workers(),
    remove: (worker) => registry.removeWorker(worker),
    beat: async () => {
      const now = await store.serverTime();
      started ??= now;
      const { count, runs } = active.underWay();
      await registry.beatWorker({ ...own, started, beat: now, stopping: stopping(), running: count, runs });
      return now;
    },
  });
}
