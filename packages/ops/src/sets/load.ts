import { usesSeed } from "@carillon/core/internal";
import type { PlannedPut, Store, Timing } from "@carillon/store";
import { keyOf } from "../bulk/bulk.js";
import { emptyLoad } from "../occurrences/load.js";
import type { Plan } from "./set.js";

const DAY = 86_400_000;

interface Loads {
  readonly load: NonNullable<Plan["load"]>;
  /** Starts after the plan in its busiest minute, of tasks that nothing spreads: neither jitter nor H. */
  crowd(): Promise<{ at: number; count: number } | undefined>;
}

/** Load of the namespace before and after a plan. Undefined: it takes too many steps. @param onStep called from time to time */
export async function loads(
  store: Store,
  now: number,
  gone: ReadonlySet<string>,
  coming: readonly [queue: string, Timing][],
  onStep: () => void,
): Promise<Loads | undefined> {
  const freezes = await store.freezes.list();
  const empty = () => emptyLoad(store, freezes, { from: now + 1, to: now + DAY + 1, step: 60_000 });
  const [before, after, plain] = [empty(), empty(), empty()];
  const addAfter = (queue: string, page: readonly Timing[]) => {
    after.add(queue, page);
    plain.add(
      queue,
      page.filter(({ schedule }) => !isSpread(schedule)),
    );
  };
  for (const queue of await store.registry.queues()) {
    for await (const page of store.tasks.timings({ queue })) {
      before.add(queue, page);
      addAfter(
        queue,
        page.filter(({ owner, id }) => !gone.has(keyOf({ queue, owner, id }))),
      );
      onStep();
    }
  }
  for (const [queue, timing] of coming) addAfter(queue, [timing]);
  const side = async (load: typeof before) => {
    const { total, busiest } = await load.count(onStep);
    const [most] = busiest;
    return { perDay: total, ...(most && { busiest: { at: most.at, count: most.count } }) };
  };
  try {
    const load = { before: await side(before), after: await side(after) };
    return { load, crowd: async () => (await side(plain)).busiest };
  } catch {
    return undefined;
  }
}

/** Whether jitter or H keeps it from starting with others. */
export function isSpread(schedule: Timing["schedule"]): boolean {
  return schedule.jitter !== undefined || usesSeed(schedule);
}

/** A planned task as the load counts it; none if it is paused. */
export function timingOf(
  { name, state, slot, stored }: PlannedPut,
  definition: { schedule: Timing["schedule"]; tags: readonly string[] },
): Timing[] {
  if (state !== "scheduled") return [];
  const { schedule, tags } = definition;
  return [
    {
      owner: name.owner,
      id: name.id,
      tags,
      schedule,
      scheduleJson: JSON.stringify(schedule),
      nominal: slot?.nominal,
      fired: stored?.fired ?? 0,
    },
  ];
}
