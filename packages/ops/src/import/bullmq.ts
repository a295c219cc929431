import { formatDuration, type TaskInput } from "@carillon/core";
import { compileSchedule } from "@carillon/core/internal";
import type { BullScheduler } from "@carillon/store/internal";
import type { SetTask } from "../sets/set.js";
import { fieldTable, readFields } from "./fields.js";
import { type Imported, type ImportOptions, intervalOf, Notes, settle, type TheirTimes } from "./imported.js";

type Options = BullScheduler["definition"]["opts"];

/** Fields of a recurring job of BullMQ 3 to 6: of its hash, of the options of its job, and of its recurrence. */
const FIELDS = fieldTable(`
  kept: name data opts pattern every tz startDate endDate limit
  record: ic offset nrjid`);
const OPTIONS = fieldTable(`
  kept: priority attempts backoff removeOnComplete removeOnFail
  dropped: lifo keepLogs sizeLimit stackTraceLimit deduplication debounce parent = false -- it has no counterpart.
  dropped: failParentOnFailure continueParentOnFailure ignoreDependencyOnFailure = false -- it has no counterpart.
  dropped: removeDependencyOnFailure telemetry = false -- it has no counterpart.
  record: attempt de deid jobId delay timestamp prevMillis repeatJobKey`);
const REPEAT = fieldTable(`
  kept: pattern cron every tz utc limit startDate endDate
  record: offset count key jobId prevMillis immediately currentDate iterator`);

/** BullMQ's recurring jobs as tasks, in the order given. */
export function importBullmq(found: readonly BullScheduler[], options: ImportOptions): Imported[] {
  return settle(found.map((one) => convertBullmq(one, options)));
}

/** One of them: pure, and the same each time. */
export function convertBullmq(one: BullScheduler, options: ImportOptions): Imported {
  const { definition, queue, id, alive } = one;
  const notes = new Notes();
  const from = `${queue}/${id}`;
  readFields(one.raw, FIELDS, notes);
  readFields(definition.opts, OPTIONS, notes);
  readFields(definition.repeat, REPEAT, notes);
  if (definition.left !== undefined && definition.left < 1) {
    notes.add("FINISHED", "Its limit is used up: it never fires again.");
    return { from, notes: notes.list };
  }
  if (!alive)
    notes.add("DEAD", "It has no job to come: BullMQ does not fire it any more. Here it fires again.");
  if (one.paused) notes.add("QUEUE_PAUSED", "Its queue is paused, so it is paused here.");
  if (one.waiting)
    notes.add(
      "WAITING",
      `${one.waiting} jobs wait in the queue ${queue}: leave its workers running until they are done.`,
    );
  const theirs = timesOf(one, notes, options);
  if (!theirs) return { from, notes: notes.list };
  const random = theirs.library === "cron-parser 5" && /\bH\b/.test(theirs.cron);
  if (random)
    notes.add("RANDOM", "BullMQ chooses H at random each time; here it is one value, of the task's own.");
  // The key of a repeatable is a digest, or all that it consists of, unless its caller gave one.
  const own = one.kind === "scheduler" || definition.repeat?.["key"] === id;
  const generated = own ? /^[0-9a-f]{32}$/.test(id) : /^([0-9a-f]{32,}$|.*:)/s.test(id);
  const task: SetTask = {
    id: notes.name("id", generated ? definition.name : id),
    type: notes.name("type", definition.name),
    queue: notes.name("queue", queue),
    schedule: scheduleOf(one, theirs, options),
    payload: definition.data,
    overlap: "allow",
    ...(one.paused && { state: "paused" as const }),
    ...policiesOf(definition.opts, notes),
  };
  return { from, task, theirs: random ? undefined : theirs, notes: notes.list };
}

