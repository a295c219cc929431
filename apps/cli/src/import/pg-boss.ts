import { fieldTable, type Imported, Notes, readFields, settle } from "@carillon/ops/internal";
import { isTrue, jsonOf, type Row, readRows, textOf } from "./rows.js";
import type { Source, SourceOptions, Task } from "./source.js";

/** Fields of both a schedule and its queue; those of the schedule win. */
const BOTH = `
  kept: retryLimit retryDelay retryDelayMax retryBackoff
  dropped: deadLetter -- see alerts, and carillon journal.
  dropped: heartbeatSeconds -- workers renew their jobs by themselves.`;
const OPTIONS = fieldTable(`${BOTH}
  kept: expireInSeconds expireInMinutes expireInHours
  kept: missed = skip once
  record: tz key
  dropped: priority = 0 -- here 0 is the most urgent, then 1, 2, …
  dropped: retentionSeconds retentionMinutes retentionHours retentionDays deleteAfterSeconds -- see retention.
  dropped: singletonKey singletonSeconds singletonNextSlot = 0 false -- an occurrence is unique; see overlap.
  dropped: group -- for a number of runs at once give its owner a quota.
  refused: startAfter -- each run would be that much later: give another expression.`);
/** Columns of `pgboss.schedule` and `pgboss.queue` of versions 9 to 12. */
const COLUMNS = fieldTable(
  `${BOTH}
  kept: name key data cron timezone expireSeconds
  kept: policy = standard short singleton stately exclusive key_strict_fifo
  refused: kind = cron -- write it as a cron expression, a calendar event or an interval.
  record: retentionSeconds retentionMinutes deletionSeconds partition partitionName tableName warningQueued notify singletonsActive
  record: deferredCount blockedCount queuedCount readyCount activeCount failedCount totalCount retainedCount
  record: createdDelta completedDelta failedDelta deltaSeconds waitBins runBins readyOldestSeconds readyHistory
  record: retainedOn deltaOn monitorClaimOn monitorOn maintainOn createdOn updatedOn lastJobId`,
  { options: OPTIONS },
);

/** One active job at a time; of those that wait, one or any number. */
const OVERLAPS: Readonly<Record<string, Task["overlap"]>> = {
  ...{ singleton: "queue-all", stately: "queue-one", exclusive: "skip" },
};

/** Rows of `pgboss.schedule`, joined with those of `pgboss.queue`. */
export const pgBoss: Source = (text, options) => settle(readRows(text).map((row) => convert(row, options)));

function convert(row: Row, options: SourceOptions): Imported {
  const notes = new Notes();
  const [name = "", key, cron = ""] = [textOf(row["name"]), textOf(row["key"]), textOf(row["cron"])];
  const own = (jsonOf(row["options"]) ?? {}) as Row;
  readFields({ ...row, options: own }, COLUMNS, notes);
  if (row["policy"] === undefined)
    notes.add(
      "QUEUE_OPTIONS",
      "The row has no options of its queue: join pgboss.queue, as docs/moving/from-pg-boss.md does.",
    );
  const policy = textOf(row["policy"]) ?? "standard";
  if (policy === "short" || policy === "key_strict_fifo")
    notes.add("DROPPED", `policy: ${policy} has no counterpart: runs overlap, and any number of them waits.`);
  if (OVERLAPS[policy])
    notes.add(
      "QUEUE_POLICY",
      `policy: ${policy} holds for all jobs of a queue there; here for those of each task.`,
    );
  const timezone = textOf(row["timezone"]) ?? options.timezone ?? "UTC";
  const task: Task = {
    id: notes.name("id", key ? `${name}-${key}` : name),
    type: notes.name("type", name),
    queue: notes.name("queue", name),
    schedule: { cron, timezone, dialect: "cron-parser" },
    payload: jsonOf(row["data"]) ?? {},
    overlap: OVERLAPS[policy] ?? "allow",
    // By default it enqueues only what is due within its minute.
    catchUp: own["missed"] === "once" ? "one" : "skip",
    ...policiesOf({ expireInSeconds: row["expireSeconds"], ...row, ...own }),
  };
  return {
    from: key ? `${name}/${key}` : name,
    task,
    theirs: { library: "cron-parser 5", cron, timezone, ...(hasSeconds(cron) && { slot: 60_000 }) },
    notes: notes.list,
  };
}

const hasSeconds = (cron: string) => /^\s*(?!\d+\s)\S+(?:\s+\S+){5}\s*$/.test(cron);

function policiesOf(given: Row): Pick<Task, "retry" | "timeLimit"> {
  const number = (name: string, otherwise: number) => Number(textOf(given[name]) ?? otherwise);
  const [limit, delay, max] = [number("retryLimit", 2), number("retryDelay", 0), number("retryDelayMax", 0)];
  const [hours, minutes] = [number("expireInHours", 0), number("expireInMinutes", 0)];
  const exponential = isTrue(given["retryBackoff"]);
  return {
    ...(limit > 0 && {
      retry: {
        attempts: Math.min(limit + 1, 100),
        backoff: exponential ? ("exponential" as const) : ("fixed" as const),
        delay: delay > 0 ? `${delay}s` : exponential ? "1s" : "1ms",
        ...(exponential && max > 0 && { max: `${Math.max(max, delay)}s` }),
      },
    }),
    timeLimit: `${hours * 3_600 + minutes * 60 || number("expireInSeconds", 900)}s`,
  };
}
