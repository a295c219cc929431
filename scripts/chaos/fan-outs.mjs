// Checks the items of fan-outs: what workers have done against the records of the runs.

/** A run that succeeded has done each of its items, and no run has done another owner's. */
export function itemsOfTheirOwn(found, { items }, { queue, runs }, specs) {
  const done = new Map();
  for (const item of items)
    if (item.queue === queue) done.set(item.run, [...(done.get(item.run) ?? []), item]);
  for (const { id, task, outcome } of runs) {
    const spec = specs.get(`${queue} ${task}`);
    if (spec?.type !== "fan") continue;
    const own = done.get(id) ?? [];
    const [owner] = task.split("/");
    for (const item of own)
      if (item.owner !== owner)
        found.items.push(`${queue} ${id} of ${owner} did item ${item.n} of ${item.owner}`);
    if (outcome !== "succeeded") continue;
    const numbers = new Set(own.filter((item) => item.owner === owner).map(({ n }) => n));
    found.itemsDone += numbers.size;
    for (let n = 0; n < spec.payload.items; n++)
      if (!numbers.has(n)) found.items.push(`${queue} ${id} of ${owner} succeeded without item ${n}`);
  }
}
