import type { Run } from "@carillon/core";
import { bullEvents } from "./bull/bull-keys.js";
import { Repository } from "./repository.js";
import { readBriefly } from "./run/recent.js";

/** An entry of a stream, its fields by name. */
export interface StreamEntry {
  readonly id: string;
  readonly fields: Readonly<Record<string, string>>;
}

/** Events of a queue, oldest first. */
export interface QueueNews {
  /** BullMQ's events: a job's id is its run's. */
  readonly jobs: StreamEntry[];
  readonly skips: StreamEntry[];
  /** Whether there was more than was read. */
  readonly more: boolean;
}

/** Positions in the streams of a queue: ids of the last entries that were read. */
export interface QueuePosition {
  jobs: string;
  skips: string;
}

/**
 * Reads what has happened since. Each stream is read from its end, so that a reader that was away does not read all it
 * missed.
 */
export class EventReads extends Repository {
  /** Two commands. @param position is moved on @param most of each stream */
  async queue(queue: string, position: QueuePosition, most: number): Promise<QueueNews> {
    const keys = this.keys.queue(queue);
    const [jobs, skips] = await Promise.all([
      this.#after(bullEvents(keys.bull), position.jobs, most),
      this.#after(keys.skips, position.skips, most),
    ]);
    position.jobs = jobs.at(-1)?.id ?? position.jobs;
    position.skips = skips.at(-1)?.id ?? position.skips;
    return { jobs, skips, more: jobs.length === most || skips.length === most };
  }

  /** Entries of the change log after this id, oldest first; of more than `most`, the newest. */
  changes(after: string, most: number): Promise<StreamEntry[]> {
    return this.#after(this.keys.changes, after, most);
  }

  /** Runs without results and errors, in the order of their ids. */
  runs(queue: string, ids: readonly string[]): Promise<(Run | undefined)[]> {
    return readBriefly(this.scripts, this.keys.queue(queue), queue, ids);
  }

  async #after(stream: string, id: string, most: number): Promise<StreamEntry[]> {
    const found = await this.link.ask((client) => client.xrevrange(stream, "+", `(${id}`, "COUNT", most));
    return found.reverse().map(([entry, flat]) => ({
      id: entry,
      fields: Object.fromEntries(
        Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], flat[2 * i + 1]]),
      ),
    }));
  }
}
