import { SHARDS } from "@carillon/core/internal";
import { FACTS } from "./script/facts.js";

/** Queues whose keys are kept at hand: a process may see ever new ones. */
const QUEUES_AT_HAND = 1_000;

export type NamespaceKeys = Readonly<ReturnType<typeof namespaceKeys>>;

export function namespaceKeys(namespace: string) {
  const cache = new Map<string, QueueKeys>();
  return {
    /** Hash: queue name by the marks of the puts under way in it. */
    queues: `{${namespace}}:queues`,
    /** Hash: node id by its last heartbeat, as JSON. */
    nodes: `{${namespace}}:nodes`,
    /** Hash: worker id by its last heartbeat, as JSON. */
    workers: `{${namespace}}:workers`,
    /** Hash: worker id by the JSON Schemas of its types' payloads, as JSON by type. */
    schemas: `{${namespace}}:schemas`,
    /** Sorted set: queues that were removed, by that time: their deleted tasks can still be put again. */
    pastQueues: `{${namespace}}:past-queues`,
    /** Hash: queue name by the version of the time zone data that its tasks were planned with. */
    zones: `{${namespace}}:zones`,
    /** Hash: queue name by the time at which its indexes were last compared with its definitions. */
    audits: `{${namespace}}:audits`,
    /** Set: the only task types that may be put; empty: any. */
    types: `{${namespace}}:types`,
    /** Hash: policies for tasks that do not have them, as JSON, by whose tasks. */
    defaults: `{${namespace}}:defaults`,
    /** Hash: sets of tasks by name, as JSON. */
    sets: `{${namespace}}:sets`,
    /** Hash: shared calendars by name, as JSON; `~revision` counts their changes. */
    calendars: `{${namespace}}:calendars`,
    /** Stream: who changed what, newest last. */
    changes: `{${namespace}}:changes`,
    /** Stream: alerts that were delivered or silenced, newest last. */
    alertLog: `{${namespace}}:alerts`,
    /** Hash: silences of alerts by id, as JSON. */
    silences: `{${namespace}}:silences`,
    /** Hash: freezes by id and quotas by `~` and scope, as JSON; `~revision` counts their changes. */
    freezes: `{${namespace}}:freezes`,
    /** List: the newest freezes that ended, each as its end and its JSON, newest first. */
    thawed: `{${namespace}}:thawed`,
    /** Hash: named tokens of the HTTP API and the console by name, as JSON with a hash of their secret. */
    tokens: `{${namespace}}:tokens`,
    /** Sorted set: `beats`, how many heartbeats nodes have counted; `clock`, the latest time of Redis that one of them saw. */
    history: `{${namespace}}:history`,
    /** Hash: marks of the newest changes of settings, by subject. */
    marks: `{${namespace}}:marks`,
    /** String: number and id of the newest entry that this sender has added to a log. */
    sent: (sender: string) => `{${namespace}}:sent:${sender}`,
    /** Never exists: for writes that only test whether Redis accepts writes. */
    probe: `{${namespace}}:probe`,
    /** A session of the console that was ended by signing out; deleted when the session would have expired. */
    ended: (session: string) => `{${namespace}}:ended:${session}`,
    /** Channel on which an earlier due time is announced. */
    wake: `{${namespace}}${FACTS.channels.wake}`,
    /** Channel on which the cancel of a run is announced: `queue run`. */
    cancel: `{${namespace}}${FACTS.channels.cancel}`,
    queue(queue: string): QueueKeys {
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

/**
 * Every Redis key name of Carillon. No other place builds one.
 *
 * All keys of one queue share the hash tag `{namespace:queue}`, which is also that queue's BullMQ prefix: the claim
 * touches the task and BullMQ's keys in one script, so one cluster slot must hold both. Ours go on with `:~`, which
 * no queue name can contain, so they never meet BullMQ's `{namespace:queue}:queue:…`.
 */
export type QueueKeys = Readonly<ReturnType<typeof queueKeys>>;

function queueKeys(namespace: string, queue: string) {
  const tag = `{${namespace}:${queue}}`;
  const ours = `${tag}:~`;
  const bull = `${tag}:${queue}:`;
  const prefix = FACTS.keys;
  const due = Array.from({ length: SHARDS }, (_, shard) => `${ours}${prefix.due}${shard}`);
  return {
    /** The hash tag; also BullMQ's `prefix` for this queue. */
    tag,
    /** BullMQ's own key prefix, with its closing colon. */
    bull,
    /** Sorted set: `owner/id type` of every task, all scores 0, so ranges by owner are ranges by name. */
    tasks: `${ours}tasks`,
    /**
     * Sorted set: shard number, `r` the reconciler, `a` alerts, `d` digests of alerts, `e` what is expected, `b` backfills, by the earliest time
     * at which each must be checked.
     */
    next: `${ours}next`,
    /** Sorted set: run id by the time the reconciler must check it. */
    runs: `${ours}runs`,
    /** Sorted set, one a shard: `owner/id` by due time. */
    due: (shard: number) => due[shard] as string,
    /** The due indexes of all shards, in their order. */
    dues: due,
    /** Hash: `owner/id` of the tasks that have a priority, by it. */
    priorities: `${ours}priorities`,
    task: (local: string) => `${ours}${prefix.task}${local}`,
    /** Sorted set: run ids of a task that are not final, by enqueue time. */
    open: (local: string) => `${ours}${prefix.open}${local}`,
    /** Sorted set: run ids of a task that are final and kept, by finish time. */
    history: (local: string) => `${ours}${prefix.history}${local}`,
    /** Sorted set: as the history, of the runs that failed. */
    failures: (local: string) => `${ours}${prefix.failures}${local}`,
    /** Hash: a task's statistics. */
    stats: (local: string) => `${ours}${prefix.stats}${local}`,
    /** Sorted set: runs that a deleted task left, by a mark that stands in `runs`. */
    gone: (mark: string) => `${ours}${mark}`,
    /** Sorted set: final runs of all tasks, by finish time. */
    journal: `${ours}journal`,
    /** Hash: number of ended runs of all tasks, by outcome. */
    outcomes: `${ours}outcomes`,
    /** List: alerts to deliver. */
    alerts: `${ours}alerts`,
    /** Hash, of the queue of alerts only: alerts about the namespace whose incidents last, as JSON. */
    incidents: `${ours}incidents`,
    /** Hash, of the queue of alerts only: what a destination was sent lately and collects, as JSON. It holds secrets. */
    collected: `${ours}collected`,
    /** Sorted set, of the queue of alerts only: these destinations by the time at which each must be read. */
    digests: `${ours}digests`,
    /** Sorted set: `owner/id` by the time until which a run must have succeeded. */
    expected: `${ours}expected`,
    /** Stream: the newest skips of all tasks, as lib/ledger.lua writes them. */
    skips: `${ours}${prefix.skips}`,
    /** List, newest first: occurrences that were not enqueued, and why. */
    ledger: (local: string) => `${ours}${prefix.ledger}${local}`,
    /** List, newest first: the definitions of a task that were replaced, as lib/revisions.lua writes them. */
    revisions: (local: string) => `${ours}${prefix.revisions}${local}`,
    /** Sorted set: `nominal at` of the times that another scheduler fired, by nominal time. It expires. */
    observed: (local: string) => `${ours}${prefix.observed}${local}`,
    /** Sorted set: `owner/id` of the deleted tasks whose definition can be put again, by the time at which they were deleted. */
    deleted: `${ours}deleted`,
    /** Sorted set: those of this owner. */
    deletedOf: (owner: string) => `${ours}${prefix.deletedOf}${owner}`,
    /** Sorted set: `owner/id` of the tasks in this state, all scores 0. Not kept for `scheduled`. */
    inState: (state: string) => `${ours}${prefix.inState}${state}`,
    /**
     * Sorted set: `owner/id` of the tasks whose last run ended with this outcome, by minus its end time. `nothing-to-do`:
     * tasks all of whose runs ended so. Each task with an ended run is in one of these sets.
     */
    lastOutcome: (outcome: string) => `${ours}${prefix.lastOutcome}${outcome}`,
    /** Sorted set: `owner/id` of the tasks of a set, score 0; of those that were removed from it and are not deleted yet, by that time. */
    owned: (set: string) => `${ours}${prefix.owned}${set}`,
    /** Sorted set: `owner/id` of the tasks with this tag. */
    tagged: (tagName: string) => `${ours}${prefix.tagged}${tagName}`,
    /** Sorted set: the tags that tasks have, all scores 0. */
    tags: `${ours}${prefix.tags}`,
    /** Sorted set: `owner/id` of the tasks that name this calendar, by the revision they were planned with. */
    planned: (calendar: string) => `${ours}${prefix.planned}${calendar}`,
    /** Sorted set: backfills by the time of their next check. */
    backfills: `${ours}backfills`,
    /** String: the call that may put replays, or backfills of occurrences that have not run: the one that asked last. */
    replaying: `${ours}replaying`,
    /** Hash: a backfill. */
    backfill: (id: string) => `${ours}${prefix.backfill}${id}`,
    run: (id: string) => `${ours}${prefix.run}${id}`,
    /**
     * Hash: the items of a run. By index their records, as lib/item.lua writes them; by `d` and index their data, as
     * JSON; `n`, `most`, `again` and others (docs/architecture/redis.md).
     */
    items: (id: string) => `${ours}${prefix.items}${id}`,
    /** Hash: captured output by attempt. */
    output: (id: string) => `${ours}${prefix.output}${id}`,
    job: (id: string) => `${bull}${id}`,
    /** Hash: how many runs an owner may have open, by owner; `*`: any other owner. */
    limits: `${ours}${prefix.limits}`,
    /**
     * Hash: the namespace's freezes and quotas for this queue's scripts: `list` as JSON, `rev` the revision that it is
     * of, `at` when it was copied, `most` how many jobs may wait, by owner, as JSON.
     */
    frozen: `${ours}${prefix.frozen}`,
    /** Sorted set: `shard owner/id` of the tasks with something that a freeze holds, by the time of their last check. */
    held: `${ours}held`,
    /** Sorted set: open runs of an owner with a limit, by the time they were enqueued. */
    places: (owner: string) => `${ours}${prefix.places}${owner}`,
    /** Sorted set: `shard owner/id` of the tasks that wait for a place of their owner, by nominal time. */
    waiting: (owner: string) => `${ours}${prefix.waiting}${owner}`,
    /**
     * String: the newest turn of a worker, in case its answer is lost. `lane`: number among the worker's concurrent
     * turns.
     */
    turn: (worker: string, lane: number) => `${ours}${prefix.turn}${worker}:${lane}`,
    /**
     * String: a manual trigger, by the idempotency key of its occurrence: the time of its commit, the call's token, and the run, or `-`
     * if it was queued. It expires.
     */
    asked: (key: string) => `${ours}${prefix.asked}${key}`,
    /** String: since when claims have left something overdue, and when the last did (lib/late.lua). It expires. */
    late: `${ours}late`,
    /** Hash: marks of the newest changes, by subject (script/lib/once.lua). */
    marks: `${ours}marks`,
    /** The redlock mutex of a part of `next`, of all shards (`shards`), of replanning all tasks (`zone`), or of comparing the indexes (`audit`). */
    mutex: (part: string) => `${ours}${prefix.mutex}${part}`,
  };
}

/**
 * A key that never exists, in the slot of another. Every script that writes declares it: while a slot moves, Redis
 * refuses a script as a whole if a declared key is missing. Otherwise it would stop the script at the first key that it
 * makes itself and that is not there.
 */
export function neverKey(key: string): string {
  return `${tagOf(key)}:~never`;
}

/** Hash: by subject, the lowest number with which something may still be changed for it in this slot (`Guard`). It expires. */
export function guardsKey(key: string): string {
  return `${tagOf(key)}:~guards`;
}

function tagOf(key: string): string {
  return key.slice(0, key.indexOf("}") + 1);
}

/** BullMQ's `prefix` for a queue: what a plain `new Worker(queue, fn, { prefix })` needs. */
export function bullPrefix(namespace: string, queue: string): string {
  return `{${namespace}:${queue}}`;
}
