import { Coverage, readStatus, type Store } from "@carillon/scheduler/internal";
import type { StatusCode } from "@carillon/sdk";
import { ALERTS_QUEUE, type QueueStatus } from "@carillon/sdk/internal";
import type { Registry } from "prom-client";
import { scraped, shared, withinASecond } from "./scrape.js";

/** A series with 0 for each of them; the codes of Redis errors join when they occur. */
const STATUS_CODES: Record<
  Exclude<StatusCode, `REDIS_${string}` | Exclude<(typeof NOTE_CODES)[number], "QUEUE_PAUSED">>,
  0
> = {
  EMPTY: 0,
  NO_NODE: 0,
  NODES_NOT_READY: 0,
  CLOCK_WENT_BACK: 0,
  QUEUE_PAUSED: 0,
  NO_WORKER: 0,
  JOBS_NOT_TAKEN: 0,
  ALERTS_UNDELIVERED: 0,
  TASK_HELD: 0,
  OVERDUE: 0,
  JOBS_WAIT: 0,
};

const UNSAFE = ["AOF_OFF", "EVICTION"] as const satisfies StatusCode[];
const NOTE_CODES = [
  ...UNSAFE,
  "SAME_NODE_ID",
  "FROZEN",
  "SILENCED",
  "QUEUE_PAUSED",
  "JOBS_LIMITED",
  "RUNS_FAIL",
  "ALERTS_FAIL",
] as const satisfies StatusCode[];

/**
 * The state of the whole namespace, read once at each scrape. Omitted if Redis does not answer, because it is not this
 * node's own.
 */
