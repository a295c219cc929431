import { ALERTS_QUEUE } from "@carillon/core";
import type { StatusReasonFacts } from "@carillon/core/internal";
import { isAlive } from "../beats.js";
import { failingDeliveries } from "./failing-deliveries.js";
import { failingRuns } from "./failing-runs.js";
import { nodeView } from "./node-view.js";
import { LATE, type QueueStatus, readQueue, type StatusScope } from "./queue-reading.js";
import * as reason from "./reasons.js";

/**
 * `stopped`: some work is not done until somebody acts. `behind`: an occurrence is due and no node has claimed it, or
 * its run has waited for a worker for a minute.
 */
export type StatusState = "on-time" | "behind" | "stopped";

/** Whether the work of a namespace is on time; if not, the facts of each reason. Times in UTC ms of Redis time. */
export interface StatusFacts {
  readonly state: StatusState;
  /** Age in ms of the oldest due occurrence that no node has claimed, or of the oldest run that waits too long for a worker. */
  readonly behind: number;
  /** The time of Redis; absent if Redis does not answer. */
  readonly at?: number;
  /** Most severe first; empty if the state is `on-time`. */
  readonly reasons: readonly StatusReasonFacts[];
  /**
   * Facts that do not change the state: unsafe settings of Redis that changed under its nodes (`AOF_OFF`, `EVICTION`), freezes (`FROZEN`),
   * silences of all alerts (`SILENCED`), pauses of queues that recorded their time (`QUEUE_PAUSED`), jobs that a limit of
   * BullMQ's holds (`JOBS_LIMITED`), runs of which most fail (`RUNS_FAIL`), and receivers that do not take their alerts (`ALERTS_FAIL`).
   */
  readonly notes: readonly StatusReasonFacts[];
  readonly queues: readonly QueueStatus[];
  /** Scheduler nodes: those that are alive, and those of them that claim. */
  readonly nodes: { readonly alive: number; readonly ready: number };
  /** Worker processes that are alive. Plain BullMQ workers are counted by `queues` alone. */
  readonly workers: { readonly alive: number };
}

/** Whether the work of a namespace is on time; never throws because of Redis. */
export async function readStatus(scope: StatusScope): Promise<StatusFacts> {
  try {
    return await read(scope);
  } catch (error) {
    const none = { behind: 0, queues: [], nodes: { alive: 0, ready: 0 }, workers: { alive: 0 } };
    return { state: "stopped", ...none, reasons: [reason.redisReason(error)], notes: [] };
  }
}

async function read(scope: StatusScope): Promise<StatusFacts> {
  const { store, owner } = scope;
  const [now, latest = 0, refused, nodes, workers, freezes, silences, names] = await Promise.all([
    store.serverTime(),
    store.registry.latestClock(),
    reason.refusedWrites(scope),
    store.registry.nodes(),
    store.registry.workers(),
    store.freezes.list(),
    // As of 0 none has expired, so none is deleted.
    store.alerts.silences(0),
    owner === undefined ? store.registry.queues() : store.tasks.queuesOf(owner),
  ]);
  const connected = await store.queues.workers(names);
  const readings = await Promise.all(names.map((name) => readQueue(scope, name, connected?.get(name), now)));
  // Nodes and workers cannot report while Redis refuses writes: they are not missing.
  const reporting = refused.length === 0;
  const works = reporting ? readings.flatMap((one) => one.works) : [];
  const gaps = [...(await scope.coverage.gaps(works)).values()];
  const views = nodes.map((node) => nodeView(node, now));
  const alive = views.filter((node) => node.alive);
  const ready = alive.filter((node) => node.ready);
  const working = workers.filter((worker) => isAlive(worker, now));
  const waits = await Promise.all(
    readings.map((one) => (reporting ? reason.jobsWait(scope, one, gaps, working, now) : [])),
  );
  const waiting = waits.flat().sort((a, b) => b.waitedMs - a.waitedMs);

  // In the order of severity.
  const stops: StatusReasonFacts[] = [
    ...refused,
    ...(names.every((name) => name === ALERTS_QUEUE) ? await reason.lostAll(scope, alive) : []),
    ...(reporting && alive.length === 0 ? [reason.noNode(views.map(({ beat }) => beat))] : []),
    ...(reporting && alive.length > 0 && ready.length === 0 ? [reason.notReady(alive)] : []),
    ...reason.clockWentBack(latest, now),
    ...readings.flatMap(({ queue }) => (reason.isPlanned(queue) ? [] : reason.pauseOf(queue))),
    ...reason.noWorkers(gaps, readings, workers),
    ...(owner === undefined ? await reason.lackedTypes(scope, working, gaps) : []),
    ...waiting.filter(({ code }) => code === "JOBS_NOT_TAKEN"),
    ...readings.flatMap((one) => reason.undelivered(one, gaps, now)),
    ...reason.heldReasons(readings.flatMap((one) => one.moving)),
  ];
  const notes = [
    ...reason.changedSettings(alive),
    ...reason.sameIds(alive),
    ...freezes.flatMap((freeze) => reason.freezeOf(freeze, owner, now)),
    ...silences.flatMap((silence) => reason.silenceOfAll(silence, now)),
    ...readings.flatMap(({ queue }) => (reason.isPlanned(queue) ? reason.pauseOf(queue) : [])),
    ...waiting.filter(({ code }) => code === "JOBS_LIMITED"),
    ...(await failingRuns(scope, names, now)),
    ...(names.includes(ALERTS_QUEUE) ? await failingDeliveries(scope, now) : []),
  ];
  const late = readings
    .filter(({ queue }) => queue.behind >= LATE)
    .sort((a, b) => b.queue.behind - a.queue.behind);
  const slow = [
    ...(await Promise.all(late.map(({ queue }) => reason.overdue(scope, queue, now)))),
    ...waiting.filter(({ code }) => code === "JOBS_WAIT"),
  ];
  const ofOwner = (one: StatusReasonFacts) => (owner === undefined ? one : { ...one, owner });
  return {
    state: stops.length > 0 ? "stopped" : slow.length > 0 ? "behind" : "on-time",
    behind: Math.max(
      0,
      late[0]?.queue.behind ?? 0,
      waiting.find(({ code }) => code !== "JOBS_LIMITED")?.waitedMs ?? 0,
    ),
    at: now,
    reasons: [...stops, ...slow].map(ofOwner),
    notes: notes.map(ofOwner),
    queues: readings.map(({ queue }) => queue),
    nodes: { alive: alive.length, ready: ready.length },
    workers: { alive: working.length },
  };
}
