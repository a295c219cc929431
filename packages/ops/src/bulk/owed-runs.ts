import { CarillonError, type TaskName } from "@carillon/core";
import type { Scope } from "@carillon/sdk/internal";
import { type Backfill, newToken, type StoredTask } from "@carillon/store";
import { z } from "zod";
import { paced } from "../backfills/batch.js";
import { backfillsOf } from "../backfills/doings.js";
import { TimeSlice } from "../occurrences/time-slice.js";
import type { Call } from "../operation.js";
import { count } from "../shapes.js";
import { type BulkRefusal, keyOf, nameOf, selected, Tally } from "./bulk.js";
import type { Filter } from "./filter.js";
import { MOST_OWED, owedBy } from "./owed.js";

/** Tasks whose paces are held in memory. */
const MOST_TASKS = 100_000;
const DAY = 86_400_000;

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
  /** The first owed time. */
  readonly owed: number;
  readonly from: number;
  readonly to: number;
  readonly single: boolean;
  readonly total: number;
  readonly every: number;
  readonly after: number;
}

/** Runs what tasks owe as backfills, at a pace, and lets their schedules go on after it. */
export class OwedRuns {
  started = 0;

  private constructor(
    private readonly scope: Scope,
    private readonly paces: ReadonlyMap<string, Pace>,
    private readonly how: How,
  ) {}

  static async of(scope: Scope, { checked, isMeant, missed, perMinute }: Asked, how: How): Promise<OwedRuns> {
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
        found.push({ key: keyOf(nameOf(task)), owed: owed.from, ...range, to, single });
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
    return new OwedRuns(scope, new Map(paces), how);
  }

  /** @returns whether it was paused @throws `CONFLICT` if it owes from another time than when it was counted */
  async resume(task: StoredTask, name: TaskName, named: string): Promise<boolean> {
    const { tasks } = this.scope.store;
    const pace = this.paces.get(keyOf(name));
    // Times that became due since the count are left to catch-up policies.
    if (!pace || pace.single)
      return (await tasks.resume(name, "catch-up", named, { after: pace?.after })) === "OK";
    const { owed, from, to, every, after, total } = pace;
    if (total > MOST_OWED)
      throw new CarillonError("INVALID_OPTION", `it owes more than ${MOST_OWED} occurrences.`, {
        remedy: "Resume it with missed: skip, and backfill the times that matter.",
      });
    const overlap = task.definition.overlap === "allow" ? undefined : "queue-all";
    const { batch, by } = this.how;
    const range = { from, to, at: from - 1, total, every };
    const backfill = { id: newToken(), ...range, batch, overlap, by: by || this.scope.actor } as const;
    const resumed = (await tasks.resume(name, { owed, backfill, after }, named)) === "OK";
    if (resumed) this.started += 1;
    return resumed;
  }
}

/** Tasks that another call has resumed, and the occurrences that its backfills run. */
export const replayed = z
  .object({
    count: count.describe("Number of tasks."),
    total: count.describe("Occurrences that they owed."),
    batches: z.array(z.string()).readonly(),
  })
  .meta({ id: "Replayed" });

/**
 * The tasks that match and that were resumed with `latest` or `all` in the last day. Undefined: none.
 * @param own batch of this call, which is left out
 */
export async function replayedBy(
  { scope, store }: Call,
  filter: Filter,
  isMeant: (task: Pick<StoredTask, "paused">) => boolean,
  own: string | undefined,
): Promise<z.output<typeof replayed> | undefined> {
  const [queues, now] = await Promise.all([scope.queuesOf(filter.queue), store.freezes.time()]);
  const all = await backfillsOf(store, queues);
  const isOther = ({ state, created, pause, batch }: Backfill) =>
    (state === "running" || (state === "done" && created > now - DAY)) &&
    pause !== undefined &&
    batch !== own &&
    isMeant({ paused: pause });
  if (![...all.values()].some((its) => its.some(isOther))) return undefined;
  const found: (readonly Backfill[])[] = [];
  for await (const page of selected(scope, { ...filter, state: undefined }, undefined, new Tally(0)))
    found.push(...page.map((task) => (all.get(keyOf(nameOf(task))) ?? []).filter(isOther)));
  const its = found.flat();
  if (its.length === 0) return undefined;
  return {
    count: found.filter((some) => some.length > 0).length,
    total: its.reduce((sum, { total }) => sum + total, 0),
    batches: [...new Set(its.flatMap(({ batch }) => batch ?? []))],
  };
}