function timesOf(
  { definition, version, next }: BullScheduler,
  notes: Notes,
  options: ImportOptions,
): TheirTimes | undefined {
  const { pattern, every, endDate: end, startDate: start } = definition;
  if (pattern !== undefined) {
    // Since version 6, BullMQ uses cron-parser 5.
    const library = Number.parseInt(version ?? "5", 10) < 6 ? "cron-parser 4" : "cron-parser 5";
    return { library, cron: pattern, timezone: notes.zone(definition.tz, options), start, end };
  }
  if (every !== undefined) return { library: "interval", every, next, end, overruns: true };
  notes.refuse("It has neither a pattern nor an interval.");
  return undefined;
}

function scheduleOf(
  { definition: { startDate, endDate, left }, next }: BullScheduler,
  theirs: TheirTimes,
  { now }: ImportOptions,
): TaskInput["schedule"] {
  const iso = (time: number) => new Date(time).toISOString();
  const limits = {
    // BullMQ fires after `startDate`, not at it.
    ...(startDate !== undefined && startDate > now && { start: iso(next) }),
    ...(endDate !== undefined && { end: iso(endDate) }),
    ...(left !== undefined && { maxRuns: left }),
  };
  if (theirs.library === "interval") {
    // Its phase is that of the job to come, whatever its `offset` says.
    return { ...intervalOf(theirs.every, next), ...limits };
  }
  const { cron, timezone } = theirs;
  const exact = { cron, timezone, dialect: "cron-parser" } as const;
  // Expressions that the dialect refuses, as cron-parser 4 reads some of them, may be valid here.
  try {
    compileSchedule(exact);
    return { ...exact, ...limits };
  } catch {
    return { cron, timezone, ...limits };
  }
}

function policiesOf(given: Options, notes: Notes): Partial<TaskInput> {
  const { attempts = 1, backoff, priority, removeOnComplete, removeOnFail } = given;
  const retention = {
    ...limitOf("successes", removeOnComplete),
    ...limitOf("failures", removeOnFail),
  };
  return {
    ...(priority && { priority }),
    ...(attempts > 1 && { retry: retryOf(attempts, backoff, notes) }),
    ...(Object.keys(retention).length > 0 && { retention }),
  };
}

function retryOf(attempts: number, backoff: Options["backoff"], notes: Notes): TaskInput["retry"] {
  if (attempts > 100) notes.add("DROPPED", `${attempts} attempts are 100 here.`);
  const most = Math.min(attempts, 100);
  const {
    type,
    delay = 0,
    ...rest
  } = typeof backoff === "object" ? backoff : { type: "fixed", delay: backoff };
  const { jitter } = rest as { jitter?: number };
  if (jitter) notes.add("DROPPED", `The backoff's jitter of ${jitter} has no counterpart.`);
  const known = type === "fixed" || type === "exponential";
  if (!known)
    notes.add(
      "DROPPED",
      `The backoff ${JSON.stringify(type)} is the application's own: a fixed wait of 1s takes its place.`,
    );
  const first = known ? delay : 1_000;
  // Without a wait, the shortest there is.
  const wait = formatDuration(Math.max(1, first));
  if (type !== "exponential") return { attempts: most, backoff: "fixed", delay: wait };
  const last = Math.min(first * 2 ** Math.max(0, most - 2), 30 * 86_400_000);
  return {
    attempts: most,
    backoff: "exponential",
    delay: wait,
    ...(last > 3_600_000 && { max: formatDuration(last) }),
  };
}

/** BullMQ keeps all that its options do not remove; Carillon's defaults take the place of "all". */
function limitOf(kind: "successes" | "failures", rule: Options["removeOnComplete"]): TaskInput["retention"] {
  if (rule === undefined || rule === false) return {};
  if (typeof rule === "boolean") return { [kind]: 0 };
  const { count, age } =
    typeof rule === "number" ? { count: rule, age: undefined } : (rule as { count?: number; age?: number });
  return {
    ...(count !== undefined && { [kind]: Math.min(count, 10_000) }),
    ...(age !== undefined && { [`${kind}For`]: formatDuration(Math.max(1, age) * 1_000) }),
  };
}
