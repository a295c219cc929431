import { ALERTS_QUEUE, type TaskName } from "@carillon/core";
import { formatDuration, parseLocalName, type TaskSchedule } from "@carillon/core/internal";
import {
  ALERT_TYPE,
  gapText,
  isAlive,
  type NodeInfo,
  type StoredTask,
  status,
  VERSION,
  type WorkerInfo,
} from "@carillon/store";
import type { Runs } from "./runs.js";
import type { Scope } from "./scope.js";

/** `error`: work is lost, wrong or not done; `warning`: it may be. */
export type Severity = "error" | "warning";

/** A fault that `client.doctor()` found. */
export interface Finding {
  /** A code of `client.status()`, or of a check of its own. */
  readonly code: string;
  readonly severity: Severity;
  /** What is wrong, with what was seen. */
  readonly message: string;
  readonly remedy: string;
  readonly queue?: string | undefined;
  readonly task?: TaskName | undefined;
}

/** The answer of `client.doctor()`. */
export interface Diagnosis {
  readonly state: "healthy" | "warnings" | "errors";
  /** Errors first. */
  readonly findings: readonly Finding[];
  /** Tasks that were read, of all: at most 2,000, in each queue half of them the first by name, half the next due. */
  readonly tasks: { readonly read: number; readonly of: number };
  /** Checks that could not be made, and why. */
  readonly skipped: readonly string[];
}

/** Tasks that are read in all. */
const SAMPLE = 2_000;
/** Tasks whose last run is compared with their interval. */
const TIMED = 200;
/** Findings of one code that name a task; the rest are counted. */
const NAMED = 5;
/** Tasks due at one instant that are a herd, and the rate to spread them to, per second. */
const [HERD, SPREAD] = [100, 20];
/** Clock offset in ms from which a node's logs mislead. */
const CLOCK = 1_000;
/** A first occurrence may be this late, in ms. */
const PATIENCE = 60_000;
/** Codes of the status that somebody asked for, or that pass. */
const MILD = new Set(["FROZEN", "QUEUE_PAUSED", "OVERDUE"]);

interface Sampled {
  readonly queue: string;
  readonly tasks: readonly StoredTask[];
  /** Names in an index without a definition. */
  readonly orphans: readonly string[];
  readonly total: number;
}

/** Examines a namespace: reads a bounded number of keys and changes nothing. */
export async function doctor(scope: Scope, runs: Pick<Runs, "stats">): Promise<Diagnosis> {
  scope.assertUnbound();
  const { store } = scope;
  const { reasons, at } = await status(scope);
  const found: Finding[] = reasons.map(({ code, message, remedy, queue }) => ({
    ...{ code, message, remedy, queue },
    severity: MILD.has(code) ? ("warning" as const) : ("error" as const),
  }));
  const skipped: string[] = [];
  if (at === undefined) return diagnosis(found, [], ["all others: Redis does not answer"]);
  const [infos, nodes, workers, queues] = await Promise.all([
    store.info().catch((error: Error) => void skipped.push(`Redis' settings: ${error.message}`)),
    store.registry.nodes(),
    store.registry.workers(),
    store.registry.queues(),
  ]);
  const alive = {
    nodes: nodes.filter((one) => isAlive(one, at)),
    workers: workers.filter((one) => isAlive(one, at)),
  };
  const samples = await Promise.all(
    queues.map((queue) => sample(scope, queue, Math.ceil(SAMPLE / 2 / queues.length))),
  );
  const tasks = samples.flatMap((one) => one.tasks).filter(({ state }) => state === "scheduled");
  const schedules = schedulesOf(scope, tasks);
  found.push(
    ...(infos ?? []).flatMap(redisFindings),
    ...skews(alive.nodes, alive.workers),
    ...clocks(alive.nodes),
    ...(await uncovered(scope, tasks, new Set(found.map(({ queue }) => queue)))),
    ...neverRan(tasks, schedules, at),
    ...(await tooLong(tasks, schedules, runs, at)),
    ...samples.flatMap(({ queue, tasks: all }) => herds(queue, all)),
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
    locals.map((local) =>
      // One that cannot be read is a newer version's.
      store.tasks.get({ queue, ...parseLocalName(local) }).catch(() => "foreign" as const),
    ),
  );
  return {
    queue,
    tasks: read.filter((task) => task !== undefined && task !== "foreign"),
    orphans: locals.filter((_, i) => read[i] === undefined),
    total,
  };
}

