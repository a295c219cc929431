import { ALERTS_QUEUE, type Freeze, type Run, type Silence, type TaskName } from "@carillon/core";
import {
  frozenAt,
  type Gap,
  grouped,
  localName,
  parseLocalName,
  type StatusReasonFacts,
  type WaitingJobs,
  type Work,
} from "@carillon/core/internal";
import { isAlive, type NodeInfo, type WorkerInfo } from "../beats.js";
import type { QueuePause, QueueState } from "../bull/queues.js";
import { redisError } from "../redis/connection.js";
import { usualMsOf } from "../run/codec.js";
import type { Store } from "../store.js";
import { nextOf } from "../task/next-of.js";
import type { Coverage } from "./coverage.js";
import { failingDeliveries } from "./failing-deliveries.js";
import { type NodeView, nodeView } from "./node-view.js";

/**
 * `stopped`: some work is not done until somebody acts. `behind`: an occurrence is due and no node has claimed it, or
 * its run has waited for a worker for a minute.
 */
export type StatusState = "on-time" | "behind" | "stopped";

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
   * BullMQ's holds (`JOBS_LIMITED`), and receivers that do not take their alerts (`ALERTS_FAIL`).
   */
  readonly notes: readonly StatusReasonFacts[];
  readonly queues: readonly QueueStatus[];
  /** Scheduler nodes: those that are alive, and those of them that claim. */
  readonly nodes: { readonly alive: number; readonly ready: number };
  /** Worker processes that are alive. Plain BullMQ workers are counted by `queues` alone. */
  readonly workers: { readonly alive: number };
}

/** From this many ms on an occurrence is late. */
const LATE = 1_000;
/** Smallest step back of the clock of Redis that is reported, in ms: nodes estimate its time. */
const STEP = 5_000;
/** Longest wait of an alert for its delivery, and of a run for a worker, in ms. */
const PATIENCE = 60_000;
/** Longest time without a start while workers hold no job of the queue, in ms: they are idle, and take it at once. */
const IDLE_PATIENCE = 15_000;
/** Waiting runs, and due tasks, of a queue that are read for their types. */
const SAMPLE = 50;

/** From this many ms on a task that a move holds is told: the move was interrupted, or waits for runs. */
const HELD_PATIENCE = 60_000;
/** Tasks of a queue that are named for being held. */
const HELD_NAMED = 5;

/** Scope of a status: a whole namespace, or one owner. */
export interface StatusScope {
  readonly store: Store;
  readonly coverage: Coverage;
  readonly owner?: string | undefined;
}

/** Whether the work of a namespace is on time; never throws because of Redis. */
export async function readStatus(scope: StatusScope): Promise<StatusFacts> {
  try {
    return await read(scope);
  } catch (error) {
    const none = { behind: 0, queues: [], nodes: { alive: 0, ready: 0 }, workers: { alive: 0 } };
    return { state: "stopped", ...none, reasons: [redisReason(error)], notes: [] };
  }
}

