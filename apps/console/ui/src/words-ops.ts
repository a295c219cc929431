import type { AnswerTo } from "@carillon/ops";
import type { AlertFormat, AlertKind } from "@carillon/sdk/internal";
import { counted } from "./words-count.js";

interface Owed {
  readonly count: number;
  /** If false, there are at least that many. */
  readonly exact: boolean;
}

const exact = ({ count: n, exact }: Owed) => `${exact ? "" : "at least "}${n.toLocaleString("en")}`;
const starts = (owed: Owed) => `${exact(owed)} ${owed.count === 1 ? "start" : "starts"}`;

/** Texts of the pages about load, errors, what is held, nodes and settings. */
export const opsWords = {
  load: {
    title: "Load",
    map: "Planned starts, minute by minute",
    filters: { owner: "Owner", queue: "Queue", tag: "Tag" },
    cell: (at: string, n: number) => `${at}: ${counted(n, "start", "starts")}`,
    minute: (zone: string) => `A minute (${zone})`,
    starts: (n: number) => counted(n, "start", "starts"),
    meet: (n: number) => `${counted(n, "task", "tasks")} at once`,
  },
  resumePage: {
    title: "Resume with a plan",
    filters: { owner: "Owner", tag: "Tag", queue: "Queue", note: "Pause note" },
    sum: (tasks: number, owed: Owed & { readonly tasks: number }) =>
      owed.count === 0
        ? `${counted(tasks, "paused task", "paused tasks")}: no start was missed.`
        : `${counted(tasks, "paused task", "paused tasks")}, of which ${owed.tasks.toLocaleString("en")} missed ${starts(owed)}.`,
    count: exact,
    policies: { all: "run each", one: "run once", skip: "drop them" },
    columns: ["Task", "Owed", "Catch-up", "First", "Last"],
    frozen: (owed: Owed) =>
      `${starts(owed)} skipped by freezes in the last day and not made up for. They are not owed: a backfill runs them.`,
    choices: (of: Record<"skip" | "latest" | "catch-up" | "all", Owed>) => ({
      skip: "drop them: nothing starts",
      latest: `the latest of each task: ${starts(of.latest)}`,
      "catch-up": `let each task's policy decide: ${starts(of["catch-up"])}`,
      all: `all of them: ${starts(of.all)}`,
    }),
    starts: (owed: Owed) =>
      owed.count === 0 ? "Nothing starts; schedules go on with their next time." : `${starts(owed)}.`,
    go: (n: number) => `Resume ${counted(n, "task", "tasks")}`,
  },
  errors: {
    title: "Errors",
    by: { cause: "By cause", owner: "By owner", queue: "By queue", task: "By task" },
    failing: (n: number, of: number) =>
      of === 1 ? "it still fails" : `${n.toLocaleString("en")} of ${counted(of, "task", "tasks")} still fail`,
    replay: "Run these again",
    strip: (most: number, at: string) => `Most, ${counted(most, "run", "runs")}, at ${at}`,
  },
  trends: {
    by: { task: "By task", owner: "By owner", queue: "By queue", tag: "By tag" },
    columns: {
      ...{ name: "Of", runs: "Runs", share: "Succeeded", p50: "p50", p95: "p95" },
      ...{ late: "Late", skipped: "Skipped" },
    },
    hints: {
      ...{ p50: "Half of the runs that succeeded took no longer", p95: "95 of 100 took no longer" },
      late: "Enqueued 1 s late or later, or 1 min without a worker",
    } as Readonly<Record<string, string>>,
    more: (text: string, more: boolean) => `${text.slice(1)} ${more ? "more" : "less"} than before`,
  },
  held: {
    title: "Held",
    kinds: {
      ...{ frozen: "frozen", toCome: "to be frozen", silence: "silenced alerts" },
      ...{ task: "paused task", queue: "paused queue" },
    },
    lift: "Lift",
    lifted: "It is lifted.",
    silence: "Silence",
    untilHint: "A silence of a cause may do without: it ends a day after the last alert of it.",
    allAlerts: "All alerts",
  },
  alerts: {
    title: "Alerts",
    kinds: {
      failed: "failed",
      crashed: "crashed",
      paused: "paused",
      "missed-deadline": "missed deadline",
      "late-start": "late start",
      slow: "slow",
      skipped: "skipped",
      recovered: "recovered",
      "no-worker": "no worker",
      stopped: "stopped",
    } satisfies Record<AlertKind, string>,
    states: { collecting: "collected", waiting: "waits", failed: "failed" } satisfies Record<
      AnswerTo<"alerts.undelivered">["deliveries"][number]["state"],
      string
    >,
    test: "Test",
    formats: {
      json: "JSON",
      slack: "Slack",
      teams: "Microsoft Teams",
      pagerduty: "PagerDuty",
      template: "JSON of your own",
      email: "E-mail",
    } satisfies Record<AlertFormat, string>,
  },
  system: {
    title: "System",
    nodes: "Nodes",
    workers: "Workers",
    states: {
      ready: "ready",
      "not-ready": "not ready",
      stopping: "stopping",
      silent: "silent",
      dead: "dead",
    },
    nodeColumns: ["Node", "State", "Heartbeat", "Started", "Version", "Time zones", "Clock"],
    workerColumns: ["Worker", "State", "Heartbeat", "Running", "Queues", "Types", "Versions"],
    queueColumns: ["Queue", "Tasks", "Waiting", "Active", "Limit", "Oldest waits", "Workers", "Jobs"],
  },
  effect: {
    running: (n: number) => (n === 1 ? "1 runs and goes on" : `${n.toLocaleString("en")} run and go on`),
    again: (n: number) =>
      n === 0 ? "This would run nothing again." : `Runs ${counted(n, "run", "runs")} again`,
    tasks: (n: number) =>
      n === 0 ? "This would change no task." : `This concerns ${counted(n, "task", "tasks")}:`,
    runs: (n: number, tasks: number) =>
      n === 0
        ? "No run would end: none is open."
        : `This ends ${counted(n, "run", "runs")} of ${counted(tasks, "task", "tasks")}:`,
    others: (n: number) => `and ${counted(n, "other", "others")}`,
    refused: (n: number, why: string) => `${counted(n, "task", "tasks")} refused: ${why}`,
  },
  freezes: {
    freeze: "Freeze",
    kinds: { once: "From a time to a time", windows: "In recurring windows" },
  },
  changes: {
    title: "Changes",
    undo: "Undo",
    filter: "Filter",
    filters: { task: "Task id", owner: "Owner", queue: "Queue", by: "By" },
    columns: ["Field", "Before", "After"],
    timeColumns: ["Next times before", "After"],
  },
  calendars: { title: "Calendars" },
  rules: { title: "Rules" },
  sets: { title: "Sets" },
  backfills: {
    states: { running: "running", done: "done", cancelled: "stopped" },
    progress: (done: number, total: number) =>
      `${done.toLocaleString("en")} of ${total.toLocaleString("en")}`,
  },
};
