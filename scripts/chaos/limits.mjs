// Checks the limits by owner against the times in the records.

/** Text about a run, for reports. */
export function told({ id, node, generation, trigger, enqueued, started, finished, finishedOn, outcome }) {
  const times = { enqueued, started, finished, finishedOn };
  return `${id} ${JSON.stringify({ node, generation, trigger, ...times, outcome })}`;
}

/**
 * When a run was enqueued, its owner had fewer open runs than its limit, by the times in the records. A run whose
 * worker stalled is open until its end is recorded. Reopened runs are allowed in addition to the limit. Runs that hold
 * a place are open.
 */
export function withinLimits(found, { limits, jumps }, { queue, placed, runs: records }, runs) {
  for (const [owner, limit] of Object.entries(limits[queue] ?? {})) {
    const own = runs.filter(({ task, reopened }) => task.startsWith(`${owner}/`) && !reopened);
    const sorted = own.sort((a, b) => a.enqueued - b.enqueued || a.generation - b.generation);
    for (const [i, run] of sorted.entries()) {
      const open = sorted.slice(0, i).filter(({ finished }) => !(finished <= run.enqueued));
      const clear = open.filter(({ finished }) => !isBlurred(jumps, finished, run.enqueued));
      if (clear.length === limit - 1) found.runsAtLimit += 1;
      if (clear.length >= limit)
        found.limits.push(`${queue} ${owner}: ${told(run)} over the limit of ${limit}: ${clear.map(told)}`);
      else if (open.length >= limit) found.undecided.push(`limits: ${queue} ${owner}: ${told(run)}`);
    }
  }
  const over = new Set(records.filter(({ state }) => state === "final").map(({ id }) => id));
  const known = new Set(records.map(({ id }) => id));
  for (const id of placed)
    if (over.has(id) || !known.has(id)) found.limits.push(`${queue}: ${id} is over, and holds a place`);
}

/** Whether the Redis clock was put back between the two, so that their order is unknown. */
export function isBlurred(jumps, ended, began) {
  const over = ended - began;
  return jumps.some(({ at, back = 0 }) => over <= back && Math.abs(ended - at) <= back + 5_000);
}
