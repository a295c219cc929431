import type { Json, Outcome, TaskName } from "@carillon/core";
import {
  BULL,
  BULL_END,
  BULL_TAKE,
  CANCEL,
  CLEAR,
  CRASH,
  EACH,
  ENQUEUE,
  ITEM,
  KEYS,
  LEDGER,
  NEXT,
  REOPEN,
  START,
  STATS,
  SWEEP,
  TRIED,
} from "../script/libraries.js";
import { answers, script } from "../script/script.js";
import type { Retention } from "../task/codec.js";
import { decodeDetails, type Runner } from "./codec.js";

export interface Worked extends Runner {
  /** The worker's own number for this start, which distinguishes it from a resend. Attempts are numbered by `start`. */
  attempt: number;
  /** Attempts that BullMQ counts as made (`job.attemptsMade`). */
  made: number;
  /** Lock token of the job; undefined: whether it still has the job is not checked. */
  token?: string;
}

export type StartResult =
  | {
      readonly word: "OK";
      readonly fence: number;
      /** From 1. */
      readonly attempt: number;
      readonly now: number;
      /** Milliseconds that the attempt may take; undefined: no limit. */
      readonly limit: number | undefined;
      /** Milliseconds that it gets to end by itself after that, or after a cancel. */
      readonly grace: number;
      /** The checkpoint of the previous run. */
      readonly checkpoint: Json | undefined;
      /** Attempts of this run whose worker died. */
      readonly crashes: number;
      /** Whether the attempt may have begun on another worker, which handed it back. */
      readonly goesOn: boolean;
    }
  /** The worker no longer has the job; this start is not recorded. */
  | { readonly word: "LOST" }
  /** The task was deleted: there is nothing to do. */
  | { readonly word: "GONE" }
  /** The run is over, and its record is no longer kept; its job was retried from outside. */
  | { readonly word: "FORGOTTEN" }
  /** The run is over already; its worker died between settling and completing the job. */
  | { readonly word: "FINAL"; readonly outcome: Outcome }
  /** Too soon after the run before; recorded. */
  | { readonly word: "DROPPED" }
  /** A cancel came first; recorded. */
  | { readonly word: "CANCELLED" }
  /** Its worker died too often; recorded. */
  | { readonly word: "CRASHED"; readonly error: string }
  /**
   * The wait after a crash, or the pause of its task, is not over before `until`; now it is `now`. Both by the clock of
   * Redis.
   */
  | { readonly word: "WAIT"; readonly until: number; readonly now: number }
  /** A newer version wrote the run's record, in this format: it is left for a newer worker. Times as in `WAIT`. */
  | { readonly word: "NEWER"; readonly until: number; readonly now: number; readonly format: string };

/**
 * `ASK`: neither ended, so the general scripts must handle it; `ENDED`: the job has ended, and its run could not be
 * written.
 */
export type TurnWord = "OK" | "ASK" | "ENDED";

/** Answer of start-run.lua about a run. */
export type StartReply = [word: StartResult["word"], ...details: (string | number)[]];

/** Its answer for an attempt that may begin, after the word. */
type Begun = [
  fence: number,
  now: number,
  details: string,
  checkpoint: string,
  crashes: number,
  attempt: number,
  goesOn: 0 | 1,
];

/** Default time that an attempt gets to end by itself after its time limit, in ms. */
const DEFAULT_TIME_LIMIT_GRACE = 10_000;

export function begunOf(name: TaskName, [, ...rest]: StartReply): Extract<StartResult, { word: "OK" }> {
  const [fence, now, details, checkpoint, crashes, attempt, goesOn] = rest as Begun;
  const { limit, grace = DEFAULT_TIME_LIMIT_GRACE } = decodeDetails(name, details);
  return {
    word: "OK",
    fence: Number(fence),
    attempt,
    now,
    limit,
    grace,
    checkpoint: checkpoint === "" ? undefined : (JSON.parse(checkpoint) as Json),
    crashes,
    goesOn: goesOn === 1,
  };
}

export interface Settlement {
  fence: number;
  /** Undefined: this attempt failed and another one follows. */
  outcome: Outcome | undefined;
  error?: string | undefined;
  result?: Json | undefined;
  /** Time at which the handler asked to run again, UTC ms: an occurrence of its own. */
  nextAt?: number | undefined;
}

export type SettleWord = "OK" | "FENCED" | "GONE" | "FINAL";
/** `CANCELLED`: recorded as cancelled instead, because a cancel was requested that this worker had not received. */
export type EndWord = SettleWord | "CANCELLED";

export type CancelWord = "OK" | "UNCHANGED" | "FINAL" | "GONE";

/** Keys and arguments that every script that ends runs takes in addition to the runs themselves (lib/run.lua). */
const ENDING = {
  keys: ["runs", "next", "journal", "alerts", "expected", "outcomes"],
  args: [
    "completedFor",
    "completedMost",
    "failedFor",
    "failedMost",
    "successes",
    "failures",
    "successesFor",
    "failuresFor",
  ],
} as const;

