import { SHARDS } from "@carillon/core/internal";
import { FACTS } from "./script/facts.js";

/**
 * Every Redis key name of Carillon. No other place builds one.
 *
 * All keys of one queue share the hash tag `{namespace:queue}`, which is also that queue's BullMQ prefix: the claim
 * touches the task and BullMQ's keys in one script, so one cluster slot must hold both. Ours go on with `:~`, which
 * no queue name can contain, so they never meet BullMQ's `{namespace:queue}:queue:…`.
 */
export interface QueueKeys {
  /** The hash tag; also BullMQ's `prefix` for this queue. */
  readonly tag: string;
  /** BullMQ's own key prefix, with its closing colon. */
  readonly bull: string;
  /** Sorted set: `owner/id type` of every task, all scores 0, so ranges by owner are ranges by name. */
  readonly tasks: string;
  /**
   * Sorted set: shard number, `r` the reconciler, `a` alerts, `e` what is expected, `b` backfills, by the earliest time
   * at which each must be checked.
   */
  readonly next: string;
  /** Sorted set: run id by the time the reconciler must check it. */
  readonly runs: string;
  /** Sorted set, one a shard: `owner/id` by due time. */
  due(shard: number): string;
  /** The due indexes of all shards, in their order. */
  readonly dues: readonly string[];
  /** Hash: `owner/id` of the tasks that have a priority, by it. */
  readonly priorities: string;
  task(local: string): string;
  /** Sorted set: run ids of a task that are not final, by enqueue time. */
  open(local: string): string;
  /** Sorted set: run ids of a task that are final and kept, by finish time. */
  history(local: string): string;
  /** Sorted set: as the history, of the runs that failed. */
  failures(local: string): string;
  /** Hash: a task's statistics. */
  stats(local: string): string;
  /** Sorted set: final runs of all tasks, by finish time. */
  readonly journal: string;
  /** Hash: number of ended runs of all tasks, by outcome. */
  readonly outcomes: string;
  /** Sorted set: runs that a deleted task left, by a mark that stands in `runs`. */
  gone(mark: string): string;
  /** List: alerts to deliver. */
  readonly alerts: string;
  /** Hash, of the queue of alerts only: alerts about the namespace whose incidents last, as JSON. */
  readonly incidents: string;
  /** Sorted set: `owner/id` by the time until which a run must have succeeded. */
  readonly expected: string;
  /** List, newest first: occurrences that were not enqueued, and why. */
  ledger(local: string): string;
  /** Stream: the newest skips of all tasks, as lib/ledger.lua writes them. */
  readonly skips: string;
  /** List, newest first: the definitions of a task that were replaced, as lib/revisions.lua writes them. */
  revisions(local: string): string;
  /** Sorted set: `nominal at` of the times that another scheduler fired, by nominal time. It expires. */
  observed(local: string): string;
  /** Sorted set: `owner/id` of the deleted tasks whose definition can be put again, by the time at which they were deleted. */
  readonly deleted: string;
  /** Sorted set: `owner/id` of the tasks in this state, all scores 0. Not kept for `scheduled`. */
  inState(state: string): string;
  /**
   * Sorted set: `owner/id` of the tasks whose last run ended with this outcome, by minus its end time. `nothing-to-do`:
   * tasks all of whose runs ended so. Each task with an ended run is in one of these sets.
   */
  lastOutcome(outcome: string): string;
  /** Sorted set: `owner/id` of the tasks with this tag. */
  tagged(tag: string): string;
  /** Sorted set: `owner/id` of the tasks of a set, score 0; of those that were removed from it and are not deleted yet, by that time. */
  owned(set: string): string;
  /** Sorted set: `owner/id` of the tasks that name this calendar, by the revision they were planned with. */
  planned(calendar: string): string;
  /** Sorted set: backfills by the time of their next check. */
  readonly backfills: string;
  /** Hash: a backfill. */
  backfill(id: string): string;
  run(id: string): string;
  /** Hash: captured output by attempt. */
  output(id: string): string;
  /**
   * Hash: the items of a run. By index their records, as note-item.lua writes them; by `d` and index their data, as
   * JSON; `n` and `most`.
   */
  items(id: string): string;
  job(id: string): string;
  /** Hash: how many runs an owner may have open, by owner; `*`: any other owner. */
  readonly limits: string;
  /**
   * Hash: the namespace's freezes and quotas for this queue's scripts: `list` as JSON, `rev` the revision that it is
   * of, `at` when it was copied, `most` how many jobs may wait, by owner, as JSON.
   */
  readonly frozen: string;
  /** Sorted set: `shard owner/id` of the tasks with something that a freeze holds, by the time of their last check. */
  readonly held: string;
  /** Sorted set: open runs of an owner with a limit, by the time they were enqueued. */
  places(owner: string): string;
  /** Sorted set: `shard owner/id` of the tasks that wait for a place of their owner, by nominal time. */
  waiting(owner: string): string;
  /**
   * String: the newest turn of a worker, in case its answer is lost. `lane`: number among the worker's concurrent
   * turns.
   */
  turn(worker: string, lane: number): string;
  /**
   * String: a manual trigger, by the idempotency key of its occurrence: the time of its commit, the call's token, and the run, or `-`
   * if it was queued. It expires.
   */
  asked(key: string): string;
  /** String: since when claims have left something overdue, and when the last did (lib/late.lua). It expires. */
  readonly late: string;
  /** Hash: marks of the newest changes, by subject (script/lib/once.lua). */
  readonly marks: string;
  /** The redlock mutex of a part of `next`, of all shards (`shards`), of replanning all tasks (`zone`), or of comparing the indexes (`audit`). */
  mutex(part: string): string;
}

