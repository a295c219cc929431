import { ALERTS_QUEUE, type CarillonError, type Policies, type TaskName } from "@carillon/core";
import {
  DESTINATION_KINDS,
  DESTINATIONS,
  formatDuration,
  gapText,
  parseLocalName,
  type TaskSchedule,
} from "@carillon/core/internal";
import { failsForAll, isAlive, redisError, type StoredTask } from "@carillon/store";
import { clocks, dead, lostHistory, notReady, redisFindings, skews, slowness } from "./doctor-environment.js";
import { type Diagnosis, type Finding, NAMED, span } from "./doctor-finding.js";
import type { Runs } from "./runs.js";
import type { Scope } from "./scope.js";
import { type StatusReason, status } from "./status.js";
import { undelivered } from "./undelivered.js";

/** Tasks that are read in all. */
const SAMPLE = 2_000;
/** Tasks whose last run is compared with their interval. */
const TIMED = 200;
/** Number of tasks due at one instant that count as a herd, and the rate to spread them to, per second. */
const [HERD, SPREAD] = [100, 20];
/** A failed delivery is reported for so long, and one that waits from this age on, in ms. */
const UNDELIVERED = { failed: 3_600_000, late: 60_000 };
/** A first occurrence may be this late, in ms. */
const PATIENCE = 60_000;
/** Codes of the status that were caused on purpose, that pass, or that stop no work. */
const MILD = new Set(["FROZEN", "QUEUE_PAUSED", "OVERDUE", "JOBS_WAIT", "ALERTS_FAIL"]);

interface Sampled {
  readonly queue: string;
  readonly tasks: readonly StoredTask[];
  /** Names in an index without a definition. */
  readonly orphans: readonly string[];
  /** Tasks whose data cannot be read, and why. */
  readonly unreadable: readonly { readonly local: string; readonly error: CarillonError }[];
  readonly total: number;
}

/** Examines a namespace: reads a bounded number of keys and changes nothing. */
export async function doctor(scope: Scope, runs: Pick<Runs, "stats" | "list">): Promise<Diagnosis> {
  scope.assertUnbound();
  const { store } = scope;
  const { reasons, notes, at } = await status(scope);
  const found: Finding[] = [...reasons, ...notes].map(({ code, message, remedy, queue }) => ({
    ...{ code, message, remedy, queue },
    severity: MILD.has(code) ? ("warning" as const) : ("error" as const),
  }));
  const skipped: string[] = [];
  const writable = !reasons.some(({ code }) => code.startsWith("REDIS_"));
  if (at === undefined) return diagnosis(found, [], ["all others: Redis does not answer"]);
  const [infos, commands, nodes, workers, queues] = await Promise.all([
    store.info().catch((error: Error) => void skipped.push(`Redis' settings: ${error.message}`)),
    // The ACL for Carillon's own users does not allow SLOWLOG, which shows the commands of everybody.
    store.slowCommands().catch(() => []),
    store.registry.nodes(),
    store.registry.workers(),
    store.registry.queues(),
  ]);
  const alive = {
    nodes: nodes.filter((one) => isAlive(one, at)),
    workers: workers.filter((one) => isAlive(one, at)),
  };
  if (!writable) skipped.push("nodes and workers: they cannot report while Redis refuses writes");
  const samples = await Promise.all(
    queues.map((queue) => sample(scope, queue, Math.ceil(SAMPLE / 2 / queues.length))),
  );
  const tasks = samples.flatMap((one) => one.tasks).filter(({ state }) => state === "scheduled");
  const [schedules, unplanned] = schedulesOf(scope, tasks);
  found.push(
    ...(infos ?? []).flatMap(redisFindings),
    ...slowness(alive.nodes, commands, at),
    ...lostHistory(alive.nodes, at),
    ...skews(alive.nodes, alive.workers),
    ...clocks(alive.nodes),
    ...notReady(alive.nodes, at),
    ...(writable ? [...dead("node", nodes, at), ...dead("worker", workers, at)] : []),
    ...(writable ? await uncovered(scope, tasks, reasons) : []),
    ...(await stuckDeliveries(scope, at, [...reasons, ...notes])),
    ...(writable ? await undeliverable(scope, tasks) : []),
    ...unplanned,
    ...neverRan(tasks, schedules, at),
    ...(await tooLong(tasks, schedules, runs, at)),
    ...samples.flatMap(({ queue, tasks: all }) => herds(queue, all)),
    ...samples.flatMap(unreadable),
    ...samples.flatMap(orphans),
  );
  return diagnosis(found, samples, skipped);
}

