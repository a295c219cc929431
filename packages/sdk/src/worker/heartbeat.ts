import { hostname } from "node:os";
import {
  bullVersion,
  Heartbeat,
  type LackedType,
  type Logger,
  type Store,
  VERSION,
  type WorkerInfo,
} from "@carillon/store";
import type { AnyTaskType } from "../task-type.js";
import type { ActiveJobs } from "./active.js";
import { publishedSchemas } from "./type-schemas.js";

/** Parts of a worker that its beats report. */
interface About extends Pick<WorkerInfo, "queues" | "every"> {
  readonly types: readonly AnyTaskType[];
  readonly active: ActiveJobs;
  readonly lacking: Lacking;
  /** Whether the worker takes no more jobs. */
  readonly stopping: () => boolean;
}

/** Time in ms for which a type is reported after the last run that failed for it; and the most types. */
const [LACKED_FOR, MOST_LACKED] = [600_000, 20];

/** Types of runs that a worker failed because it does not have them. */
export class Lacking {
  /** By queue and type: when that was first and last, on the monotonic clock. */
  readonly #seen = new Map<string, { queue: string; type: string; first: number; last: number }>();

  note(queue: string, type: string): void {
    const last = performance.now();
    const { first } = this.#seen.get(`${queue} ${type}`) ?? { first: last };
    this.#seen.set(`${queue} ${type}`, { queue, type, first, last });
  }

  /** @param now UTC ms of Redis time */
  list(now: number): LackedType[] {
    const mono = performance.now();
    for (const [name, { last }] of this.#seen) if (mono - last > LACKED_FOR) this.#seen.delete(name);
    return [...this.#seen.values()]
      .slice(0, MOST_LACKED)
      .map(({ queue, type, first }) => ({ queue, type, since: Math.round(now - mono + first) }));
  }
}

/** Announces regularly that a worker is alive, with its runs in progress. */
export function workerHeartbeat(store: Store, logger: Logger, id: string, about: About): Heartbeat {
  const { registry } = store;
  const { active, lacking, stopping, queues, types, every } = about;
  const names = types.map(({ type }) => type);
  const schemas = publishedSchemas(types);
  const published = schemas.digest === "" ? {} : { schemas: schemas.digest };
  const own = { id, host: hostname(), pid: process.pid, queues, types: names, every, ...published };
  let started: number | undefined;
  let listed = false;

  return new Heartbeat(store, logger, {
    id,
    every,
    list: () => registry.workers(),
    remove: (worker) => registry.removeWorker(worker),
    beat: async () => {
      const now = await store.serverTime();
      started ??= now;
      const versions = { carillon: VERSION, bullmq: await bullVersion(), node: process.versions.node };
      const { count, runs } = active.underWay();
      const lacked = lacking.list(now);
      const info = {
        ...own,
        versions,
        started,
        beat: now,
        stopping: stopping(),
        running: count,
        runs,
        ...(lacked.length > 0 && { lacking: lacked }),
      };
      await registry.beatWorker(info, schemas.text, !listed);
      listed = true;
      return now;
    },
  });
}
