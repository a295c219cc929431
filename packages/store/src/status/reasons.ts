import { ALERTS_QUEUE, type Freeze, type Run, type Silence } from "@carillon/core";
import {
  defined,
  frozenAt,
  type Gap,
  grouped,
  localName,
  type StatusReasonFacts,
  type WaitingJobs,
} from "@carillon/core/internal";
import type { NodeInfo, WorkerInfo } from "../beats.js";
import { redisError } from "../redis/connection.js";
import { usualMsOf } from "../run/codec.js";
import type { NodeView } from "./node-view.js";
import {
  type Held,
  LATE,
  type QueueReading,
  type QueueStatus,
  SAMPLE,
  type StatusScope,
  waitsSince,
} from "./queue-reading.js";

/** Smallest step back of the clock of Redis that is reported, in ms: nodes estimate its time. */
const STEP = 5_000;
/** Longest wait of an alert for its delivery, and of a run for a worker, in ms. */
const PATIENCE = 60_000;
/** Longest time without a start while workers hold no job of the queue, in ms: they are idle, and take it at once. */
const IDLE_PATIENCE = 15_000;

/** Both places of one move make one reason. */
export function heldReasons(held: readonly Held[]): StatusReasonFacts[] {
  const reasons = held.map(({ name, mark, since }): [string, StatusReasonFacts] => {
    const [direction, other = ""] = mark.split(" ");
    const [from, to] = direction === "to" ? [name.queue, other] : [other, name.queue];
    const task = localName(name);
    return [`${task} ${from} ${to}`, { code: "TASK_HELD", queue: name.queue, held: task, from, to, since }];
  });
  return [...new Map(reasons).values()];
}

/**
 * Runs of a queue that wait too long for a worker: because its workers are busy, although they are not, or because a
 * limit of BullMQ's holds them. Not if the queue is paused, or has another reason.
 */
export async function jobsWait(
  { store, owner }: StatusScope,
  { queue: { name, workers }, state, enqueued = Number.POSITIVE_INFINITY }: QueueReading,
  gaps: readonly Gap[],
  working: readonly WorkerInfo[],
  now: number,
): Promise<({ code: "JOBS_WAIT" | "JOBS_NOT_TAKEN" | "JOBS_LIMITED"; since: number } & WaitingJobs)[]> {
  const waitedMs = now - enqueued;
  if (!state || state.paused || waitedMs < IDLE_PATIENCE || name === ALERTS_QUEUE) return [];
  if (gaps.some((gap) => gap.queue === name && gap.workers === 0)) return [];
  const taking = working.filter(({ queues, stopping }) => !stopping && queues.includes(name)).length;
  const connected = Math.max(taking, workers ?? 0);
  const ended = { from: now - IDLE_PATIENCE, to: now };
  const limit = state.limit?.holds && state.limit;
  const idle =
    !limit && state.active === 0 && connected > 0 && (await store.runs.countEnded(name, ended)) === 0;
  if (!idle && waitedMs < PATIENCE) return [];
  const held = idle ? [] : await store.runs.many(name, await store.queues.held(name, SAMPLE));
  const started = waitsSince(held.flatMap((run) => run.started ?? []));
  const limited = limit && !(await someHang({ store }, held, now));
  const counts = { jobs: state.waiting, workers: connected, active: state.active };
  return [
    {
      code: idle ? "JOBS_NOT_TAKEN" : limited ? "JOBS_LIMITED" : "JOBS_WAIT",
      queue: name,
      since: enqueued,
      waitedMs,
      ...(limit && { limit }),
      // A bound client does not learn how much others run.
      ...(owner === undefined && counts),
      ...(owner === undefined && started !== undefined && { longestMs: Math.max(0, now - started) }),
    },
  ];
}

/** Whether a run takes more than twice its usual time, or more than a minute if that is not known. */
async function someHang(
  { store }: Pick<StatusScope, "store">,
  held: readonly Run[],
  now: number,
): Promise<boolean> {
  const long = held.filter(({ started = now }) => now - started > LATE);
  const stats = await store.runs.manyStats(long.map(({ task }) => task));
  return long.some(({ started = now }, i) => {
    const usualMs = usualMsOf(stats[i]?.stored ?? {});
    return now - started > (usualMs === undefined ? PATIENCE : 2 * usualMs);
  });
}

/**
 * Reason why Redis refuses writes, if it does. For a user that may only read, the ACL refuses them anyway; the nodes report it
 * then.
 */
export async function refusedWrites({ store }: StatusScope): Promise<StatusReasonFacts[]> {
  try {
    await store.registry.assertWritable();
    return [];
  } catch (error) {
    const { code } = redisError(error);
    return code === "REDIS_AUTH" ? [] : [redisReason(error)];
  }
}

export function redisReason(error: unknown): StatusReasonFacts {
  const { code, message, remedy: hint } = redisError(error);
  // The message of an error ends with its remedy.
  const text = hint === undefined ? message : message.replace(` ${hint}`, "");
  return { code: code as "REDIS_UNAVAILABLE", text, hint };
}

/** The reason of an empty namespace, if live nodes saw that Redis lost its data: only they know that there was something. */
export async function lostAll(
  { store }: StatusScope,
  alive: readonly NodeInfo[],
): Promise<StatusReasonFacts[]> {
  const times = alive.flatMap(({ lost }) => lost?.at ?? []);
  if (times.length === 0) return [];
  // Nodes themselves register the queue of alerts.
  const queues = (await store.registry.queues()).filter((queue) => queue !== ALERTS_QUEUE);
  return queues.length === 0 ? [{ code: "EMPTY", since: Math.min(...times) }] : [];
}

