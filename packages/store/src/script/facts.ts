import { ALERTS_QUEUE, type SkipReason } from "@carillon/core";
import {
  BEHIND_AT_MOST,
  FAILURES,
  FORMAT_VERSION,
  NEVER_LATE,
  SHARDS,
  SUCCESSES,
} from "@carillon/core/internal";

/** Parts of a queue that have a due time of their own, apart from the shards: members of its index `next`. */
export const PARTS = { runs: "r", alerts: "a", digests: "d", expected: "e", backfills: "b" } as const;

/** Entries of a task's ledger that are kept. */
export const LEDGER_MOST = 50;

/**
 * Everything that both TypeScript and Lua know. Scripts read it as `F.parts.runs`: a text or a number is put into the
 * script in its place, and a set is a table by member (`F.failures[outcome]`).
 */
export const FACTS = {
  /** Outcomes of runs that count as failures, and as successes. */
  failures: FAILURES,
  successes: SUCCESSES,

  /** Reasons of skips that nobody asked for: many in a row raise an alert. */
  alertedSkips: new Set<SkipReason>(["overlap", "behind", "missed"]),

  /** Triggers of runs whose due time is long past: they are late only by the wait for a worker. */
  neverLate: NEVER_LATE,

  alertsQueue: ALERTS_QUEUE,
  shards: SHARDS,
  parts: PARTS,
  ledgerMost: LEDGER_MOST,

  /** Prefixes of a queue's keys, after its tag and `:~`. */
  keys: {
    task: "t:",
    open: "open:",
    history: "hist:",
    failures: "fail:",
    stats: "s:",
    ledger: "ledger:",
    skips: "skips",
    revisions: "revs:",
    deletedOf: "deleted:",
    observed: "seen:",
    run: "r:",
    output: "out:",
    items: "items:",
    backfill: "bf:",
    tagged: "tag:",
    tags: "names-of-tags",
    owned: "set:",
    inState: "is:",
    lastOutcome: "last:",
    planned: "cal:",
    due: "due:",
    turn: "turn:",
    asked: "asked:",
    mutex: "lock:",
    limits: "limits",
    places: "places:",
    waiting: "waiting:",
    frozen: "frozen",
  },
  /**
   * Marks of a queue's changes (script/lib/once.lua): tasks that were deleted soon after they were put, by shard. A late put must not
   * make such a task again.
   */
  deletedIn: "deleted:",
  /** Channels of a namespace, after its tag. */
  channels: { wake: ":wake", cancel: ":cancel" },

  /** Marks of runs that deleted tasks left: members of `runs`, and names of the sets that hold these runs. */
  gone: "gone:",
  /**
   * The mark of the runs that were open begins with this, before the task's name: no task of that name is put before
   * they are cleared.
   */
  goneOpen: "gone:open:",

  /** Newest format of a task's hash that this version knows. */
  format: FORMAT_VERSION,
  /**
   * Newest format of a run's record, and of the statistics that its start changes, that this version knows; it writes this one.
   * Workers and nodes leave runs of a newer one alone.
   */
  runFormat: 1,
  /** A worker hands back the job of such a run, and no worker takes it for this many ms. */
  newerWait: 30_000,
  /** Fields of a task's hash that are not its definition's, but made by claims and runs. */
  bookkeeping: new Set<string>([
    "gen",
    "state",
    "cursor",
    "nominal",
    "due",
    "token",
    "open",
    "created",
    "updated",
    "createdBy",
    "updatedBy",
    "trace",
    "fired",
    "wait",
    "pending",
    "calrev",
    "pausedAt",
    "pausedBy",
    "pauseNote",
    "moving",
    "rev",
    "set",
    "mode",
  ]),
  /** Field of the quota of all jobs that wait in a queue, among those of owners. */
  everyone: "",
  /** Field of a queue's limits: every owner without one of its own. No owner can have this name. */
  anyOwner: "*",
  /** An occurrence that waits for a place of its owner is tried again after this many ms at the latest. */
  placeWait: 30_000,
  /** Longest wait of a frozen occurrence before it is checked again, in ms. The end of the freeze comes first if it is sooner. */
  frozenWait: 300_000,
  /** In `open` of a task's hash: its open runs are in a set of their own. */
  inSet: "*",
  /** Bytes. A hash with a longer value takes twice the memory (Redis' `hash-max-listpack-value`). */
  longestSmallValue: 64,
  /** Field of the calendars' hash that counts changes; no calendar can have this name. */
  revision: "~revision",
  /** Field of BullMQ's settings of a queue (`meta`) that says who paused it, and why. It lives as long as the pause does. */
  queuePause: "carillon.pause",

  /** Most entries of the change log; a few more may be kept. */
  changes: 10_000,
  /** Most replaced definitions of a task that are kept, and their bytes; one is always kept. */
  revisions: { most: 20, bytes: 65_536 },
  /**
   * The definition of a deleted task can be put again for this many ms. Most deleted tasks of an owner in a queue that are kept so, and of
   * all its owners: beyond that each keeps the newest at least.
   */
  deleted: { ms: 7 * 86_400_000, most: 10_000, ofAll: 100_000 },
  /** Most queues that are remembered because tasks that were deleted from them can be put again. */
  pastQueues: 1_000,

  /** Separator in the texts that `read-due.lua` returns. Stored data never contains control characters. */
  separator: "\x1f",

  /**
   * A request may arrive this much later than it was sent, in ms: far longer than a connection that was given up can
   * keep it. For so long Redis keeps what tells it from a new one.
   */
  late: 86_400_000,
  /** A call whose answer was lost is made again within this many ms. */
  resent: 600_000,

  /** Time in ms after which a task that is left due is overdue. */
  overdue: 100,
  /** Nodes that claim nothing for longer than this, in ms, were away, and not slow. */
  away: BEHIND_AT_MOST,

  /** Default time that a finished task is kept, in ms. */
  linger: 30 * 86_400_000,
  /**
   * Defaults for crashes: the wait before the next attempt in ms, and the number of crashes that end a run. `longest`: the wait grows up to
   * this.
   */
  crash: { delay: 5 * 60_000, attempts: 3, longest: 60 * 60_000 },
  /** The reconciler first checks an unsettled run after this many ms. */
  firstLook: 10_000,
  /** It repeats an unfinished check after this many ms. */
  lookAgain: 5_000,
  /**
   * Delay and interval of its checks of a run that the task waits for, in ms. A job that was retried outside does not
   * report its end.
   */
  waitedFor: 1_000,
  /** The same, at least, once a Carillon worker has started that run, in ms. */
  waitedForStarted: 30_000,
} as const;
