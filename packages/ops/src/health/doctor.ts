import { ALERTS_QUEUE, type AlertDestination, type CarillonError, type Policies } from "@carillon/core";
import {
  CARRIERS,
  type Carrier,
  carrierOf,
  formatInstead,
  grouped,
  isLate,
  localName,
  parseLocalName,
  type StatusReasonFacts,
  type TaskSchedule,
} from "@carillon/core/internal";
import { running, type Scope, undelivered } from "@carillon/sdk/internal";
import { failsForAll, isAlive, readStatus, redisError, type StoredTask } from "@carillon/store";
import { readServerInfo } from "@carillon/store/internal";
import { z } from "zod";
import { keyOf, nameOf } from "../bulk/bulk.js";
import { heldBy } from "../occurrences/due-tasks.js";
import { operation } from "../operation.js";
import { count } from "../shapes.js";
import { clocks, dead, lostHistory, notReady, redisFindings, skews, slowness } from "./environment.js";
import { type Finding, type FindingFacts, finding, NAMED } from "./finding.js";

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

interface Sampled {
  readonly queue: string;
  readonly tasks: readonly StoredTask[];
  /** Names in an index without a definition. */
  readonly orphans: readonly string[];
  /** Tasks whose data cannot be read, and why. */
  readonly unreadable: readonly { readonly local: string; readonly error: CarillonError }[];
  readonly total: number;
}

const diagnosis = z
  .object({
    state: z.enum(["healthy", "warnings", "errors"]),
    findings: z.array(finding).readonly().describe("Errors first."),
    tasks: z
      .object({ read: count, of: count })
      .describe(
        "At most 2,000 tasks are read: in each queue half of them the first by name, half the next due.",
      ),
    skipped: z.array(z.string()).readonly().describe("Checks that could not be made, and why."),
  })
  .meta({ id: "Diagnosis" });

/** Examines a namespace: reads a bounded number of keys and changes nothing. */
export const doctor = operation({
  http: "GET /doctor",
  role: "viewer",
  reach: "namespace",
  cost: "computes",
  summary:
    "Looks for faults beyond the status: settings of Redis, versions, clocks, types and alerts without a worker, tasks that never ran or take too long, herds, indexes.",
  input: z.strictObject({}),
  output: diagnosis,
  run: ({ scope }) => examine(scope),
});

async function examine(scope: Scope): Promise<z.output<typeof diagnosis>> {
  const { store } = scope;
  const { reasons, notes, at } = await readStatus(scope);
  // An error stops work, as in the exit codes of the status.
  const found: Finding[] = [
    ...reasons.map((one) => ({ ...one, severity: isLate(one) ? ("warning" as const) : ("error" as const) })),
    // `redisFindings` reports the settings of Redis.
    ...notes
      .filter(({ code }) => code !== "AOF_OFF" && code !== "EVICTION")
      .map((one) => ({ ...one, severity: "warning" as const })),
  ];
  const skipped: string[] = [];
  const writable = !reasons.some(({ code }) => code.startsWith("REDIS_"));
  if (at === undefined) return diagnosisOf(found, [], ["all others: Redis does not answer"]);
  const [infos, commands, nodes, workers, queues] = await Promise.all([
    store.info().catch((error: Error) => {
      skipped.push(`Redis' settings: ${error.message}`);
      return [readServerInfo("")];
    }),
    // The ACL for Carillon's own users does not allow SLOWLOG, which shows the commands of everybody.
    store.slowCommands().catch((error: Error) => {
      skipped.push(`slow commands: ${error.message}`);
      return [];
    }),
    store.registry.nodes(),
    store.registry.workers(),
    store.registry.queues(),
  ]);
  const alive = {
    nodes: nodes.filter((one) => isAlive(one, at)),
    workers: workers.filter((one) => isAlive(one, at)),
  };
  const hidden = new Set(infos.flatMap((info) => info.hidden));
  if (hidden.size > 0) skipped.push(`Redis' ${[...hidden].join(", ")}: INFO does not show it`);
  if (!writable) skipped.push("nodes and workers: they cannot report while Redis refuses writes");
  const samples = await Promise.all(
    queues.map((queue) => sample(scope, queue, Math.ceil(SAMPLE / 2 / queues.length))),
  );
  const tasks = samples.flatMap((one) => one.tasks).filter(({ state }) => state === "scheduled");
  const [schedules, unplanned] = schedulesOf(scope, tasks);
  found.push(
    ...infos.flatMap(redisFindings),
    ...slowness(alive.nodes, commands, at),
    ...lostHistory(alive.nodes, at),
    ...skews(alive.nodes, alive.workers),
    ...clocks(alive.nodes),
    ...notReady(alive.nodes, at),
    ...(writable ? [...dead("NODE_DEAD", nodes, at), ...dead("WORKER_DEAD", workers, at)] : []),
    ...(writable ? await uncovered(scope, tasks, reasons) : []),
    ...(await stuckDeliveries(scope, at, [...reasons, ...notes])),
    ...(writable ? await undeliverable(scope, tasks) : []),
    ...unplanned,
    ...sameIds(tasks),
    ...(await neverRan(scope, at)),
    ...(await tooLong(scope, tasks, schedules, at)),
    ...samples.flatMap(({ queue, tasks: all }) => herds(queue, all)),
    ...samples.flatMap(unreadable),
    ...samples.flatMap(orphans),
  );
  return diagnosisOf(found, samples, skipped);
}

