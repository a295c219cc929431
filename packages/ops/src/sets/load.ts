import type { PlannedPut, Store, Timing } from "@carillon/store";
import { emptyLoad } from "../occurrences/load.js";
import type { Plan } from "./set.js";

const DAY = 86_400_000;

/** Load of the namespace before and after a plan. Undefined: it takes too many steps. */
export async function loads(
  store: Store,
  now: number,
  gone: ReadonlySet<string>,
  coming: readonly [queue: string, Timing][],
): Promise<Plan["load"]> {
  const freezes = await store.freezes.list();
  const empty = () => emptyLoad(store, freezes, { from: now + 1, to: now + DAY + 1, step: 60_000 });
  const [before, after] = [empty(), empty()];
  for (const queue of await store.registry.queues()) {
    for await (const page of store.tasks.timings({ queue })) {
      before.add(queue, page);
      after.add(
        queue,
        page.filter(({ owner, id }) => !gone.has(`${queue}/${owner}/${id}`)),
      );
    }
  }
  for (const [queue, timing] of coming) after.add(queue, [timing]);
  const side = async (load: typeof before) => {
    const { total, busiest } = await load.count(() => {});
    const [most] = busiest;
    return { perDay: total, ...(most && { busiest: { at: most.at, count: most.count } }) };
  };
  try {
    return { before: await side(before), after: await side(after) };
  } catch {
    return undefined;
  }
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