/** @param latest the latest time of Redis that a node saw */
export function clockWentBack(latest: number, now: number): StatusReasonFacts[] {
  const backMs = latest - now;
  return backMs > STEP ? [{ code: "CLOCK_WENT_BACK", until: latest, backMs }] : [];
}

/** @param beats the last one of each dead node */
export function noNode(beats: readonly number[]): StatusReasonFacts {
  const since = newest(beats);
  return { code: "NO_NODE", ...(since !== undefined && { since }) };
}

export function notReady(alive: readonly NodeView[]): StatusReasonFacts {
  return { code: "NODES_NOT_READY", nodes: alive.map(({ why, silentMs }) => ({ why, silentMs })) };
}

/** Each setting once, since the first node saw it. */
export function changedSettings(alive: readonly NodeInfo[]): StatusReasonFacts[] {
  const all = alive.flatMap(({ unsafe = [] }) => unsafe).sort((a, b) => b.since - a.since);
  return [...new Map(all.map((one) => [one.code, one])).values()];
}

/** Ids that several nodes have. */
export function sameIds(alive: readonly NodeInfo[]): StatusReasonFacts[] {
  return [...grouped(alive, ({ id }) => id)].flatMap(([id, all]) =>
    all.length < 2
      ? []
      : [{ code: "SAME_NODE_ID", node: id, processes: all.map(({ host, pid }) => ({ host, pid })) }],
  );
}

export function silenceOfAll(
  { all, id, by, note, until, created: since }: Silence,
  now: number,
): StatusReasonFacts[] {
  if (!all || until <= now) return [];
  return [{ code: "SILENCED", silence: defined({ id, by, note }), until, since }];
}

/** A freeze that holds now, and may concern the client. */
export function freezeOf(freeze: Freeze, owner: string | undefined, now: number): StatusReasonFacts[] {
  const { queue, tag, created, tasks = [] } = freeze;
  const whose = freeze.owner ?? tasks[0]?.owner;
  const frozen = frozenAt([freeze], now);
  if (!frozen || (owner !== undefined && (whose ?? owner) !== owner)) return [];
  return [
    {
      code: "FROZEN",
      frozen,
      scope: { owner: freeze.owner, tag, queue, tasks: freeze.tasks },
      ...defined({ owner: whose, queue }),
      ...(freeze.schedule === undefined && { since: Math.max(created, freeze.from) }),
    },
  ];
}

/** A pause that recorded its time was made by a person. Without alerts nobody would learn of anything. */
export function isPlanned({ name, paused }: QueueStatus): boolean {
  return paused?.at !== undefined && name !== ALERTS_QUEUE;
}

export function pauseOf({ name, paused }: QueueStatus): StatusReasonFacts[] {
  if (!paused) return [];
  const { at: since } = paused;
  return [{ code: "QUEUE_PAUSED", queue: name, pause: paused, ...(since !== undefined && { since }) }];
}

/** One reason for a queue without workers, and one for each type that the workers of a queue do not have. */
export function noWorkers(
  gaps: readonly Gap[],
  readings: readonly QueueReading[],
  known: readonly WorkerInfo[],
): StatusReasonFacts[] {
  const reported = new Set<string>();
  return gaps.flatMap((gap): StatusReasonFacts[] => {
    const { queue, type, workers } = gap;
    // Alerts have a reason of their own.
    if (queue === ALERTS_QUEUE || reported.has(queue)) return [];
    if (workers > 0) return [{ code: "NO_WORKER", gap, queue, type }];
    reported.add(queue);
    const beats = known.flatMap((worker) => (worker.queues.includes(queue) ? [worker.beat] : []));
    const since = readings.find((one) => one.queue.name === queue)?.since ?? newest(beats);
    return [{ code: "NO_WORKER", gap, queue, ...(since !== undefined && { since }) }];
  });
}

/** Types that some workers of a queue do not have: those fail their runs. One reason for each type of a queue. */
export async function lackedTypes(
  { store }: StatusScope,
  alive: readonly WorkerInfo[],
  gaps: readonly Gap[],
): Promise<StatusReasonFacts[]> {
  const reasons = alive.flatMap(({ id: worker, lacking = [] }) =>
    lacking.map(({ queue, type, since }): [string, StatusReasonFacts] => [
      `${queue} ${type}`,
      { code: "NO_WORKER", worker, queue, type, since },
    ]),
  );
  const reported = new Set(gaps.map(({ queue, type }) => `${queue} ${type}`));
  const others = [...new Map(reasons)].flatMap(([name, reason]) => (reported.has(name) ? [] : [reason]));
  // A worker reports a type for ten minutes. Without a task that has it, nothing fails any more.
  const still = await Promise.all(
    others.map(({ queue = "", type = "" }) => store.tasks.hasType({ queue, type })),
  );
  return others.filter((_, i) => still[i]);
}

export function undelivered(
  { queue, since }: QueueReading,
  gaps: readonly Gap[],
  now: number,
): StatusReasonFacts[] {
  if (queue.name !== ALERTS_QUEUE || since === undefined) return [];
  const gap = gaps.find((one) => one.queue === ALERTS_QUEUE);
  if (gap === undefined && now - since < PATIENCE) return [];
  return [{ code: "ALERTS_UNDELIVERED", gap, queue: ALERTS_QUEUE, since }];
}

export async function overdue(
  { store, owner }: StatusScope,
  { name, behind }: QueueStatus,
  now: number,
): Promise<StatusReasonFacts> {
  // A bound client does not learn how much of others is due.
  const most = owner === undefined ? await store.claims.dueOwner(name, now) : undefined;
  return { code: "OVERDUE", queue: name, since: now - behind, ...(most && { most }) };
}

function newest(times: readonly number[]): number | undefined {
  return times.length > 0 ? Math.max(...times) : undefined;
}
