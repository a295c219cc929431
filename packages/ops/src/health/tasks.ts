import { ALERTS_QUEUE, type CarillonError } from "@carillon/core";
import { grouped, localName, parseLocalName, type TaskSchedule } from "@carillon/core/internal";
import { running, type Scope } from "@carillon/sdk/internal";
import { failsForAll, redisError, type StoredTask } from "@carillon/store";
import { keyOf, nameOf } from "../bulk/bulk.js";
import { heldBy } from "../occurrences/due-tasks.js";
import { type Finding, type FindingFacts, NAMED } from "./finding.js";

/** Tasks that are read in all. */
export const SAMPLE = 2_000;
/** Tasks whose last run is compared with their interval. */
const TIMED = 200;
/** Number of tasks due at one instant that count as a herd, and the rate to spread them to, per second. */
const [HERD, SPREAD] = [100, 20];
/** A first occurrence may be this late, in ms. */
const PATIENCE = 60_000;

export interface Sampled {
  readonly queue: string;
  readonly tasks: readonly StoredTask[];
  /** Names in an index without a definition. */
  readonly orphans: readonly string[];
  /** Tasks whose data cannot be read, and why. */
  readonly unreadable: readonly { readonly local: string; readonly error: CarillonError }[];
  readonly total: number;
}

export async function sample({ store }: Scope, queue: string, size: number): Promise<Sampled> {
  const [{ value: names = [] }, due, total] = await Promise.all([
    store.tasks.names(queue, size).next(),
    store.tasks.due(queue, Number.POSITIVE_INFINITY, size),
    store.tasks.count(queue),
  ]);
  const locals = [...new Set([...(names as string[]), ...due.map(({ local }) => local)])];
  const read = await Promise.all(
    locals.map(async (local) => {
      try {
        return { local, task: await store.tasks.get({ queue, ...parseLocalName(local) }) };
      } catch (error) {
        if (failsForAll(error)) throw error;
        return { local, error: redisError(error) };
      }
    }),
  );
  return {
    queue,
    tasks: read.flatMap(({ task }) => task ?? []),
    orphans: read.flatMap(({ local, task, error }) => (task || error ? [] : [local])),
    unreadable: read.flatMap(({ local, error }) => (error ? [{ local, error }] : [])),
    total,
  };
}

type Schedules = ReadonlyMap<StoredTask, TaskSchedule>;

/** The schedules, and findings about those that cannot be computed: a time zone or a calendar is gone. */
export function schedulesOf({ store }: Scope, tasks: readonly StoredTask[]): [Schedules, Finding[]] {
  const schedules = new Map<StoredTask, TaskSchedule>();
  const failures = new Map<StoredTask, string>();
  for (const task of tasks) {
    try {
      schedules.set(task, store.calendars.schedules.get(task.definition, task.scheduleJson));
    } catch (error) {
      failures.set(task, (error as Error).message);
    }
  }
  const found = named([...failures.keys()], "error", (task) => ({
    code: "NOT_PLANNED",
    error: failures.get(task) ?? "",
  }));
  return [schedules, found];
}

/** Tasks that run in several queues under one name, once each. */
export function sameIds(tasks: readonly StoredTask[]): Finding[] {
  const own = tasks.filter(({ definition }) => definition.queue !== ALERTS_QUEUE);
  const same = [...grouped(own, (task) => localName(nameOf(task))).values()].filter(
    ({ length }) => length > 1,
  );
  const queues = new Map(same.map(([first, ...rest]) => [first, rest.map((task) => nameOf(task).queue)]));
  return named([...queues.keys()] as StoredTask[], "warning", (task) => ({
    code: "SAME_ID_ELSEWHERE",
    queues: queues.get(task) ?? [],
  }));
}

/** An index has the tasks that never ran, so that they are found among any number of others. */
export async function neverRan(scope: Scope, now: number): Promise<Finding[]> {
  const { tasks } = await scope.store.tasks.listDue({ neverRan: true }, SAMPLE / 2);
  const [schedules] = schedulesOf(scope, tasks);
  const found = tasks.filter((task) => {
    const schedule = schedules.get(task);
    if (!schedule || task.fired > 0 || task.hasOpenRuns || schedule.delay !== undefined) return false;
    const passed = schedule.latestDue(now - PATIENCE);
    return passed !== undefined && passed > task.created;
  });
  const limits = new Map(
    await Promise.all(
      found.slice(0, NAMED).map(async (task) => [task, await heldBy(scope.store, nameOf(task))] as const),
    ),
  );
  return named(found, "warning", (task) => ({
    code: "NEVER_RAN",
    agoMs: now - task.created,
    limit: limits.get(task),
  }));
}