export interface NamespaceKeys {
  /** Hash: queue name by the marks of the puts under way in it. */
  readonly queues: string;
  /** Hash: node id by its last heartbeat, as JSON. */
  readonly nodes: string;
  /** Hash: worker id by its last heartbeat, as JSON. */
  readonly workers: string;
  /** Sorted set: queues that were removed, by that time: their deleted tasks can still be put again. */
  readonly pastQueues: string;
  /** Hash: queue name by the version of the time zone data that its tasks were planned with. */
  readonly zones: string;
  /** Hash: queue name by the time at which its indexes were last compared with its definitions. */
  readonly audits: string;
  /** Set: the only task types that may be put; empty: any. */
  readonly types: string;
  /** Hash: policies for tasks that do not have them, as JSON, by whose tasks. */
  readonly defaults: string;
  /** Hash: sets of tasks by name, as JSON. */
  readonly sets: string;
  /** Hash: shared calendars by name, as JSON; `~revision` counts their changes. */
  readonly calendars: string;
  /** Stream: who changed what, newest last. */
  readonly changes: string;
  /** Stream: alerts that were delivered or silenced, newest last. */
  readonly alertLog: string;
  /** Hash: silences of alerts by id, as JSON. */
  readonly silences: string;
  /** Hash: freezes by id and quotas by `~` and scope, as JSON; `~revision` counts their changes. */
  readonly freezes: string;
  /** Hash: named tokens of the HTTP API and the console by name, as JSON with a hash of their secret. */
  readonly tokens: string;
  /** Sorted set: `beats`, how many heartbeats nodes have counted; `clock`, the latest time of Redis that one of them saw. */
  readonly history: string;
  /** Hash: marks of the newest changes of settings, by subject. */
  readonly marks: string;
  /** String: number of the newest entry that this sender has added to a log. */
  sent(sender: string): string;
  /** Never exists: for writes that only test whether Redis accepts writes. */
  readonly probe: string;
  /** A session of the console that was ended by signing out; deleted when the session would have expired. */
  ended(session: string): string;
  /** Channel on which an earlier due time is announced. */
  readonly wake: string;
  /** Channel on which the cancel of a run is announced: `queue run`. */
  readonly cancel: string;
  queue(queue: string): QueueKeys;
}

/** Queues whose keys are kept at hand: a process may see ever new ones. */
const QUEUES_AT_HAND = 1_000;