function diagnosis(
  found: readonly Finding[],
  samples: readonly Sampled[],
  skipped: readonly string[],
): Diagnosis {
  const errors = found.filter(({ severity }) => severity === "error");
  const findings = [...errors, ...found.filter(({ severity }) => severity === "warning")];
  const state = errors.length > 0 ? "errors" : findings.length > 0 ? "warnings" : "healthy";
  const sum = (value: (one: Sampled) => number) => samples.reduce((all, one) => all + value(one), 0);
  return {
    state,
    findings,
    tasks: { read: sum(({ tasks }) => tasks.length), of: sum(({ total }) => total) },
    skipped,
  };
}

async function sample({ store }: Scope, queue: string, size: number): Promise<Sampled> {
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

/**
 * Task types and alerts that no worker handles, whether or not jobs wait for one.
 * @param reasons of the status, which names those for which jobs wait
 */
async function uncovered(
  { coverage }: Scope,
  tasks: readonly StoredTask[],
  reasons: readonly StatusReason[],
): Promise<Finding[]> {
  const works = new Map(
    tasks.map(({ definition: { queue, type } }) => [`${queue} ${type}`, { queue, type }] as const),
  );
  const gaps = await coverage.gaps([...works.values()]);
  const known = reasons.flatMap(({ code, queue, type = "" }) =>
    code === "NO_WORKER" ? [`${queue} ${type}`] : [],
  );
  const told = new Set(known);
  return [...gaps.values()]
    .filter(({ queue, type, workers }) => {
      // One finding for a queue without any worker, whatever types it has.
      const name = `${queue} ${workers === 0 ? "" : type}`;
      return !told.has(name) && told.add(name);
    })
    .map((gap) => ({
      code: gap.workers === 0 ? "NO_WORKER" : "TYPE_UNHANDLED",
      severity: "error" as const,
      message: `${gapText(gap)[0]?.toUpperCase()}${gapText(gap).slice(1)}.`,
      remedy: `Start a worker that has the type ${gap.type} and works the queue ${gap.queue}.`,
      queue: gap.queue,
    }));
}

/** Kinds of destinations, of tasks and of defaults, that no worker delivers to. */
async function undeliverable({ store, coverage }: Scope, tasks: readonly StoredTask[]): Promise<Finding[]> {
  const defaults = await store.registry.defaults();
  const found: Finding[] = [];
  for (const kind of DESTINATION_KINDS) {
    const { type, deliverer } = DESTINATIONS[kind];
    const uses = ({ alerts = [] }: Policies) => alerts.some((one) => one[kind] !== undefined);
    const scopes = [...defaults].filter(([, policies]) => uses(policies)).map(([scope]) => scope);
    const count = tasks.filter(({ definition }) => uses(definition)).length;
    const [gap] = (await coverage.gaps([{ queue: ALERTS_QUEUE, type }])).values();
    if (gap === undefined || (scopes.length === 0 && count === 0)) continue;
    const who = [
      ...(count > 0 ? [count === 1 ? "1 task" : `${count} tasks`] : []),
      ...(scopes.length > 0 ? [`the defaults of ${scopes.join(", ")}`] : []),
    ];
    const verb = count === 1 && scopes.length === 0 ? "has" : "have";
    found.push({
      ...{ code: "NO_DELIVERER", severity: "error", queue: ALERTS_QUEUE },
      message: `${who.join(" and ")} ${verb} alerts by ${kind === "email" ? "e-mail" : "webhook"}, and ${gapText(gap)}.`,
      remedy: `Give a worker ${deliverer}().`,
    });
  }
  return found;
}

type Schedules = ReadonlyMap<StoredTask, TaskSchedule>;

/** The schedules, and findings about those that cannot be computed: a time zone or a calendar is gone. */
function schedulesOf({ store }: Scope, tasks: readonly StoredTask[]): [Schedules, Finding[]] {
  const schedules = new Map<StoredTask, TaskSchedule>();
  const failures = new Map<StoredTask, string>();
  for (const task of tasks) {
    try {
      schedules.set(task, store.calendars.schedules.get(task.definition, task.scheduleJson));
    } catch (error) {
      failures.set(task, (error as Error).message);
    }
  }
  const found = named("NOT_PLANNED", [...failures.keys()], (task) => ({
    severity: "error",
    message: `Its schedule cannot be computed, so it does not run: ${failures.get(task)}`,
    remedy: `Mend the schedule: carillon edit ${task.definition.owner}/${task.definition.id}. If a node can compute it, this program has older time zone data.`,
  }));
  return [schedules, found];
}

/** Deliveries of alerts that failed within the last hour, or are late: their destination does not take them. */
async function stuckDeliveries(
  scope: Scope,
  now: number,
  reasons: readonly StatusReason[],
): Promise<Finding[]> {
  if (reasons.some(({ code }) => code === "ALERTS_FAIL")) return [];
  const { deliveries } = await undelivered(scope);
  // Those that were not tried yet are a symptom of this reason.
  const told = reasons.some(({ code }) => code === "ALERTS_UNDELIVERED");
  const failing = deliveries.filter(
    ({ state, at, error }) =>
      (state === "failed" && now - at < UNDELIVERED.failed) ||
      (state === "waiting" && now - at > UNDELIVERED.late && (!told || error !== undefined)),
  );
  if (failing.length === 0) return [];
  const to = [...new Set(failing.map((one) => one.to))].slice(0, NAMED).join(", ");
  const why = failing
    .find(({ error }) => error !== undefined)
    ?.error?.split("\n")[0]
    ?.replace(/\.$/, "");
  return [
    {
      code: "ALERTS_FAIL",
      severity: "warning",
      message: `${failing.length} ${failing.length === 1 ? "delivery" : "deliveries"} of alerts failed or wait for another try, to ${to}${why === undefined ? "" : `: ${why}`}.`,
      remedy: "See carillon alerts. Once the destination works, carillon alerts test URL proves it.",
      queue: ALERTS_QUEUE,
    },
  ];
}

function neverRan(tasks: readonly StoredTask[], schedules: Schedules, now: number): Finding[] {
  const found = tasks.filter((task) => {
    const schedule = schedules.get(task);
    if (!schedule || task.fired > 0 || task.hasOpenRuns || schedule.delay !== undefined) return false;
    const passed = schedule.latestDue(now - PATIENCE);
    return passed !== undefined && passed > task.created;
  });
  return named("NEVER_RAN", found, (task) => ({
    message: `It was put ${formatDuration(Math.round((now - task.created) / 1000) * 1000)} ago, its times have passed, and it never ran.`,
    remedy: `carillon explain ${nameOf(task).owner}/${nameOf(task).id} says why.`,
  }));
}

async function tooLong(
  tasks: readonly StoredTask[],
  schedules: Schedules,
  runs: Pick<Runs, "stats" | "list">,
  now: number,
): Promise<Finding[]> {
  const under = new Map(
    (await runs.list({ state: "running", limit: TIMED })).map((run) => [textOf(run.task), run] as const),
  );
  const isUnderWay = (task: StoredTask) => under.has(textOf(nameOf(task)));
  const ran = tasks
    .filter((task) => (task.fired > 0 || isUnderWay(task)) && schedules.has(task))
    .sort((a, b) => Number(isUnderWay(b)) - Number(isUnderWay(a)))
    .slice(0, TIMED);
  const timed = await Promise.all(
    ran.map(async (task) => {
      const run = under.get(textOf(nameOf(task)));
      const last = (await runs.stats(nameOf(task)).catch(() => undefined))?.lastMs ?? 0;
      const present = run !== undefined && run.runningMs > last;
      const gap = intervalOf(schedules.get(task) as TaskSchedule, now);
      return { task, gap, took: present ? run.runningMs : last, run: present ? run.id : undefined };
    }),
  );
  const tooSlow = new Map(timed.filter(({ gap, took }) => took > gap).map((one) => [one.task, one]));
  return named("RUN_TOO_LONG", [...tooSlow.keys()], (task) => {
    const { took, gap, run } = tooSlow.get(task) ?? { took: 0, gap: 0 };
    const fix = "Give it a longer interval or a time limit, or make the run shorter.";
    return {
      message: `Its ${run === undefined ? "last run took" : "present run has taken"} ${span(took)}, and it is due every ${span(gap)}.`,
      remedy: run === undefined ? fix : `If it hangs: carillon cancel ${run}. ${fix}`,
    };
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
function herds(queue: string, tasks: readonly StoredTask[]): Finding[] {
  const counts = new Map<number, number>();
  for (const { due, state } of tasks)
    if (due !== undefined && state === "scheduled") counts.set(due, (counts.get(due) ?? 0) + 1);
  const [at, count] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? [0, 0];
  if (count < HERD) return [];
  const spread = formatDuration(Math.ceil(count / SPREAD) * 1_000);
  return [
    {
      code: "HERD",
      severity: "warning",
      message: `${count} of the ${tasks.length} tasks read of queue ${queue} are due at ${new Date(at).toISOString()}.`,
      remedy: `Spread them: "jitter": "${spread}" in their schedules makes ${SPREAD} a second of them.`,
      queue,
    },
  ];
}

/** Tasks that are skipped everywhere, because their data is corrupt or of a newer version. */
function unreadable({ queue, unreadable: all }: Sampled): Finding[] {
  return all.slice(0, NAMED).map(({ local, error: { message, remedy = "" } }, i) => ({
    code: "UNREADABLE",
    severity: "error",
    message: `${message.replace(` ${remedy}`, "")}${i === NAMED - 1 && all.length > NAMED ? ` (So do ${all.length - NAMED} others.)` : ""}`,
    remedy,
    queue,
    task: { queue, ...parseLocalName(local) },
  }));
}

function orphans({ queue, orphans: names }: Sampled): Finding[] {
  if (names.length === 0) return [];
  const some = names.slice(0, NAMED).join(", ");
  return [
    {
      code: "ORPHAN",
      severity: "warning",
      message: `${names.length} names in the indexes of queue ${queue} have no definition: ${some}.`,
      remedy: "A node removes them once a day; if they come back, check what else writes to this Redis.",
      queue,
    },
  ];
}

function textOf({ queue, owner, id }: TaskName): string {
  return `${queue} ${owner}/${id}`;
}

function nameOf({ definition: { queue, owner, id } }: StoredTask): TaskName {
  return { queue, owner, id };
}

/** A finding for each of the first few tasks, and the number of the others in the last of them. */
function named(
  code: string,
  tasks: readonly StoredTask[],
  about: (task: StoredTask) => Pick<Finding, "message" | "remedy"> & Partial<Pick<Finding, "severity">>,
): Finding[] {
  return tasks.slice(0, NAMED).map((task, i) => {
    const name = nameOf(task);
    const { message, remedy, severity = "warning" } = about(task);
    const more = i === NAMED - 1 && tasks.length > NAMED ? ` (So do ${tasks.length - NAMED} others.)` : "";
    return {
      ...{ code, severity, remedy, queue: name.queue, task: name },
      message: `${name.owner}/${name.id}: ${message}${more}`,
    };
  });
}