function redisFindings(info: string): Finding[] {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, "m").exec(info)?.[1];
  const number = (name: string) => Number(field(name) ?? 0);
  const found: Finding[] = [];
  const add = (severity: Severity, code: string, message: string, remedy: string) =>
    found.push({ code, severity, message, remedy });
  if (field("aof_enabled") === "0")
    add(
      "error",
      "AOF_OFF",
      "Redis has aof_enabled:0: a restart loses acknowledged writes.",
      "Set appendonly yes.",
    );
  for (const name of ["aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status"]) {
    if (field(name) === "err")
      add("error", "PERSISTENCE_FAILS", `Redis has ${name}:err.`, "Check its disk and its log.");
  }
  const policy = field("maxmemory_policy");
  if (policy !== undefined && policy !== "noeviction")
    add(
      "error",
      "EVICTION",
      `Redis has maxmemory_policy:${policy}: it may drop tasks and jobs.`,
      "Set maxmemory-policy noeviction.",
    );
  const [used, most] = [number("used_memory"), number("maxmemory")];
  if (most > 0 && used > 0.8 * most)
    add(
      used > most ? "error" : "warning",
      "MEMORY",
      `Redis uses ${Math.round((100 * used) / most)}% of its maxmemory; at 100% it refuses writes.`,
      "Raise maxmemory, or keep fewer runs: retention.",
    );
  for (const [, name, state] of info.matchAll(/^(slave\d+):.*state=(\w+)/gm)) {
    if (state !== "online")
      add(
        "warning",
        "REPLICA",
        `The replica ${name} is in state ${state}.`,
        "Check the replica and its link.",
      );
  }
  if (field("role") === "slave")
    add("error", "REPLICA", "This Redis is a replica: it refuses writes.", "Connect to the master.");
  return found;
}

/** Processes that run different versions; during a rolling deploy that is as it should be. */
function skews(nodes: readonly NodeInfo[], workers: readonly WorkerInfo[]): Finding[] {
  const versions = {
    VERSION_SKEW: [
      "Carillon",
      [...nodes.map(({ version }) => version), ...workers.map(({ versions }) => versions.carillon), VERSION],
    ],
    BULLMQ_SKEW: ["BullMQ", workers.map(({ versions }) => versions.bullmq)],
    TZDATA_SKEW: ["time zone data", nodes.map(({ tzdata }) => tzdata)],
  } as const;
  return Object.entries(versions).flatMap(([code, [what, all]]) => {
    const different = [...new Set(all)].sort();
    if (different.length < 2) return [];
    const message = `Processes that are alive have different versions of ${what}: ${different.join(", ")}.`;
    return [
      {
        code,
        severity: "warning" as const,
        message,
        remedy: "Finish the deploy, so that all have the newest.",
      },
    ];
  });
}

function clocks(nodes: readonly NodeInfo[]): Finding[] {
  return nodes
    .filter(({ clockOffset }) => Math.abs(clockOffset) > CLOCK)
    .map(({ id, clockOffset }) => ({
      code: "CLOCK",
      severity: "warning" as const,
      message: `The clock of node ${id} is ${formatDuration(Math.abs(Math.round(clockOffset)))} ${clockOffset > 0 ? "ahead of" : "behind"} Redis.`,
      remedy: "Synchronise the clocks of that host and of Redis (NTP).",
    }));
}

