import { ALERTS_QUEUE, type ErrorCode, type Freeze } from "@carillon/core";
import { frozenAt, frozenText } from "@carillon/core/internal";
import { isAlive, type WorkerInfo } from "../beats.js";
import { aboutPause, type QueuePause, type QueueState } from "../bull/queues.js";
import { redisError } from "../redis/connection.js";
import type { Store } from "../store.js";
import { nextOf } from "../task/next-of.js";
import { type Coverage, type Gap, gapText, type Work } from "./coverage.js";
import { nodeView } from "./node-view.js";

/** `stopped`: some work is not done until somebody acts. `behind`: an occurrence is due and no node has claimed it. */
export type StatusState = "on-time" | "behind" | "stopped";

/** Reasons why a namespace is not on time, most severe first; the codes of Redis errors come before all others. */
export type StatusCode =
  | Extract<ErrorCode, `REDIS_${string}`>
  | "NO_NODE"
  | "NODES_NOT_READY"
  | "FROZEN"
  | "QUEUE_PAUSED"
  | "NO_WORKER"
  | "ALERTS_UNDELIVERED"
  | "OVERDUE";

/** A reason why a namespace is not on time, or a note that somebody holds a part of it on purpose. */
export interface StatusReason {
  readonly code: StatusCode;
  readonly message: string;
  readonly remedy: string;
  readonly queue?: string;
  /** The task type that no worker handles. */
  readonly type?: string;
  /** The owner, if the client is bound to one. */
  readonly owner?: string;
  /** UTC ms; absent if it is not known. */
  readonly since?: number;
}

/** A queue, and how far its occurrences are behind. For a bound client: without the jobs of all owners. */
export interface QueueStatus extends Partial<Omit<QueueState, "paused">> {
  readonly name: string;
  /**
   * Workers take no jobs. Since when (UTC ms), by whom and why, as far as the pause recorded it: one by plain BullMQ
   * does not. Absent: it is not paused.
   */
  readonly paused?: QueuePause | undefined;
  /** BullMQ workers that are connected, plain ones included. Undefined: Redis does not say. */
  readonly workers: number | undefined;
  /** Age of the oldest due occurrence that no node has claimed, in ms; 0: none. */
  readonly behind: number;
}

/** Whether the work of a namespace is on time; if not, why. Times in UTC ms of Redis time. */
export interface Status {
  readonly state: StatusState;
  /** The largest `behind` of the queues, in ms. */
  readonly behind: number;
  /**
   * Due time of the oldest due occurrence that no node has claimed; absent if there is none, or it is less than a
   * second late.
   */
  readonly since?: number;
  /** The time of Redis; absent if Redis does not answer. */
  readonly at?: number;
  /** Most severe first; empty if the state is `on-time`. */
  readonly reasons: readonly StatusReason[];
  /**
   * Work that somebody holds on purpose: freezes (`FROZEN`), and pauses of queues that recorded their time
   * (`QUEUE_PAUSED`). They do not change the state.
   */
  readonly notes: readonly StatusReason[];
  readonly queues: readonly QueueStatus[];
  /** Scheduler nodes: those that are alive, and those of them that claim. */
  readonly nodes: { readonly alive: number; readonly ready: number };
  /** Worker processes that are alive. Plain BullMQ workers are counted by `queues` alone. */
  readonly workers: { readonly alive: number };
}

/** From this many ms on an occurrence is late. */
const LATE = 1_000;
/** Longest wait of an alert for its delivery, in ms. */
const ALERT_PATIENCE = 60_000;
/** Waiting runs, and due tasks, of a queue that are read for their types. */
const SAMPLE = 50;

/** Scope of a status: a whole namespace, or one owner. */
export interface StatusScope {
  readonly store: Store;
  readonly coverage: Coverage;
  readonly owner?: string | undefined;
}

