import { CANCEL, ENQUEUE, MARKS, NEXT, OPEN, PLACES, QUOTA, RECKON, TASK } from "../script/libraries.js";
import { answers, script } from "../script/script.js";
import type { FrozenReply } from "./frozen.js";

export const READ_TASK = script("read-task", {
  once: "reads",
  keys: ["task", "open", "frozen", "asked?"],
  args: ["name", "owner"],
  uses: [RECKON, QUOTA],
  answer:
    answers<
      [
        now: number,
        task: string[],
        run: string,
        open: string,
        begun: string,
        over: string[],
        frozen: FrozenReply,
        asked: string,
      ]
    >(),
});

export const CANCEL_OPEN = script("cancel-open", {
  once: { repeats: "It cancels only runs that were open when the commit was made." },
  keys: ["open", "runs", "next"],
  args: ["by", "opened", "passed"],
  uses: [NEXT, CANCEL],
  answer: answers<[checked: number, changed: number, open: number]>(),
});

export const ENQUEUE_NEW = script("enqueue-new", {
  resident: true,
  once: "mark",
  keys: [
    "task",
    "open",
    "record",
    "job",
    "next",
    "runs",
    "tasks",
    "priorities",
    "gone",
    "frozen",
    "marks",
    "bull[]",
  ],
  args: [
    "name",
    "shard",
    "seen",
    "run",
    "node",
    "template",
    "details",
    "owner",
    "id",
    "key",
    "nominal",
    "jobDue",
    "trigger",
    "more",
    "payload",
    "by",
    "trace",
    "fields[]",
  ],
  uses: [TASK, OPEN, PLACES, ENQUEUE, MARKS],
  answer: answers<[word: string, now: number, mark?: string]>(),
});
