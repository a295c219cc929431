import { CarillonError, type TaskName } from "@carillon/core";
import type { Scope } from "@carillon/sdk/internal";
import type { StoredTask } from "@carillon/store";
import { idFrom, paced } from "../backfills/start-many.js";
import { TimeSlice } from "../occurrences/time-slice.js";
import { type BulkRefusal, nameOf, selected, Tally } from "./bulk.js";
import type { Filter } from "./filter.js";
import { MOST_OWED, owedBy } from "./owed.js";

/** Tasks whose paces are held in memory. */
const MOST_TASKS = 100_000;

interface Asked {
  readonly checked: Filter;
  readonly isMeant: (task: StoredTask) => boolean;
  readonly missed: "latest" | "all";
  readonly perMinute: number | undefined;
}

/** For the backfills of one call. */
interface How {
  readonly batch: string;
  readonly by: string;
}

interface Pace {
  readonly from: number;
  readonly to: number;
  readonly single: boolean;
  readonly total: number;
  readonly every: number;
  readonly after: number;
}

/** Runs what tasks owe as backfills, at a pace, and lets their schedules go on after it. */
export class Replay {
  started = 0;
  readonly #scope: Scope;
  readonly #paces: ReadonlyMap<string, Pace>;
  readonly #how: How;

  private constructor(scope: Scope, paces: ReadonlyMap<string, Pace>, how: How) {
    this.#scope = scope;
    this.#paces = paces;
    this.#how = how;
  }

  static async of(scope: Scope, { checked, isMeant, missed, perMinute }: Asked, how: How): Promise<Replay> {
    const { store } = scope;
    const [now] = await Promise.all([store.freezes.time(), store.calendars.refresh()]);
    const slice = new TimeSlice(Number.POSITIVE_INFINITY);
    const found = [];
    for await (const page of selected(scope, checked, "paused", new Tally<BulkRefusal>(0))) {
      for (const task of page.filter(isMeant)) {
        const owed = await owedBy(task, store.calendars.schedules.get(task.definition), { now, slice });
        if (!owed) continue;
        const { to, single } = owed;
        const range =
          missed === "all" ? { from: owed.from, total: owed.count.count } : { from: to, total: 1 };
        found.push({ key: keyOf(nameOf(task)), ...range, to, single });
        if (found.length > MOST_TASKS)
          throw new CarillonError("INVALID_OPTION", `more than ${MOST_TASKS} tasks.`, {
            remedy: "Select fewer.",
          });
      }
    }
    const pace =
      perMinute === undefined
        ? found.map((times) => ({ times, every: 0, after: 0 }))
        : paced(found, perMinute);
    const paces = pace.map(({ times, ...rest }) => [times.key, { ...times, ...rest }] as const);
    return new Replay(scope, new Map(paces), how);
  }

  /** @returns whether it was paused */
  async resume(task: StoredTask, name: TaskName, named: string): Promise<boolean> {
    const { tasks, backfills } = this.#scope.store;
    const pace = this.#paces.get(keyOf(name));
    // Times that became due since the count are left to catch-up policies.
    if (!pace) return (await tasks.resume(name, "catch-up", named)) === "OK";
    if (pace.single) return (await tasks.resume(name, "catch-up", named, { after: pace.after })) === "OK";
    if (pace.total > MOST_OWED)
      throw new CarillonError("INVALID_OPTION", `it owes more than ${MOST_OWED} occurrences.`, {
        remedy: "Resume it with missed: skip, and backfill the times that matter.",
      });
    const { from, to, every, after, total } = pace;
    const id = idOf(task, name);
    const { batch, by } = this.#how;
    // A repeated call finds the backfill of one that died before it resumed the task.
    await backfills.put(
      {
        id,
        task: name,
        taskCreated: task.created,
        from,
        to,
        at: from - 1,
        total,
        every,
        batch,
        overlap: task.definition.overlap === "allow" ? undefined : "queue-all",
        by: by || this.#scope.actor,
      },
      after,
    );
    const stored = await backfills.get(name.queue, id);
    const resumed = await tasks.resume(name, stored?.to ?? to, named);
    if (resumed === "OK") this.started += 1;
    // Someone else resumed it meanwhile, and decided about the owed times.
    else await backfills.end(name.queue, id, "cancelled");
    return resumed === "OK";
  }
}

function keyOf({ queue, owner, id }: TaskName): string {
  return `${queue}/${owner}/${id}`;
}

/** Id of a backfill: the same for each call during one pause. */
function idOf({ paused, nominal }: StoredTask, name: TaskName): string {
  return idFrom(`${keyOf(name)} ${paused?.at} ${nominal}`);
}