/** Whether the work of a namespace is on time; never throws because of Redis. */
export async function status(scope: StatusScope): Promise<Status> {
  try {
    return await readStatus(scope);
  } catch (error) {
    const none = { behind: 0, queues: [], nodes: { alive: 0, ready: 0 }, workers: { alive: 0 } };
    return { state: "stopped", ...none, reasons: [redisReason(error)], notes: [] };
  }
}

async function readStatus(scope: StatusScope): Promise<Status> {
  const { store, owner } = scope;
  const [now, refused, nodes, workers, freezes, names] = await Promise.all([
    store.serverTime(),
    refusedWrites(scope),
    store.registry.nodes(),
    store.registry.workers(),
    store.freezes.list(),
    owner === undefined ? store.registry.queues() : store.tasks.queuesOf(owner),
  ]);
  const connected = await store.queues.workers(names);
  const read = await Promise.all(names.map((name) => readQueue(scope, name, connected?.get(name), now)));
  // Nodes and workers cannot report while Redis refuses writes: they are not missing.
  const heard = refused.length === 0;
  const works = heard ? read.flatMap((one) => one.works) : [];
  const gaps = [...(await scope.coverage.gaps(works)).values()];
  const views = nodes.map((node) => nodeView(node, now));
  const alive = views.filter((node) => node.alive);
  const ready = alive.filter((node) => node.ready);
  const working = workers.filter((worker) => isAlive(worker, now));

  // In the order of severity.
  const stops = [
    ...refused,
    ...(heard && alive.length === 0 ? [noNode(views.map(({ beat }) => beat))] : []),
    ...(heard && alive.length > 0 && ready.length === 0 ? [notReady(alive.map(({ why = "" }) => why))] : []),
    ...read.flatMap(({ queue }) => (isPlanned(queue) ? [] : pauseOf(queue))),
    ...noWorkers(gaps, read, workers),
    ...(owner === undefined ? lackedTypes(working, gaps) : []),
    ...read.flatMap((one) => undelivered(one, gaps, now)),
  ];
  const notes = [
    ...freezes.flatMap((freeze) => freezeOf(freeze, owner, now)),
    ...read.flatMap(({ queue }) => (isPlanned(queue) ? pauseOf(queue) : [])),
  ];
  const late = read
    .filter(({ queue }) => queue.behind >= LATE)
    .sort((a, b) => b.queue.behind - a.queue.behind);
  const ofOwner = (reason: StatusReason) => (owner === undefined ? reason : { ...reason, owner });
  const reasons = [...stops, ...late.map(({ queue }) => overdue(queue, now))];
  const behind = late[0]?.queue.behind ?? 0;
  return {
    state: stops.length > 0 ? "stopped" : late.length > 0 ? "behind" : "on-time",
    behind,
    ...(behind > 0 && { since: now - behind }),
    at: now,
    reasons: reasons.map(ofOwner),
    notes: notes.map(ofOwner),
    queues: read.map(({ queue }) => queue),
    nodes: { alive: alive.length, ready: ready.length },
    workers: { alive: working.length },
  };
}

interface QueueReading {
  readonly queue: QueueStatus;
  /** Time since which jobs wait in it, UTC ms; undefined: none does. For a bound client, jobs of its owner. */
  readonly since: number | undefined;
  /** The types of its waiting runs and due tasks. */
  readonly works: readonly Work[];
}

