import { CarillonError, type TaskName, type TaskState } from "@carillon/core";
import type { Store } from "@carillon/store";

/** Which tasks: at least one of these. */
export interface BulkFilter {
  readonly owner?: string | undefined;
  readonly tag?: string | undefined;
  readonly queue?: string | undefined;
}

/** Tasks at a time: bounded memory, and Redis is never held for long. */
const CHUNK = 100;

/**
 * Does something with each task that matches, in chunks. Returns with how many it did something.
 *
 * @throws `INVALID_FILTER` where nothing is said: all tasks of a namespace are never meant by accident
 */
export async function eachTask(
  store: Store,
  filter: BulkFilter,
  state: TaskState | undefined,
  act: (name: TaskName) => Promise<boolean>,
): Promise<number> {
  if (filter.owner === undefined && filter.tag === undefined && filter.queue === undefined) {
    throw new CarillonError("INVALID_FILTER", "no owner, tag or queue.", {
      remedy: "Say which tasks are meant.",
    });
  }
  let done = 0;
  let cursor: string | undefined;
  do {
    const page = await store.tasks.list({ ...filter, state }, CHUNK, cursor);
    const acted = await Promise.all(
      page.tasks.map(({ definition: { queue, owner, id } }) => act({ queue, owner, id })),
    );
    done += acted.filter(Boolean).length;
    cursor = page.cursor;
  } while (cursor !== undefined);
  return done;
}