async function read(scope: StatusScope): Promise<StatusFacts> {
  const { store, owner } = scope;
  const [now, latest = 0, refused, nodes, workers, freezes, silences, names] = await Promise.all([
    store.serverTime(),
    store.registry.latestClock(),
    refusedWrites(scope),
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
  const heard = refused.length === 0;
  const works = heard ? readings.flatMap((one) => one.works) : [];
  const gaps = [...(await scope.coverage.gaps(works)).values()];
  const views = nodes.map((node) => nodeView(node, now));
  const alive = views.filter((node) => node.alive);
  const ready = alive.filter((node) => node.ready);
  const working = workers.filter((worker) => isAlive(worker, now));
  const waits = await Promise.all(
    readings.map((one) => (heard ? jobsWait(scope, one, gaps, working, now) : [])),
  );
  const waiting = waits.flat().sort((a, b) => b.waitedMs - a.waitedMs);

  // In the order of severity.
  const stops: StatusReasonFacts[] = [
    ...refused,
    ...(names.every((name) => name === ALERTS_QUEUE) ? await lostAll(scope, alive) : []),
    ...(heard && alive.length === 0 ? [noNode(views.map(({ beat }) => beat))] : []),
    ...(heard && alive.length > 0 && ready.length === 0 ? [notReady(alive)] : []),
    ...clockWentBack(latest, now),
    ...readings.flatMap(({ queue }) => (isPlanned(queue) ? [] : pauseOf(queue))),
    ...noWorkers(gaps, readings, workers),
    ...(owner === undefined ? await lackedTypes(scope, working, gaps) : []),
    ...waiting.filter(({ code }) => code === "JOBS_NOT_TAKEN"),
    ...readings.flatMap((one) => undelivered(one, gaps, now)),
    ...heldReasons(readings.flatMap((one) => one.moving)),
  ];
  const notes = [
    ...changedSettings(alive),
    ...sameIds(alive),
    ...freezes.flatMap((freeze) => freezeOf(freeze, owner, now)),
    ...silences.flatMap((silence) => silenceOfAll(silence, now)),
    ...readings.flatMap(({ queue }) => (isPlanned(queue) ? pauseOf(queue) : [])),
    ...waiting.filter(({ code }) => code === "JOBS_LIMITED"),
    ...(names.includes(ALERTS_QUEUE) ? await failingDeliveries(scope, now) : []),
  ];
  const late = readings
    .filter(({ queue }) => queue.behind >= LATE)
    .sort((a, b) => b.queue.behind - a.queue.behind);
  const slow = [
    ...(await Promise.all(late.map(({ queue }) => overdue(scope, queue, now)))),
    ...waiting.filter(({ code }) => code === "JOBS_WAIT"),
  ];
  const ofOwner = (reason: StatusReasonFacts) => (owner === undefined ? reason : { ...reason, owner });
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

interface QueueReading {
  readonly queue: QueueStatus;
  /** Undefined: its keys hold foreign data. */
  readonly state: QueueState | undefined;
  /** Time since which jobs wait in it, UTC ms; undefined: none does. For a bound client, jobs of its owner. */
  readonly since: number | undefined;
  /** When the oldest run that waits for its first attempt was enqueued, UTC ms. */
  readonly enqueued: number | undefined;
  /** The types of its waiting runs and due tasks. */
  readonly works: readonly Work[];
  readonly moving: readonly Held[];
}

/** A task that a move holds. */
interface Held {
  readonly name: TaskName;
  readonly mark: string;
  readonly since: number;
}

async function heldByMoves(
  { store, owner }: Pick<StatusScope, "store" | "owner">,
  queue: string,
  now: number,
): Promise<Held[]> {
  const held = await store.moves.held(queue, now - HELD_PATIENCE, HELD_NAMED);
  const all = await Promise.all(
    held.map(async ({ local, since }): Promise<Held[]> => {
      const name = { queue, ...parseLocalName(local) };
      if (owner !== undefined && name.owner !== owner) return [];
      const task = await store.tasks.get(name).catch(() => undefined);
      return task?.moving === undefined ? [] : [{ name, mark: task.moving, since }];
    }),
  );
  return all.flat();
}

/** Both places of one move make one reason. */
function heldReasons(held: readonly Held[]): StatusReasonFacts[] {
  const reasons = held.map(({ name, mark, since }): [string, StatusReasonFacts] => {
    const [direction, other = ""] = mark.split(" ");
    const [from, to] = direction === "to" ? [name.queue, other] : [other, name.queue];
    const task = localName(name);
    return [`${task} ${from} ${to}`, { code: "TASK_HELD", queue: name.queue, held: task, from, to, since }];
  });
  return [...new Map(reasons).values()];
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
  const [moving, ids, held] = await Promise.all([
    heldByMoves({ store, owner }, name, now),
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
    state,
    enqueued: waitsSince(
      ours.flatMap((run) => (run.state === "queued" && run.started === undefined ? [run.enqueued] : [])),
    ),
    since: waitsSince(
      owner === undefined
        ? [now - (jobs.oldestWaitingMs ?? Number.NaN)]
        : ours.map(({ enqueued }) => enqueued),
    ),
    moving,
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
 * Runs of a queue that wait too long for a worker: because its workers are busy, although they are not, or because a
 * limit of BullMQ's holds them. Not if the queue is paused, or has another reason.
 */
async function jobsWait(
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
async function refusedWrites({ store }: StatusScope): Promise<StatusReasonFacts[]> {
  try {
    await store.registry.assertWritable();
    return [];
  } catch (error) {
    const { code } = redisError(error);
    return code === "REDIS_AUTH" ? [] : [redisReason(error)];
  }
}

function redisReason(error: unknown): StatusReasonFacts {
  const { code, message, remedy: hint } = redisError(error);
  // The message of an error ends with its remedy.
  const text = hint === undefined ? message : message.replace(` ${hint}`, "");
  return { code: code as "REDIS_UNAVAILABLE", text, hint };
}

/** Only nodes know that there was something. */
async function lostAll({ store }: StatusScope, alive: readonly NodeInfo[]): Promise<StatusReasonFacts[]> {
  const times = alive.flatMap(({ lost }) => lost?.at ?? []);
  if (times.length === 0) return [];
  // Nodes themselves register the queue of alerts.
  const queues = (await store.registry.queues()).filter((queue) => queue !== ALERTS_QUEUE);
  return queues.length === 0 ? [{ code: "EMPTY", since: Math.min(...times) }] : [];
}

/** @param latest the latest time of Redis that a node saw */
function clockWentBack(latest: number, now: number): StatusReasonFacts[] {
  const backMs = latest - now;
  return backMs > STEP ? [{ code: "CLOCK_WENT_BACK", until: latest, backMs }] : [];
}

/** @param beats the last one of each dead node */
function noNode(beats: readonly number[]): StatusReasonFacts {
  const since = newest(beats);
  return { code: "NO_NODE", ...(since !== undefined && { since }) };
}

function notReady(alive: readonly NodeView[]): StatusReasonFacts {
  return { code: "NODES_NOT_READY", nodes: alive.map(({ why, silentMs }) => ({ why, silentMs })) };
}

/** Each setting once, since the first node saw it. */
function changedSettings(alive: readonly NodeInfo[]): StatusReasonFacts[] {
  const all = alive.flatMap(({ unsafe = [] }) => unsafe).sort((a, b) => b.since - a.since);
  return [...new Map(all.map((one) => [one.code, one])).values()];
}

/** Ids that several nodes have. */
function sameIds(alive: readonly NodeInfo[]): StatusReasonFacts[] {
  return [...grouped(alive, ({ id }) => id)].flatMap(([id, all]) =>
    all.length < 2
      ? []
      : [{ code: "SAME_NODE_ID", node: id, processes: all.map(({ host, pid }) => ({ host, pid })) }],
  );
}

function silenceOfAll(
  { all, id, by, note, until, created: since }: Silence,
  now: number,
): StatusReasonFacts[] {
  if (!all || until <= now) return [];
  const silence = { id, ...(by !== undefined && { by }), ...(note !== undefined && { note }) };
  return [{ code: "SILENCED", silence, until, since }];
}

/** A freeze that holds now, and may concern the client. */
function freezeOf(freeze: Freeze, owner: string | undefined, now: number): StatusReasonFacts[] {
  const { queue, tag, created, tasks = [] } = freeze;
  const whose = freeze.owner ?? tasks[0]?.owner;
  const frozen = frozenAt([freeze], now);
  if (!frozen || (owner !== undefined && (whose ?? owner) !== owner)) return [];
  return [
    {
      code: "FROZEN",
      frozen,
      scope: { owner: freeze.owner, tag, queue, tasks: freeze.tasks },
      ...(whose !== undefined && { owner: whose }),
      ...(queue !== undefined && { queue }),
      ...(freeze.schedule === undefined && { since: Math.max(created, freeze.from) }),
    },
  ];
}

/** A pause that recorded its time was made by a person. Without alerts nobody would learn of anything. */
function isPlanned({ name, paused }: QueueStatus): boolean {
  return paused?.at !== undefined && name !== ALERTS_QUEUE;
}

function pauseOf({ name, paused }: QueueStatus): StatusReasonFacts[] {
  if (!paused) return [];
  const { at: since } = paused;
  return [{ code: "QUEUE_PAUSED", queue: name, pause: paused, ...(since !== undefined && { since }) }];
}

/** One reason for a queue without workers, and one for each type that the workers of a queue do not have. */
function noWorkers(
  gaps: readonly Gap[],
  readings: readonly QueueReading[],
  known: readonly WorkerInfo[],
): StatusReasonFacts[] {
  const told = new Set<string>();
  return gaps.flatMap((gap): StatusReasonFacts[] => {
    const { queue, type, workers } = gap;
    // Alerts have a reason of their own.
    if (queue === ALERTS_QUEUE || told.has(queue)) return [];
    if (workers > 0) return [{ code: "NO_WORKER", gap, queue, type }];
    told.add(queue);
    const beats = known.flatMap((worker) => (worker.queues.includes(queue) ? [worker.beat] : []));
    const since = readings.find((one) => one.queue.name === queue)?.since ?? newest(beats);
    return [{ code: "NO_WORKER", gap, queue, ...(since !== undefined && { since }) }];
  });
}

/** Types that some workers of a queue do not have: those fail their runs. One reason for each type of a queue. */
async function lackedTypes(
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
  const told = new Set(gaps.map(({ queue, type }) => `${queue} ${type}`));
  const untold = [...new Map(reasons)].flatMap(([name, reason]) => (told.has(name) ? [] : [reason]));
  // A worker reports a type for ten minutes. Without a task that has it, nothing fails any more.
  const still = await Promise.all(
    untold.map(({ queue = "", type = "" }) => store.tasks.hasType({ queue, type })),
  );
  return untold.filter((_, i) => still[i]);
}

function undelivered({ queue, since }: QueueReading, gaps: readonly Gap[], now: number): StatusReasonFacts[] {
  if (queue.name !== ALERTS_QUEUE || since === undefined) return [];
  const gap = gaps.find((one) => one.queue === ALERTS_QUEUE);
  if (gap === undefined && now - since < PATIENCE) return [];
  return [{ code: "ALERTS_UNDELIVERED", gap, queue: ALERTS_QUEUE, since }];
}

async function overdue(
  { store, owner }: StatusScope,
  { name, behind }: QueueStatus,
  now: number,
): Promise<StatusReasonFacts> {
  // A bound client does not learn how much of others is due.
  const most = owner === undefined ? await store.claims.dueOwner(name, now) : undefined;
  return { code: "OVERDUE", queue: name, since: now - behind, ...(most && { most }) };
}
