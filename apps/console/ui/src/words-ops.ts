import type { AlertKind, Delivery } from "@carillon/sdk";

export const count = (n: number, one: string, many: string) =>
  `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

interface Owed {
  readonly count: number;
  /** Otherwise there are at least that many. */
  readonly exact: boolean;
}

const exact = ({ count: n, exact }: Owed) => `${exact ? "" : "at least "}${n.toLocaleString("en")}`;
const starts = (owed: Owed) => `${exact(owed)} ${owed.count === 1 ? "start" : "starts"}`;

/** Texts of the pages about load, resumes, faults and alerts. */
export const opsWords = {
  timeline: {
    title: "Timeline",
    map: "Planned starts, minute by minute",
    filter: "Filter",
    filters: { owner: "Owner", queue: "Queue", tag: "Tag" },
    total: (starts: number, tasks: number) =>
      `${count(starts, "start", "starts")} of ${count(tasks, "task", "tasks")} in 24 hours`,
    most: (n: number, at: string) => `most in one minute: ${n.toLocaleString("en")}, at ${at}`,
    none: "Nothing is planned for the next 24 hours.",
    cell: (at: string, n: number) => `${at}: ${count(n, "start", "starts")}`,
    hour: "Hour",
    sum: "Sum",
    scale: "Starts a minute",
    pick: "Click on a minute to see which tasks meet there, or name it:",
    minute: (zone: string) => `A minute (${zone})`,
    show: "Show",
    busiest: "Busiest minutes",
    starts: (n: number) => count(n, "start", "starts"),
    meet: (n: number) => `${count(n, "task", "tasks")} at once`,
    apart: "No two of these tasks start at the same instant.",
    jitter: (jitter: string) => `A jitter of ${jitter} would spread them.`,
    withJitter: (name: string, jitter: string) => `Edit ${name} with a jitter of ${jitter}`,
    others: (n: number) => `and ${count(n, "other", "others")}`,
  },
  resumePage: {
    title: "Resume with a plan",
    which: "Which paused tasks",
    filters: { owner: "Owner", tag: "Tag", queue: "Queue", note: "Note of the pause" },
    plan: "Show the plan",
    hint: "Name an owner, a tag or a queue, and perhaps the note of the pause. You see what the tasks owe, then choose.",
    notAllowed: "A viewer cannot resume tasks.",
    none: "No paused task matches.",
    owed: "What is owed",
    byPolicy: "By catch-up policy",
    sum: (tasks: number, owed: Owed & { readonly tasks: number }) =>
      `${count(tasks, "paused task", "paused tasks")}, of which ${owed.tasks.toLocaleString("en")} missed ${starts(owed)}.`,
    count: exact,
    policies: { all: "run each", one: "run once", skip: "drop them" },
    most: "Tasks that owe most",
    columns: ["Task", "Owed", "Catch-up", "First", "Last"],
    unpaused: (n: number) =>
      `${count(n, "task is", "tasks are")} overdue and not paused: their catch-up policies decide when a node comes.`,
    frozen: (owed: Owed) =>
      `${starts(owed)} skipped by freezes in the last day. They are not owed: a backfill runs them.`,
    held: (n: number) => `${count(n, "task is", "tasks are")} held by a freeze until it ends.`,
    choose: "Choose",
    from: "Times that passed meanwhile",
    choices: (of: Record<"now" | "latest" | "catch-up" | "all", Owed>) => ({
      now: "drop them: nothing starts",
      latest: `the latest of each task: ${starts(of.latest)}`,
      "catch-up": `let each task's policy decide: ${starts(of["catch-up"])}`,
      all: `all of them: ${starts(of.all)}`,
    }),
    rate: "Starts a minute, all tasks together",
    rateHint: "Empty: all at once.",
    starts: (owed: Owed) =>
      owed.count === 0 ? "Nothing starts; schedules go on with their next time." : `${starts(owed)}.`,
    atOnce: "All at once.",
    paced: (rate: number, time: string) => `${rate.toLocaleString("en")} a minute, over ${time}.`,
    go: (n: number) => `Resume ${count(n, "task", "tasks")}`,
  },
  doctor: {
    title: "Doctor",
    states: { healthy: "healthy", warnings: "warnings", errors: "errors" },
    again: "Check again",
    read: (read: number, of: number) =>
      `${read.toLocaleString("en")} of ${count(of, "task", "tasks")} checked.`,
    findings: "Findings",
    none: "Nothing is wrong.",
    severities: {
      error: (n: number) => count(n, "error", "errors"),
      warning: (n: number) => count(n, "warning", "warnings"),
    },
    queue: (name: string) => `queue ${name}`,
    remedy: "What to do:",
    skipped: "Checks that could not be made",
  },
  alerts: {
    title: "Alerts",
    list: "The last 10,000 alerts",
    none: "No alert matches.",
    more: "Older alerts",
    kind: "Kind",
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
    namespace: "all tasks",
    ends: (kinds: string) => `ends: ${kinds}`,
    run: "Run",
    sentTo: (to: string) => `To ${to}.`,
    programs: "programs that listen, no address",
    silenced: "Not sent: silenced.",
    undelivered: "Not delivered",
    about: (kinds: string) => `alerts: ${kinds}`,
    allDelivered: "Nothing waits.",
    states: { collecting: "collected", waiting: "waits", failed: "failed" } satisfies Record<
      Delivery["state"],
      string
    >,
    waitsForNode: "waits for a node",
    silences: "Silences",
    noSilence: "Nothing is silenced.",
    silence: "Silence",
    silenceTitle: "Silence alerts",
    silenceHint: "Until its end, alerts that match are recorded and not sent.",
    scope: "What",
    scopes: { task: "Task", owner: "Owner", queue: "Queue", kind: "Kind", all: "All alerts" },
    untilField: (zone: string) => `Until (${zone})`,
    reason: "Reason",
    holds: "The silence holds.",
    end: "End",
    ended: "The silence has ended.",
    test: "Test",
    testTitle: "Test a destination",
    testHint: "Sends one alert. The outcome of its run tells whether it arrived.",
    destination: "Destination",
    destinations: { url: "Webhook", email: "E-mail address" },
    tested: "The test is on its way.",
  },
};