export async function tooLong(
  { store, owner }: Scope,
  tasks: readonly StoredTask[],
  schedules: Schedules,
  now: number,
): Promise<Finding[]> {
  const queues = await store.registry.queues();
  const under = new Map(
    (await running({ store, queues }, { owner }, TIMED)).map((run) => [keyOf(run.task), run] as const),
  );
  const isUnderWay = (task: StoredTask) => under.has(keyOf(nameOf(task)));
  const ran = tasks
    .filter((task) => (task.fired > 0 || isUnderWay(task)) && schedules.has(task))
    .sort((a, b) => Number(isUnderWay(b)) - Number(isUnderWay(a)))
    .slice(0, TIMED);
  const timed = await Promise.all(
    ran.map(async (task) => {
      const run = under.get(keyOf(nameOf(task)));
      const last = await store.runs.stats(nameOf(task)).catch(() => undefined);
      const lastMs = Number(last?.["lastMs"]) || 0;
      const present = run !== undefined && run.runningMs > lastMs;
      const everyMs = intervalOf(schedules.get(task) as TaskSchedule, now);
      return { task, everyMs, tookMs: present ? run.runningMs : lastMs, run: present ? run.id : undefined };
    }),
  );
  const slow = new Map(timed.filter(({ tookMs, everyMs }) => tookMs > everyMs).map((one) => [one.task, one]));
  return named([...slow.keys()], "warning", (one) => {
    const { task: _, ...facts } = slow.get(one) as (typeof timed)[number];
    return { code: "RUN_TOO_LONG", ...facts };
  });
}

/** Between the next two occurrences, in ms. */
function intervalOf(schedule: TaskSchedule, now: number): number {
  if (schedule.delay !== undefined) return Number.POSITIVE_INFINITY;
  const first = schedule.next(now);
  const second = first === undefined ? undefined : schedule.next(first);
  return first === undefined || second === undefined ? Number.POSITIVE_INFINITY : second - first;
}

/** Many tasks that are due at one instant. */
export function herds(queue: string, tasks: readonly StoredTask[]): Finding[] {
  const counts = new Map<number, number>();
  for (const { due, state } of tasks)
    if (due !== undefined && state === "scheduled") counts.set(due, (counts.get(due) ?? 0) + 1);
  const [at, count] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? [0, 0];
  if (count < HERD) return [];
  return [{ code: "HERD", severity: "warning", queue, count, read: tasks.length, at, perSecond: SPREAD }];
}

/** Tasks that are skipped everywhere, because their data is corrupt or of a newer version. */
export function unreadable({ queue, unreadable: all }: Sampled): Finding[] {
  return all.slice(0, NAMED).map(({ local, error: { message, remedy } }, i) => ({
    code: "UNREADABLE",
    severity: "error",
    queue,
    task: { queue, ...parseLocalName(local) },
    // The message of an error ends with its remedy.
    text: remedy === undefined ? message : message.replace(` ${remedy}`, ""),
    hint: remedy,
    ...(i === NAMED - 1 && all.length > NAMED && { more: all.length - NAMED }),
  }));
}

export function orphans({ queue, orphans: names }: Sampled): Finding[] {
  if (names.length === 0) return [];
  return [{ code: "ORPHAN", severity: "warning", queue, count: names.length, names: names.slice(0, NAMED) }];
}

/** A finding for each of the first few tasks, and the number of the others in the last of them. */
function named(
  tasks: readonly StoredTask[],
  severity: Finding["severity"],
  about: (task: StoredTask) => FindingFacts,
): Finding[] {
  return tasks.slice(0, NAMED).map((task, i) => {
    const name = nameOf(task);
    const more = i === NAMED - 1 && tasks.length > NAMED ? { more: tasks.length - NAMED } : {};
    return { ...about(task), severity, queue: name.queue, task: name, ...more };
  });
}