/** Retention as arguments of these scripts. */
export function endingArgs({ completedJobs, failedJobs, ...runs }: Retention) {
  return {
    ...runs,
    completedFor: completedJobs.for,
    completedMost: completedJobs.most,
    failedFor: failedJobs.for,
    failedMost: failedJobs.most,
  };
}

/** Their keys and arguments for each run. */
const RUN_ITEM = {
  keys: ["key", "job", "task", "open", "history", "failures", "stats", "ledger", "due"],
  args: ["id", "name", "shard"],
} as const;

export const START_RUN = script("start-run", {
  resident: true,
  once: "fence",
  ...ENDING,
  each: {
    keys: RUN_ITEM.keys,
    args: [...RUN_ITEM.args, "by", "own", "made", "token"],
  },
  uses: [EACH, REOPEN, START, CRASH],
  answer: answers<unknown[]>(),
});

export const TURN = script("turn", {
  resident: true,
  once: "number",
  keys: [...ENDING.keys, "turn", "bull[]"],
  args: [...ENDING.args, "by", "worker", "number", "token", "take", "lock", "clock"],
  each: {
    args: [...RUN_ITEM.args, "token", "fence", "outcome", "made", "value", "result"],
    packed: true,
  },
  uses: [START, BULL_END, BULL_TAKE, TRIED],
  answer:
    answers<
      [
        words: TurnWord[],
        jobs: [id: string, token: string, hash: string[], start?: StartReply][],
        limit: number,
        delay: number,
        held: 0 | 1,
        error: string,
      ]
    >(),
});

export const SETTLE_RUN = script("settle-run", {
  resident: true,
  once: "fence",
  ...ENDING,
  each: {
    keys: RUN_ITEM.keys,
    args: [...RUN_ITEM.args, "fence", "outcome", "error", "result", "following"],
  },
  uses: [EACH, LEDGER],
  answer: answers<unknown[]>(),
});

export const RECONCILE = script("reconcile", {
  resident: true,
  once: { repeats: "It decides by what is stored when it runs." },
  keys: [...ENDING.keys, "repeats"],
  args: [...ENDING.args, "most", "longest"],
  uses: [REOPEN, CLEAR, SWEEP],
  answer: answers<[now: number, more: 0 | 1, ...found: [string, string, string, Outcome, string][]]>(),
});

export const READ_SETTLE = script("read-settle", {
  once: "reads",
  keys: ["run", "task", "stats"],
  uses: [STATS],
  answer: answers<[now: number, task: string[], failures: string, details: string]>(),
});

export const CHECKPOINT = script("checkpoint", {
  once: "number",
  keys: ["run", "task", "stats"],
  args: ["fence", "number", "value"],
  answer: answers<SettleWord>(),
});

export const TERMINATING = script("terminating", { once: "fence", keys: ["run"], args: ["fence"] });

export const CANCEL_RUN = script("cancel-run", {
  once: "value",
  keys: ["run", "runs", "next"],
  args: ["id", "by", "seen", "onlyQueued"],
  uses: [NEXT, CANCEL],
  answer: answers<CancelWord | "STALE">(),
});

export const SAVE_OUTPUT = script("save-output", {
  once: "number",
  keys: ["run", "output", "job"],
  args: ["field", "by", "number", "output", "token"],
  uses: [BULL],
});

export const ADD_ITEMS = script("add-items", {
  once: "fence",
  keys: ["run", "items", "parent", "left", "succeeded", "failed", "bull[]"],
  args: ["fence", "token", "round", "most", "ends", "template", "common"],
  each: { keys: ["job"], args: ["id", "index", "data", "since"] },
  uses: [BULL, ENQUEUE],
  answer: answers<["OK", total: number] | ["LOST"] | ["TAKEN", id: string] | ["ERROR", text: string]>(),
});

export const START_ITEM = script("start-item", {
  once: "fence",
  keys: ["run", "items", "task", "stats", "open", "left", "job"],
  args: ["index", "token", "made", "pid", "worker"],
  uses: [BULL, STATS, CRASH, ITEM],
  answer: answers<
    | ["OK", attempt: number, left: number | "", key: string]
    | ["LOST"]
    | ["OVER"]
    | ["CRASHED", deaths: number]
    | ["WAIT", until: number, now: number]
  >(),
});

export const END_ITEM = script("end-item", {
  once: "fence",
  keys: ["run", "items", "task", "stats", "job"],
  args: ["id", "index", "status", "left", "token", "details", "data"],
  uses: [BULL, STATS, ITEM],
  answer: answers<0 | 1>(),
});

export const TAKE_LEFT = script("take-left", {
  once: { repeats: "A run gets the same answer again, and nobody else has those items by then." },
  keys: ["run", "stats"],
  args: ["id", "of"],
  uses: [KEYS],
  answer: answers<string>(),
});

/** A run that a script is about. */
export interface About {
  readonly name: TaskName;
  readonly run: string;
}

export interface Start extends About {
  readonly by: Worked;
}

export interface End extends About {
  readonly end: {
    readonly fence: number | "crashed" | undefined;
    readonly outcome: Outcome | undefined;
    readonly error: string;
    readonly result: string;
    readonly following: string;
  };
}