function diagnosisOf(
  found: readonly Finding[],
  samples: readonly Sampled[],
  skipped: readonly string[],
): z.output<typeof diagnosis> {
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
  reasons: readonly StatusReasonFacts[],
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
    .map(
      (gap): Finding => ({
        ...(gap.workers === 0 ? { code: "NO_WORKER", gap } : { code: "TYPE_UNHANDLED", gap }),
        severity: "error",
        queue: gap.queue,
      }),
    );
}

/** Destinations, of tasks and of defaults, that no worker delivers to, or that do not take the format of their alerts. */
async function undeliverable({ store, coverage }: Scope, tasks: readonly StoredTask[]): Promise<Finding[]> {
  const defaults = [...(await store.registry.defaults())];
  const withAlerts = (are: (one: AlertDestination) => boolean) => {
    const uses = ({ alerts = [] }: Policies) => alerts.some(are);
    const scopes = defaults.filter(([, policies]) => uses(policies)).map(([scope]) => scope);
    return { tasks: tasks.filter(({ definition }) => uses(definition)).length, scopes };
  };
  const found: Finding[] = [];
  for (const carrier of Object.keys(CARRIERS) as Carrier[]) {
    const { type, deliverer } = CARRIERS[carrier];
    const who = withAlerts((one) => carrierOf(one) === carrier);
    const [gap] = (await coverage.gaps([{ queue: ALERTS_QUEUE, type }])).values();
    if (gap === undefined || (who.scopes.length === 0 && who.tasks === 0)) continue;
    found.push({
      code: "NO_DELIVERER",
      severity: "error",
      queue: ALERTS_QUEUE,
      carrier,
      deliverer,
      ...who,
      gap,
    });
  }
  const wrong = new Map<string, Omit<Extract<FindingFacts, { code: "ALERT_FORMAT" }>, "tasks" | "scopes">>();
  for (const one of [
    ...tasks.map(({ definition }) => definition),
    ...defaults.map(([, policies]) => policies),
  ])
    for (const to of one.alerts ?? []) {
      const instead = formatInstead(to);
      const { format } = to;
      if (instead)
        wrong.set(`${format} ${instead.host}`, {
          code: "ALERT_FORMAT",
          host: instead.host,
          format,
          instead: instead.format,
        });
    }
  for (const facts of wrong.values()) {
    const is = (one: AlertDestination) =>
      one.format === facts.format && formatInstead(one)?.host === facts.host;
    found.push({ ...facts, severity: "error", ...withAlerts(is) });
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
  const found = named([...failures.keys()], "error", (task) => ({
    code: "NOT_PLANNED",
    error: failures.get(task) ?? "",
  }));
  return [schedules, found];
}

/** Deliveries of alerts that failed within the last hour, or are late: their destination does not take them. */
async function stuckDeliveries(
  scope: Scope,
  now: number,
  reasons: readonly StatusReasonFacts[],
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
  const error = failing.find(({ error }) => error !== undefined)?.error?.split("\n")[0];
  return [
    {
      code: "ALERTS_FAIL",
      severity: "warning",
      queue: ALERTS_QUEUE,
      deliveries: failing.length,
      to: [...new Set(failing.map((one) => one.to))].slice(0, NAMED),
      ...(error !== undefined && { error }),
    },
  ];
}

/** Tasks that run in several queues under one name, once each. */
function sameIds(tasks: readonly StoredTask[]): Finding[] {
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
async function neverRan(scope: Scope, now: number): Promise<Finding[]> {
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

async function tooLong(
  { store, owner }: Scope,
  tasks: readonly StoredTask[],
  schedules: Schedules,
  now: number,
): Promise<Finding[]> {
  const queues = await store.registry.queues();
  const under = new Map(
    (await running({ store, owner, queues }, undefined, TIMED)).map((run) => [keyOf(run.task), run] as const),
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
function herds(queue: string, tasks: readonly StoredTask[]): Finding[] {
  const counts = new Map<number, number>();
  for (const { due, state } of tasks)
    if (due !== undefined && state === "scheduled") counts.set(due, (counts.get(due) ?? 0) + 1);
  const [at, count] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? [0, 0];
  if (count < HERD) return [];
  return [{ code: "HERD", severity: "warning", queue, count, read: tasks.length, at, perSecond: SPREAD }];
}

/** Tasks that are skipped everywhere, because their data is corrupt or of a newer version. */
function unreadable({ queue, unreadable: all }: Sampled): Finding[] {
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

function orphans({ queue, orphans: names }: Sampled): Finding[] {
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
