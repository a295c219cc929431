import { duration } from "@carillon/ops/words";
import type { Outcome, TaskStats } from "@carillon/sdk";
import type { TaskStatsRow } from "@carillon/sdk/internal";
import type { Column } from "../table.js";
import { counted } from "../text.js";
import { when } from "../times.js";
import { GOOD, lastText } from "./run-columns.js";

export const STATS_COLUMNS: readonly Column<TaskStatsRow>[] = [
  { title: "QUEUE", value: ({ task }) => task.queue, rank: 4, least: 8 },
  { title: "TASK", value: ({ task }) => `${task.owner}/${task.id}` },
  {
    title: "LAST",
    value: ({ lastOutcome, lastFinish, lastChecked = 0 }) =>
      lastText(lastOutcome, lastFinish, lastChecked > (lastFinish ?? 0) ? lastChecked : undefined),
    colour: ({ lastOutcome }) =>
      lastOutcome === undefined ? undefined : GOOD.includes(lastOutcome) ? "green" : "red",
  },
  {
    title: "TOOK",
    right: true,
    value: ({ lastMs }) => (lastMs === undefined ? "-" : duration(lastMs)),
    rank: 6,
  },
  { title: "LATE", right: true, value: ({ lastLateMs }) => short(lastLateMs), rank: 2 },
  { title: "WAIT", right: true, value: ({ lastWaitMs }) => short(lastWaitMs), rank: 3 },
  { title: "RUNS", right: true, value: "runs", rank: 5 },
  { title: "WENT WELL", right: true, value: (stats) => shareOf(stats) ?? "-" },
  {
    title: "FAILED IN A ROW",
    right: true,
    value: "consecutiveFailures",
    colour: ({ consecutiveFailures }) => (consecutiveFailures > 0 ? "red" : undefined),
  },
  {
    title: "CRASHES",
    right: true,
    value: "crashes",
    colour: ({ crashes }) => (crashes > 0 ? "red" : undefined),
    rank: 4,
  },
  {
    title: "NEXT",
    value: ({ state, nextExecution }, { when }) =>
      nextExecution === undefined ? state : when(nextExecution),
    rank: 1,
  },
];

function short(ms: number | undefined): string {
  return ms === undefined ? "-" : duration(ms, 1);
}

export function statsLine(stats: TaskStats): string | undefined {
  if (stats.runs === 0) return undefined;
  const share = shareOf(stats);
  const row = inARow(stats);
  const parts = [
    `${counted(stats.runs, "run")}: ${ended(stats)}`,
    share && `${share} went well`,
    row && `${row} in a row`,
  ];
  return parts.filter(Boolean).join("; ");
}

/** A task's statistics as names and values. */
export function statsFacts(stats: TaskStats): [string, string | undefined][] {
  const { successes, failures, successMs, failureMs } = stats;
  const time = (ms: number | undefined) => (ms === undefined ? undefined : when(ms));
  const lost = stats.crashes > 0 ? `, and ${counted(stats.crashes, "crash", "crashes")}` : "";
  return [
    ["runs", String(stats.runs)],
    ["ended", stats.runs === 0 ? undefined : ended(stats)],
    ["went well", shareOf(stats)],
    ["in a row", inARow(stats)],
    ["attempts", `${stats.attempts}${lost}`],
    ["mean of successes", successes > 0 ? duration(successMs / successes) : undefined],
    ["mean of failures", failures > 0 ? duration(failureMs / failures) : undefined],
    ["last start", time(stats.lastStart)],
    ["last finish", time(stats.lastFinish)],
    ["last took", stats.lastMs === undefined ? undefined : duration(stats.lastMs)],
    ["last late", stats.lastLateMs === undefined ? undefined : duration(stats.lastLateMs)],
    ["last wait", stats.lastWaitMs === undefined ? undefined : duration(stats.lastWaitMs)],
    ["alerted of", stats.incidents.join(", ") || undefined],
    ["last success", time(stats.lastSuccess)],
    ["last nothing to do", time(stats.lastChecked)],
    ["last run", stats.lastRun && `${stats.lastRun} (${stats.lastOutcome})`],
  ];
}

/** Outcomes with their counts, without zeros. */
export function ended({ outcomes, open }: Pick<TaskStats, "outcomes" | "open">): string {
  const counts = Object.entries(outcomes) as [Outcome, number][];
  const parts = counts.filter(([, count]) => count > 0).map(([outcome, count]) => `${count} ${outcome}`);
  return [...parts, ...(open > 0 ? [`${open} not over`] : [])].join(", ");
}

function shareOf({ successes, failures }: Pick<TaskStats, "successes" | "failures">): string | undefined {
  const total = successes + failures;
  // Rounded down: 100% means no failure.
  return total === 0 ? undefined : `${Math.floor((successes * 100) / total)}%`;
}

function inARow({ consecutiveFailures, consecutiveCrashes }: TaskStats): string | undefined {
  const parts = [
    consecutiveFailures > 0 ? `${counted(consecutiveFailures, "failure")}` : "",
    consecutiveCrashes > 0 ? `${counted(consecutiveCrashes, "crash", "crashes")}` : "",
  ];
  return parts.filter(Boolean).join(", ") || undefined;
}
