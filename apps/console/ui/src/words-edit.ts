import { counted } from "./words-count.js";

/** Texts of changes to tasks: edit, and many at once. */
export const editWords = {
  edit: {
    newTitle: "New task",
    save: "Save",
    form: "Form",
    json: "JSON",
    done: {
      created: "The task is stored.",
      updated: "The change is stored.",
      unchanged: "Nothing was different.",
    },
    conflictColumns: ["Field", "As it is stored now", "What you wrote"],
    fields: {
      id: "Id",
      owner: "Owner",
      queue: "Queue",
      type: "Type",
      description: "Description",
      schedule: "Schedule",
      payload: "Payload",
      overlap: "If a run is still going on",
      catchUp: "Times that passed while nothing ran",
      tags: "Tags",
    },
    kinds: { cron: "Cron", calendar: "Calendar event", every: "Interval", at: "Once, at", manual: "Manual" },
    weekdays: ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
    yearTimes: (n: number) =>
      n === 0 ? "no time" : n > 24 ? "more than 24 times" : counted(n, "time", "times"),
    limits: {
      jitter: ["Jitter", "Spreads starts over this time, for example 5m."],
      maxRuns: ["Runs in all", "Then the task is finished."],
      start: ["First time", "For example 2030-01-01T09:00+01:00."],
      end: ["Last time", "In the same form, included."],
      origin: ["Counted from", "For example 2030-01-01T00:10Z: ten minutes past. Empty: the Unix epoch."],
    } as const,
    overlaps: {
      skip: "skip it",
      "queue-one": "wait, at most one",
      "queue-all": "wait, all in order",
      "cancel-running": "cancel the running one",
      allow: "run both",
    },
    catchUps: { one: "run once", all: "run each", skip: "drop them" },
    preview: "Next times",
  },
  bulk: {
    selectRead: "Select the tasks shown",
    selected: (n: number) => `${counted(n, "task", "tasks")} selected`,
    verbs: { pause: "Pause", resume: "Resume", trigger: "Run now", tag: "Tag", delete: "Delete" },
    titles: {
      pause: "Pause these tasks",
      resume: "Resume these tasks",
      trigger: "Run these tasks now",
      tag: "Change tags of these tasks",
      delete: "Delete these tasks",
    },
    done: {
      pause: (n: number) => `${counted(n, "task", "tasks")} paused.`,
      resume: (n: number) => `${counted(n, "task", "tasks")} resumed.`,
      trigger: (n: number) => `${counted(n, "task", "tasks")} triggered.`,
      tag: (n: number) => `${counted(n, "task", "tasks")} changed.`,
      spread: (n: number) => `${counted(n, "task", "tasks")} spread.`,
      undo: (n: number) => `${counted(n, "task", "tasks")} restored.`,
      delete: (n: number) => `${counted(n, "task", "tasks")} deleted.`,
    },
    tags: { add: "Tags to add", remove: "Tags to remove" },
  },
};
