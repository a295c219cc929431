import type { Outcome, StatusCode, TaskState } from "@carillon/sdk";
import { counted } from "./words-count.js";
import { editWords } from "./words-edit.js";
import { opsWords } from "./words-ops.js";
import { taskWords } from "./words-task.js";

/** Texts that several parts use, or that are looked up by a value. All others stand where they are shown. */

const held = (what: string, by?: string, note?: string) =>
  `${what}${by ? ` by ${by}` : ""}${note ? `: ${note}` : ""}`;

export const words = {
  by: (by: string) => `by ${by}`,
  ...taskWords,
  ...editWords,
  ...opsWords,
  product: "Carillon",
  close: "Close",
  cancel: "Cancel",
  notJson: "This is not JSON yet.",
  none: "–",
  ahead: { hour: "In 1 h", evening: "18:00", morning: "Tomorrow 08:00", monday: "Monday 08:00" },
  tasks: (n: number) => counted(n, "task", "tasks"),
  runs: (n: number) => counted(n, "run", "runs"),
  all: "All",
  more: "Show all",
  outcomes: {
    succeeded: "succeeded",
    failed: "failed",
    "timed-out": "timed out",
    partial: "partly done",
    cancelled: "cancelled",
    dropped: "dropped",
    crashed: "crashed",
    "nothing-to-do": "nothing to do",
    lost: "lost",
  } satisfies Record<Outcome, string>,
  runStates: { queued: "queued", running: "running", terminating: "ending" } as Record<string, string>,
  taskStates: {
    scheduled: "scheduled",
    paused: "paused",
    finished: "finished",
  } satisfies Record<TaskState, string>,

  shell: {
    search: "Search tasks",
    help: "Keys and help",
    liveHints: {
      true: "Changes are shown as they happen.",
      false: "No events arrive: the page reads again every few seconds.",
    },
    zone: "Times in",
    theme: "Colours",
    themes: { system: "System", light: "Light", dark: "Dark" },
    unreachable: "The console does not answer.",
    signedOut:
      "Your session has ended. Sign in again in another window, and go on here: nothing that you have entered is lost.",
  },
  tokens: {
    title: "Tokens",
    list: "Named tokens",
    add: "New link",
    expired: "over",
    until: "until",
    revoke: "Revoke",
  },
  copyAs: {
    forms: { cli: "CLI", curl: "curl", sdk: "SDK" },
  },
  palette: {
    title: "Go to, or do",
    label: "Task, owner, queue, page or action",
    kinds: {
      action: "action",
      page: "page",
      task: "task",
      owner: "owner",
      queue: "tasks of the queue",
    },
  },
  help: {
    title: "Keys",
    keys: [
      ["Ctrl K", "Go to a task, an owner, a queue or a page, or do something with what is open"],
      ["/", "Search tasks"],
      ["j, k", "Next and previous row"],
      ["Enter", "Open the row"],
      ["Space", "Select the row"],
      ["g n", "Now"],
      ["g t", "Tasks"],
      ["g r", "Runs"],
      ["Esc", "Close a dialog, or leave a field"],
      ["?", "This help"],
    ],
    cli: "The same from a terminal",
    commands: [
      ["carillon status", "is everything on time?"],
      ["carillon list", "all tasks, and when each runs next"],
      ["carillon explain TASK TIME", "why did it, or did it not, run then?"],
      ["carillon journal --failures", "what failed"],
    ],
  },
  now: {
    title: "Now",
    by: { task: "Tasks", queue: "Queues", owner: "Owners", tag: "Tags" },
    spans: { "1h": "±1 h", "6h": "±6 h", "24h": "±24 h" },
    sums: {
      ended: "runs ended",
      late: "late",
      failed: "failed",
      skipped: "skipped",
      missed: "missed",
      doubled: "doubled",
    },
    marks: {
      planned: "planned",
      overdue: "overdue",
      onTime: "on time",
      backfilled: "backfilled",
      late: "late",
      open: "running or waiting",
      failed: "failed",
      missed: "missed",
      skipped: "skipped",
    },
    untagged: "no tag",
    nothing: "nothing",
    events: {
      deploy: (name: string, by?: string) => `${name} was applied${by ? ` by ${by}` : ""}`,
      node: (name: string) => `node ${name} started`,
      worker: (name: string) => `worker ${name} started`,
    } as Record<"deploy" | "node" | "worker", (name: string, by?: string) => string>,
    bandNames: { freeze: "frozen", "queue-paused": "queue paused", "task-paused": "paused" },
    bands: {
      freeze: (by?: string, note?: string) => held("Frozen", by, note),
      "queue-paused": (by?: string, note?: string) => held("The queue is paused", by, note),
      "task-paused": (by?: string, note?: string) => held("Paused", by, note),
    },
    atMost: (value: string) => `up to ${value}`,
    close: "Close the answer",
    others: (n: number) => `and ${n.toLocaleString("en")} more`,
    none: {
      runs: "No run ended.",
    },
    queues: "Queues",
    noQueues: "There is no queue yet: put a task.",
    places: {
      NO_NODE: "Nodes",
      NODES_NOT_READY: "Nodes",
      QUEUE_PAUSED: "Queues",
      NO_WORKER: "Workers",
      FROZEN: "Freezes",
      ALERTS_UNDELIVERED: "Alerts",
      OVERDUE: "Overdue tasks",
      JOBS_NOT_TAKEN: "Workers",
      JOBS_WAIT: "Runs under way",
      JOBS_LIMITED: "Queues",
    } as Partial<Record<StatusCode, string>>,
  },
  list: {
    title: "Tasks",
    chips: {
      all: "All",
      failing: "Failing",
      overdue: "Overdue",
      neverRan: "Never ran",
      paused: "Paused",
      scheduled: "Scheduled",
      finished: "Finished",
    },
    owner: "Owner",
    tag: "Tag",
    queue: "Queue",
    sorts: { name: "By queue, name", next: "By next time", last: "By last run" },
    columns: {
      task: "Task",
      schedule: "Schedule",
      next: "Next",
      last: "Last run",
      ticks: "Last 30",
      state: "State",
    },
    clear: "Clear the filters",
    shown: (n: number, more: boolean) =>
      more ? `${n.toLocaleString("en")} read so far` : counted(n, "task", "tasks"),
    neverRan: "never ran",
    checked: "last checked",
  },
};