export function namespaceMetrics(store: Store, registers: Registry[]): void {
  const coverage = new Coverage(store);
  const metric = scraped(
    registers,
    shared(async () => {
      if (!store.ready) return { status: undefined, queues: [], servers: [] };
      const [status, queues = [], servers = []] = await Promise.all([
        withinASecond(() => readStatus({ store, coverage })),
        withinASecond(() => countAll(store)),
        withinASecond(() => store.info()),
      ]);
      return { status, queues, servers };
    }),
  );

  metric(
    "gauge",
    "carillon_status_reasons",
    "Reasons why work is not on time, as carillon status lists them; queue is empty if a reason concerns all.",
    ["code", "queue"],
    ({ status }) => {
      if (!status) return [];
      const none = Object.keys(STATUS_CODES).map((code) => [{ code, queue: "" }, 0] as const);
      return [...none, ...status.reasons.map(({ code, queue = "" }) => [{ code, queue }, 1] as const)];
    },
  );
  metric(
    "gauge",
    "carillon_status_notes",
    "Notes of carillon status: work that is held on purpose, alerts that are silenced or fail, changed settings of Redis; queue is empty if a note concerns all.",
    ["code", "queue"],
    ({ status }) => {
      if (!status) return [];
      const none = NOTE_CODES.map((code) => [{ code, queue: "" }, 0] as const);
      return [...none, ...status.notes.map(({ code, queue = "" }) => [{ code, queue }, 1] as const)];
    },
  );
  metric(
    "gauge",
    "carillon_redis_unsafe",
    "1 for a setting with which Redis may lose tasks, and that it did not have when a node started.",
    ["what"],
    ({ status }) =>
      status?.at === undefined
        ? []
        : UNSAFE.map((what) => [{ what }, status.notes.some(({ code }) => code === what) ? 1 : 0]),
  );
  metric(
    "gauge",
    "carillon_redis_memory_ratio",
    "Used part of maxmemory, of the fullest master; missing if none has a limit.",
    [],
    ({ servers }) => {
      const used = servers.flatMap(({ memory }) => (memory.most > 0 ? [memory.used / memory.most] : []));
      return used.length === 0 ? [] : [[{}, Math.max(...used)]];
    },
  );
  // Without the time of Redis there was no answer, so nothing is known.
  metric(
    "gauge",
    "carillon_nodes",
    "Nodes that are alive, by whether they claim.",
    ["state"],
    ({ status }) =>
      status?.at === undefined
        ? []
        : [
            [{ state: "ready" }, status.nodes.ready],
            [{ state: "not-ready" }, status.nodes.alive - status.nodes.ready],
          ],
  );
  metric(
    "gauge",
    "carillon_workers_alive",
    "Worker processes that are alive; plain BullMQ workers are not among them.",
    [],
    ({ status }) => (status?.at === undefined ? [] : [[{}, status.workers.alive]]),
  );
  metric(
    "gauge",
    "carillon_alerts_undelivered",
    "Alerts that wait for a node to take them, and deliveries that wait for a worker.",
    ["waits_for"],
    ({ status, queues }) => {
      if (status?.at === undefined) return [];
      const deliveries = status.queues.find(({ name }) => name === ALERTS_QUEUE)?.waiting ?? 0;
      const alerts = queues.reduce((sum, one) => sum + one.alerts, 0);
      return [
        [{ waits_for: "node" }, alerts],
        [{ waits_for: "worker" }, deliveries],
      ];
    },
  );
  metric(
    "gauge",
    "carillon_tasks",
    "Tasks: planned have a next time; waiting ones get one at a run's end; paused; finished.",
    ["queue", "state"],
    ({ queues }) =>
      queues.flatMap(({ queue, states }) =>
        Object.entries(states).map(([state, count]) => [{ queue, state }, count] as const),
      ),
  );
  metric(
    "counter",
    "carillon_runs_total",
    "Runs that ended, over all processes.",
    ["queue", "outcome"],
    ({ queues }) =>
      queues.flatMap(({ queue, outcomes }) =>
        Object.entries(outcomes).map(([outcome, count]) => [{ queue, outcome }, count] as const),
      ),
  );
  metric(
    "counter",
    "carillon_run_seconds_total",
    "Time that ended runs took from start to end, over all processes: of those that succeeded and of those that failed.",
    ["queue", "result"],
    ({ queues }) =>
      queues.flatMap(({ queue, durations: { successMs, failureMs } }) => [
        [{ queue, result: "success" }, successMs / 1000] as const,
        [{ queue, result: "failure" }, failureMs / 1000] as const,
      ]),
  );

  function ofQueues(name: string, help: string, measure: (queue: QueueStatus) => number | undefined): void {
    metric("gauge", `carillon_queue_${name}`, help, ["queue"], ({ status }) =>
      (status?.queues ?? []).flatMap((queue) => {
        const value = measure(queue);
        return value === undefined ? [] : [[{ queue: queue.name }, value] as const];
      }),
    );
  }
  // A queue whose keys are corrupt has no state.
  ofQueues("paused", "1 while workers take no jobs of the queue.", ({ waiting, paused }) =>
    waiting === undefined ? undefined : paused ? 1 : 0,
  );
  ofQueues("waiting_jobs", "Jobs that wait for a worker.", ({ waiting }) => waiting);
  ofQueues("active_jobs", "Jobs that workers hold.", ({ active }) => active);
  ofQueues(
    "oldest_waiting_seconds",
    "Age of the job that has waited longest; 0 if none waits.",
    ({ waiting, oldestWaitingMs = 0 }) => (waiting === undefined ? undefined : oldestWaitingMs / 1000),
  );
  ofQueues(
    "workers",
    "BullMQ workers that are connected. Missing if Redis does not list clients.",
    ({ workers }) => workers,
  );
}

/** Numbers of each queue; a queue whose keys are corrupt is left out. */
async function countAll({ registry, tasks, alerts, runs }: Store) {
  const names = await registry.queues();
  const counted = names.map(async (queue) => ({
    queue,
    states: await tasks.countStates(queue),
    alerts: await alerts.count(queue),
    outcomes: await runs.outcomes(queue),
    durations: await runs.durations(queue),
  }));
  return (await Promise.all(counted.map((one) => one.catch(() => undefined)))).filter(
    (one) => one !== undefined,
  );
}
