import type { Task } from "@carillon/sdk";
import { shownTarget } from "@carillon/sdk/internal";
import { counted } from "../text.js";

export type Fact = readonly [string, string | undefined];

/** The policies of a task as names and values, without those that are not set. */
export function policyFacts(task: Task): Fact[] {
  const { overlap, maxQueued, catchUp, timeLimit, timeLimitGrace, pauseAfterFailures } = task;
  return [
    ["overlap", join(overlap, maxQueued === undefined ? undefined : `at most ${maxQueued} waiting`)],
    ["catch-up", join(catchUp, ...limitsOf(task))],
    ["min gap", task.minGap ?? (task.tolerance && `the interval, less ${task.tolerance}`)],
    ["time limit", timeLimit && join(timeLimit, timeLimitGrace && `then ${timeLimitGrace} to end`)],
    [
      "grace",
      timeLimit === undefined ? timeLimitGrace && `${timeLimitGrace} to end after a cancel` : undefined,
    ],
    ["retry", retryOf(task)],
    ["rerun", rerunOf(task)],
    ["pause after", pauseAfterFailures === undefined ? undefined : `${pauseAfterFailures} failures in a row`],
    ["crash", crashOf(task)],
    ["alert if", alertIfOf(task)],
    ["retention", retentionOf(task)],
    ["linger", task.linger],
    ["alerts", task.alerts?.map((one) => `${one.on.join(", ")} to ${shownTarget(one)}`).join("; ")],
  ];
}

function limitsOf({ catchUpLimits }: Task): (string | undefined)[] {
  const { window, max, every } = catchUpLimits ?? {};
  return [
    window && `none older than ${window}`,
    max === undefined ? undefined : `the newest ${max}`,
    every && `one each ${every}`,
  ];
}

function alertIfOf({ alertIf = {} }: Task): string | undefined {
  const { noSuccessFor, notStartedFor, slowerThan, skipsInARow } = alertIf;
  const text = join(
    noSuccessFor && `no success for ${noSuccessFor}`,
    notStartedFor && `not started for ${notStartedFor}`,
    slowerThan && `slower than ${slowerThan}${slowerThan.endsWith("%") ? " of the usual" : ""}`,
    skipsInARow === undefined ? undefined : `${skipsInARow} skips in a row`,
  );
  return text || undefined;
}

function retryOf({ retry }: Task): string | undefined {
  return (
    retry &&
    `${counted(retry.attempts, "attempt")}, ${retry.backoff} from ${retry.delay}, at most ${retry.max}`
  );
}

function rerunOf({ rerun }: Task): string | undefined {
  if (rerun === undefined) return undefined;
  const { delay, max, jitter } = rerun;
  const most = max === undefined ? "at most 5 intervals" : `at most ${max}`;
  return join(`${rerun.backoff} from ${delay}`, most, jitter > 0 ? `±${jitter}%` : undefined);
}

function crashOf({ crash }: Task): string | undefined {
  if (crash === undefined) return undefined;
  const { delay, attempts } = crash;
  return join(
    delay && `${delay} before the next attempt`,
    attempts && `over after ${counted(attempts, "crash", "crashes")}`,
  );
}

function retentionOf({ retention }: Task): string | undefined {
  if (retention === undefined) return undefined;
  const { successes, failures, successesFor, failuresFor } = retention;
  const kept = (what: string, most: number | undefined, age: string | undefined) =>
    most === undefined && age === undefined
      ? undefined
      : [most, what, age && `for ${age}`].filter((part) => part !== undefined && part !== "").join(" ");
  return join(kept("successes", successes, successesFor), kept("failures", failures, failuresFor));
}

function join(...parts: (string | undefined | false | 0)[]): string {
  return parts.filter(Boolean).join(", ");
}