async function readQueue(
  { store, owner }: StatusScope,
  name: string,
  workers: number | undefined,
  now: number,
): Promise<QueueReading> {
  const [state, earliest = now] = await Promise.all([
    store.queues.state(name),
    store.claims.earliestDue(name),
  ]);
  const [ids, held] = await Promise.all([
    state?.waiting ? store.queues.waiting(name, SAMPLE) : [],
    // BullMQ's workers give back the jobs of a dead one: without any, its runs go on for ever.
    workers === 0 && state?.active ? store.queues.held(name, SAMPLE) : [],
  ]);
  const [runs, tasks] = await Promise.all([
    store.runs.many(name, [...ids, ...held]),
    earliest < now ? store.tasks.listDue({ queue: name, owner }, SAMPLE).then((page) => page.tasks) : [],
  ]);
  const ours = runs.filter(({ task }) => owner === undefined || task.owner === owner);
  const dues = tasks.flatMap((task) => {
    const { due = now } = nextOf(task) ?? {};
    return due < now ? [{ due, type: task.definition.type }] : [];
  });
  const due = owner === undefined ? earliest : Math.min(now, ...dues.map((one) => one.due));
  const { paused, ...jobs } = state ?? ({} as Partial<QueueState>);
  return {
    queue: {
      name,
      behind: Math.max(0, now - due),
      ...(paused && { paused }),
      workers,
      ...(owner === undefined && jobs),
    },
    since: waitsSince(
      owner === undefined
        ? [now - (jobs.oldestWaitingMs ?? Number.NaN)]
        : ours.map(({ enqueued }) => enqueued),
    ),
    works: [...new Set([...ours, ...dues].map(({ type }) => type))].map((type) => ({ queue: name, type })),
  };
}

function waitsSince(times: readonly number[]): number | undefined {
  const known = times.filter(Number.isFinite);
  return known.length > 0 ? Math.min(...known) : undefined;
}

function newest(times: readonly number[]): number | undefined {
  return times.length > 0 ? Math.max(...times) : undefined;
}

/**
 * Reason why Redis refuses writes, if it does. For a user that may only read, the ACL refuses them anyway; the nodes report it
 * then.
 */
async function refusedWrites({ store }: StatusScope): Promise<StatusReason[]> {
  try {
    await store.registry.assertWritable();
    return [];
  } catch (error) {
    const { code } = redisError(error);
    return code === "REDIS_AUTH" ? [] : [redisReason(error)];
  }
}

function redisReason(error: unknown): StatusReason {
  const { code, message, remedy } = redisError(error);
  // The message of an error ends with its remedy.
  const what = remedy === undefined ? message : message.replace(` ${remedy}`, "");
  return { code: code as StatusCode, message: what, remedy: remedy ?? "See the log of Redis." };
}

/** @param beats the last one of each dead node */
function noNode(beats: readonly number[]): StatusReason {
  const since = newest(beats);
  return {
    code: "NO_NODE",
    message: "no scheduler node is alive.",
    remedy: "Start one: nothing is lost that the catch-up policies keep.",
    ...(since !== undefined && { since }),
  };
}

function notReady(why: readonly string[]): StatusReason {
  const reasons = [...new Set(why.filter(Boolean))].map((one) => one.replace(/\.$/, ""));
  const nodes = why.length === 1 ? "the node is not ready" : `none of the ${why.length} nodes is ready`;
  return {
    code: "NODES_NOT_READY",
    message: reasons.length > 0 ? `${nodes}: ${reasons.join("; ")}.` : `${nodes}.`,
    remedy: "See carillon nodes, and /ready and the log of each node.",
  };
}

/** A freeze that holds now, and may concern the client. */
function freezeOf(freeze: Freeze, owner: string | undefined, now: number): StatusReason[] {
  const { id, queue, tag, created } = freeze;
  const frozen = frozenAt([freeze], now);
  if (!frozen || (owner !== undefined && (freeze.owner ?? owner) !== owner)) return [];
  const scope = Object.entries({ owner: freeze.owner, tag, queue }).flatMap(([part, name]) =>
    name === undefined ? [] : [`${part} ${name}`],
  );
  return [
    {
      code: "FROZEN",
      message: `${scope.join(", ") || "all tasks"}: ${frozenText(frozen)}.`,
      remedy: `To lift it now: carillon unfreeze ${id}`,
      ...(freeze.owner !== undefined && { owner: freeze.owner }),
      ...(queue !== undefined && { queue }),
      ...(freeze.schedule === undefined && { since: Math.max(created, freeze.from) }),
    },
  ];
}