export function namespaceKeys(namespace: string): NamespaceKeys {
  const cache = new Map<string, QueueKeys>();
  return {
    queues: `{${namespace}}:queues`,
    nodes: `{${namespace}}:nodes`,
    workers: `{${namespace}}:workers`,
    pastQueues: `{${namespace}}:past-queues`,
    zones: `{${namespace}}:zones`,
    audits: `{${namespace}}:audits`,
    types: `{${namespace}}:types`,
    defaults: `{${namespace}}:defaults`,
    sets: `{${namespace}}:sets`,
    calendars: `{${namespace}}:calendars`,
    changes: `{${namespace}}:changes`,
    alertLog: `{${namespace}}:alerts`,
    silences: `{${namespace}}:silences`,
    freezes: `{${namespace}}:freezes`,
    tokens: `{${namespace}}:tokens`,
    history: `{${namespace}}:history`,
    marks: `{${namespace}}:marks`,
    sent: (sender) => `{${namespace}}:sent:${sender}`,
    probe: `{${namespace}}:probe`,
    ended: (session) => `{${namespace}}:ended:${session}`,
    wake: `{${namespace}}${FACTS.channels.wake}`,
    cancel: `{${namespace}}${FACTS.channels.cancel}`,
    queue(queue) {
      let keys = cache.get(queue);
      if (!keys) {
        keys = queueKeys(namespace, queue);
        if (cache.size >= QUEUES_AT_HAND) cache.clear();
        cache.set(queue, keys);
      }
      return keys;
    },
  };
}

function queueKeys(namespace: string, queue: string): QueueKeys {
  const tag = `{${namespace}:${queue}}`;
  const ours = `${tag}:~`;
  const bull = `${tag}:${queue}:`;
  const prefix = FACTS.keys;
  const due = Array.from({ length: SHARDS }, (_, shard) => `${ours}${prefix.due}${shard}`);
  return {
    tag,
    bull,
    tasks: `${ours}tasks`,
    next: `${ours}next`,
    runs: `${ours}runs`,
    due: (shard) => due[shard] as string,
    dues: due,
    priorities: `${ours}priorities`,
    task: (local) => `${ours}${prefix.task}${local}`,
    open: (local) => `${ours}${prefix.open}${local}`,
    history: (local) => `${ours}${prefix.history}${local}`,
    failures: (local) => `${ours}${prefix.failures}${local}`,
    stats: (local) => `${ours}${prefix.stats}${local}`,
    gone: (mark) => `${ours}${mark}`,
    journal: `${ours}journal`,
    outcomes: `${ours}outcomes`,
    alerts: `${ours}alerts`,
    incidents: `${ours}incidents`,
    expected: `${ours}expected`,
    skips: `${ours}${prefix.skips}`,
    ledger: (local) => `${ours}${prefix.ledger}${local}`,
    revisions: (local) => `${ours}${prefix.revisions}${local}`,
    observed: (local) => `${ours}${prefix.observed}${local}`,
    deleted: `${ours}deleted`,
    inState: (state) => `${ours}${prefix.inState}${state}`,
    lastOutcome: (outcome) => `${ours}${prefix.lastOutcome}${outcome}`,
    owned: (set) => `${ours}${prefix.owned}${set}`,
    tagged: (tagName) => `${ours}${prefix.tagged}${tagName}`,
    planned: (calendar) => `${ours}${prefix.planned}${calendar}`,
    backfills: `${ours}backfills`,
    backfill: (id) => `${ours}${prefix.backfill}${id}`,
    run: (id) => `${ours}${prefix.run}${id}`,
    items: (id) => `${ours}${prefix.items}${id}`,
    output: (id) => `${ours}${prefix.output}${id}`,
    job: (id) => `${bull}${id}`,
    limits: `${ours}${prefix.limits}`,
    frozen: `${ours}${prefix.frozen}`,
    held: `${ours}held`,
    places: (owner) => `${ours}${prefix.places}${owner}`,
    waiting: (owner) => `${ours}${prefix.waiting}${owner}`,
    turn: (worker, lane) => `${ours}${prefix.turn}${worker}:${lane}`,
    asked: (key) => `${ours}${prefix.asked}${key}`,
    late: `${ours}late`,
    marks: `${ours}marks`,
    mutex: (part) => `${ours}${prefix.mutex}${part}`,
  };
}

/**
 * A key that never exists, in the slot of another. Every script that writes declares it: while a slot moves, Redis
 * refuses a script as a whole if a declared key is missing. Otherwise it would stop the script at the first key that it
 * makes itself and that is not there.
 */
export function neverKey(key: string): string {
  return `${key.slice(0, key.indexOf("}") + 1)}:~never`;
}

/** BullMQ's `prefix` for a queue: what a plain `new Worker(queue, fn, { prefix })` needs. */
export function bullPrefix(namespace: string, queue: string): string {
  return `{${namespace}:${queue}}`;
}
