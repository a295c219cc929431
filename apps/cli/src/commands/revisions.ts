import type { AnswerTo } from "@carillon/ops";
import type { TaskRevision } from "@carillon/sdk/internal";
import type { Register } from "../command.js";
import { type Column, rows } from "../table.js";
import { putsText } from "./put.js";

export const registerRevisions: Register = (program, out) => {
  program
    .verb(
      "revisions",
      "earlier definitions of a task, newest first",
      "Lists the replaced definitions of a task, newest first; --json shows them in full.",
    )
    .calls("tasks.revisions", rows(out, "revisions", COLUMNS, "No revisions."), { but: ["compare"] });
  program
    .verb("restore", "put an earlier definition of a task again, or a deleted task")
    .calls("tasks.restore", (put) => putsText([put], out), {
      args: ["id", "number"],
      more: { maxPayloadBytes: Number.MAX_SAFE_INTEGER },
    });
  program
    .verb("deleted", "tasks that were deleted and can be restored, newest first")
    .calls("deleted.list", rows(out, "deleted", DELETED, "No deleted tasks."));
};

const DELETED: Column<AnswerTo<"deleted.list">["deleted"][number]>[] = [
  { title: "TASK", value: ({ task }) => `${task.owner}/${task.id}` },
  { title: "QUEUE", value: ({ task }) => task.queue },
  { title: "DELETED", value: ({ at }, { when }) => when(at) },
];

const COLUMNS: Column<TaskRevision>[] = [
  { title: "NUMBER", right: true, value: "number" },
  { title: "REPLACED", value: ({ until }, { when }) => when(until) },
  { title: "BY", value: "by" },
  { title: "TYPE", value: ({ definition }) => definition.type },
  { title: "SCHEDULE", value: ({ definition }) => JSON.stringify(definition.schedule) },
];
