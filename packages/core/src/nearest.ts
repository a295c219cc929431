/** The remedy for an unknown name, everywhere the same: the nearest known name, or else all of them. */
export function nearestRemedy(unknown: string, known: readonly string[]): string {
  if (known.length === 0) return "Remove it.";
  const counterpart = COUNTERPARTS.find(([name, field]) => name === unknown && known.includes(field));
  if (counterpart) return `Give ${counterpart[2]}.`;
  const near = nearest(unknown, known);
  return near === undefined ? `Known: ${known.join(", ")}.` : `Did you mean ${near}?`;
}

/** The known name that a misspelt one most likely stands for. Undefined if none is near. */
export function nearest(unknown: string, known: readonly string[]): string | undefined {
  const name = unknown.slice(0, 100).toLowerCase();
  const alias = Object.entries(ALIASES).find(
    ([field, words]) => known.includes(field) && words.toLowerCase().split(" ").includes(name),
  );
  if (alias) return alias[0];
  const same = known.find((key) => key.toLowerCase() === name);
  if (same !== undefined) return same;
  const begins = known.find((key) => {
    const lower = key.toLowerCase();
    return Math.min(name.length, lower.length) > 2 && (lower.startsWith(name) || name.startsWith(lower));
  });
  if (begins !== undefined) return begins;
  const most = name.length < 6 ? 1 : 2;
  return known
    .map((key) => ({ key, edits: edits(name, key.toLowerCase()) }))
    .filter((one) => one.edits <= most)
    .sort((a, b) => a.edits - b.edits)[0]?.key;
}

/** Options of BullMQ's `queue.add` that are a part of a field: name, field, remedy. */
const COUNTERPARTS = [
  ["attempts", "retry", "retry: { attempts }"],
  ["backoff", "retry", 'retry: { backoff: "exponential", delay: "1s" }'],
  ["delay", "schedule", "schedule: { at }, or call client.enqueue(type, payload, { delay })"],
] as const;

/** Names that other schedulers use for fields of a task and of its schedule: docs/moving/words.md. */
const ALIASES = {
  timezone: "tz timeZone repeatTimezone ScheduleExpressionTimezone",
  cron: "pattern expression syntax value cronExpression",
  every: "interval schedule_interval repeatInterval",
  at: "timestamp",
  schedule: "syntax value schedule_interval repeat ScheduleExpression",
  start: "initial_start startDate",
  end: "endDate",
  jitter: "maxRandomDelay FlexibleTimeWindow RANDOM_DELAY",
  maxRuns: "limit maxExecutions",
  payload: "data config input",
  id: "jobId schedulerId",
  retry: "retries retry_period max_retries retryLimit backoffLimit RetryPolicy",
  timeLimit: "timeout max_runtime expireInSeconds activeDeadlineSeconds timebox time_box",
  overlap: "noOverlap waitForCompletion concurrencyPolicy policy",
  catchUp: "misfire misfireInstruction missed",
  alerts: "deadLetter DeadLetterConfig",
  url: "webhook",
  settled: "completed failed",
  started: "active",
  decided: "enqueued",
};

/**
 * Number of edits that turn one name into the other: a letter added, removed, replaced, or swapped with the next one.
 */
function edits(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min(replaced, row[j]! + 1, next[j - 1]! + 1);
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, before[j - 2]! + 1);
      next.push(least);
    }
    [before, row] = [row, next];
  }
  return row[b.length]!;
}