/** A pause that recorded its time was made by a person. Without alerts nobody would learn of anything. */
function isPlanned({ name, paused }: QueueStatus): boolean {
  return paused?.at !== undefined && name !== ALERTS_QUEUE;
}

function pauseOf({ name, paused }: QueueStatus): StatusReason[] {
  if (!paused) return [];
  const reason: StatusReason = {
    code: "QUEUE_PAUSED",
    message: `the queue ${name} is paused${aboutPause(paused)}.`,
    remedy: `Resume it: carillon queue resume ${name}`,
    queue: name,
  };
  return [paused.at === undefined ? reason : { ...reason, since: paused.at }];
}

/** One reason for a queue without workers, and one for each type that the workers of a queue do not have. */
function noWorkers(
  gaps: readonly Gap[],
  read: readonly QueueReading[],
  known: readonly WorkerInfo[],
): StatusReason[] {
  const told = new Set<string>();
  return gaps.flatMap((gap): StatusReason[] => {
    const { queue, type, workers } = gap;
    // Alerts have a reason of their own.
    if (queue === ALERTS_QUEUE || told.has(queue)) return [];
    if (workers === 0) told.add(queue);
    const beats = known.flatMap((worker) => (worker.queues.includes(queue) ? [worker.beat] : []));
    const since = read.find((one) => one.queue.name === queue)?.since ?? newest(beats);
    const remedy =
      workers === 0
        ? `Start a worker of the queue ${queue}.`
        : `Give the type ${type} to all workers of the queue ${queue}.`;
    const reason = { code: "NO_WORKER", message: `${gapText(gap)}.`, remedy, queue } as const;
    return [{ ...reason, ...(workers > 0 ? { type } : since !== undefined && { since }) }];
  });
}

/** Types that some workers of a queue do not have: those fail their runs. One reason for each type of a queue. */
function lackedTypes(alive: readonly WorkerInfo[], gaps: readonly Gap[]): StatusReason[] {
  const reasons = alive.flatMap(({ id, lacking = [] }) =>
    lacking.map(({ queue, type, since }): [string, StatusReason] => [
      `${queue} ${type}`,
      {
        code: "NO_WORKER",
        message: `the worker ${id} fails the runs of type ${type} that it takes from the queue ${queue}: it does not have the type.`,
        remedy: `Give the type ${type} to all workers of the queue ${queue}, or stop those that lack it.`,
        ...{ queue, type, since },
      },
    ]),
  );
  const told = new Set(gaps.map(({ queue, type }) => `${queue} ${type}`));
  return [...new Map(reasons)].flatMap(([name, reason]) => (told.has(name) ? [] : [reason]));
}

function undelivered({ queue, since }: QueueReading, gaps: readonly Gap[], now: number): StatusReason[] {
  if (queue.name !== ALERTS_QUEUE || since === undefined) return [];
  const gap = gaps.find((one) => one.queue === ALERTS_QUEUE);
  if (gap === undefined && now - since < ALERT_PATIENCE) return [];
  return [
    {
      code: "ALERTS_UNDELIVERED",
      message: gap ? `alerts wait for their delivery: ${gapText(gap)}.` : "alerts wait for their delivery.",
      remedy: "Start a worker with alertWebhook or alertEmail; see its log if one runs.",
      queue: ALERTS_QUEUE,
      since,
    },
  ];
}

function overdue({ name, behind }: QueueStatus, now: number): StatusReason {
  return {
    code: "OVERDUE",
    message: `the queue ${name} has occurrences that are due and that no node has claimed.`,
    remedy: `While a backlog is drained, this shrinks by itself. If it grows: carillon list --overdue --queue ${name}, carillon doctor, and the logs of the nodes.`,
    queue: name,
    since: now - behind,
  };
}