/** Types and alerts that no worker handles, whether jobs wait for one yet or not. @param known queues of findings before */
async function uncovered(
  { coverage }: Scope,
  tasks: readonly StoredTask[],
  known: ReadonlySet<string | undefined>,
): Promise<Finding[]> {
  const works = new Map(
    tasks.map(({ definition: { queue, type } }) => [`${queue} ${type}`, { queue, type }] as const),
  );
  const alerted = tasks.filter(({ definition }) => (definition.alerts ?? []).length > 0);
  const delivery = { queue: ALERTS_QUEUE, type: ALERT_TYPE };
  const gaps = await coverage.gaps([...works.values(), ...(alerted.length > 0 ? [delivery] : [])]);
  return [...gaps.values()]
    .filter(({ queue }) => !known.has(queue))
    .map((gap) =>
      gap.queue === ALERTS_QUEUE
        ? {
            code: "NO_DELIVERER",
            severity: "error" as const,
            message: `${alerted.length} tasks have alerts, and ${gapText(gap)}.`,
            remedy: "Give a worker alertWebhook().",
            queue: gap.queue,
          }
        : {
            code: gap.workers === 0 ? "NO_WORKER" : "TYPE_UNHANDLED",
            severity: "error" as const,
            message: `${gapText(gap)[0]?.toUpperCase()}${gapText(gap).slice(1)}.`,
            remedy: `Start a worker that has the type ${gap.type}.`,
            queue: gap.queue,
          },
    );
}

type Schedules = ReadonlyMap<StoredTask, TaskSchedule>;

/** Without those whose calendars are gone: their puts and claims say so. */
function schedulesOf({ store }: Scope, tasks: readonly StoredTask[]): Schedules {
  return new Map(
    tasks.flatMap((task) => {
      try {
        return [[task, store.calendars.schedules.get(task.definition, task.scheduleJson)] as const];
      } catch {
        return [];
      }
    }),
  );
}

function neverRan(tasks: readonly StoredTask[], schedules: Schedules, now: number): Finding[] {
  const found = tasks.filter((task) => {
    const schedule = schedules.get(task);
    if (!schedule || task.fired > 0 || task.hasOpenRuns || schedule.delay !== undefined) return false;
    const passed = schedule.latest(now - PATIENCE);
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
  runs: Pick<Runs, "stats">,
  now: number,
): Promise<Finding[]> {
  const ran = tasks.filter((task) => task.fired > 0 && schedules.has(task)).slice(0, TIMED);
  const longest = await Promise.all(ran.map((task) => runs.stats(nameOf(task)).catch(() => undefined)));
  const gaps = ran.map((task) => {
    const schedule = schedules.get(task) as TaskSchedule;
    if (schedule.delay !== undefined) return Number.POSITIVE_INFINITY;
    const first = schedule.next(now);
    const second = first === undefined ? undefined : schedule.next(first);
    return first === undefined || second === undefined ? Number.POSITIVE_INFINITY : second - first;
  });
  const tooSlow = ran.filter((_, i) => (longest[i]?.lastMs ?? 0) > (gaps[i] as number));
  return named("RUN_TOO_LONG", tooSlow, (task) => {
    const i = ran.indexOf(task);
    return {
      message: `Its last run took ${formatDuration(longest[i]?.lastMs ?? 0)}, and it is due every ${formatDuration(gaps[i] as number)}.`,
      remedy: "Give it a longer interval or a time limit, or make the run shorter.",
    };
  });
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

function nameOf({ definition: { queue, owner, id } }: StoredTask): TaskName {
  return { queue, owner, id };
}

/** A finding for each of the first few tasks, and the number of the others in the last of them. */
function named(
  code: string,
  tasks: readonly StoredTask[],
  about: (task: StoredTask) => Pick<Finding, "message" | "remedy">,
): Finding[] {
  return tasks.slice(0, NAMED).map((task, i) => {
    const name = nameOf(task);
    const { message, remedy } = about(task);
    const more = i === NAMED - 1 && tasks.length > NAMED ? ` (So do ${tasks.length - NAMED} others.)` : "";
    return {
      ...{ code, severity: "warning", remedy, queue: name.queue, task: name },
      message: `${name.owner}/${name.id}: ${message}${more}`,
    };
  });
}
