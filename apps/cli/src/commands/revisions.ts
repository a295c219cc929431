import type { AnswerTo } from "@carillon/ops";
import type { TaskRevision } from "@carillon/sdk/internal";
import { type Register, taskCommand, taskRef, wholeNumber } from "../command.js";
import { momentsOf } from "../moment.js";
import { type Column, table } from "../table.js";
import { putsText } from "./put.js";

export const registerRevisions: Register = (program, out) => {
  taskCommand(program, "revisions", "earlier definitions of a task, newest first")
    .description("Lists the replaced definitions of a task, newest first; --json shows them in full.")
    .answer(
      ({ ops, options: { queue, owner } }, task: string) => ops.tasks.revisions(taskRef(task, queue, owner)),
      ({ revisions }) => (revisions.length > 0 ? table(COLUMNS, revisions, out) : "No revisions.\n"),
    );
};

export const registerRestore: Register = (program, out) => {
  taskCommand(program, "restore", "put an earlier definition of a task again, or a deleted task")
    .description(
      "Puts an earlier definition of a task again; neither pauses nor resumes it. A task that was deleted in the last 7 days is\n" +
        "created again, paused if it was; its runs and statistics do not come back.",
    )
    .argument("[number]", "as revisions lists it; default the newest", wholeNumber)
    .flag("--by <name>", "who")
    .flag("--dry-run", "store nothing, show what would change")
    .answer(
      ({ ops, options }, task: string, number?: number) => {
        const { queue, owner, dryRun, by } = options;
        return ops.tasks.restore({ ...taskRef(task, queue, owner), number, dryRun }, { by });
      },
      (put) => putsText([put], out),
      { maxPayloadBytes: Number.MAX_SAFE_INTEGER },
    );
};

export const registerDeleted: Register = (program, out) => {
  program
    .verb(
      "deleted",
      "tasks that were deleted and can be restored, newest first",
      "Lists the tasks that were deleted in the last 7 days, newest first; restore puts them again.",
    )
    .flag("-q, --queue <queue>", "of this queue")
    .flag("--from <time>", "2h before now, or since then: ISO 8601, 09:00, yesterday")
    .answer(
      async ({ ops, client, options: { queue, from } }) =>
        ops.deleted.list({ queue, ...(await momentsOf(client, { from }, "before")) }),
      ({ deleted }) => (deleted.length > 0 ? table(DELETED, deleted, out) : "No deleted tasks.\n"),
    );
};

const DELETED: Column<AnswerTo<"deleted.list">["deleted"][number]>[] = [
  { title: "TASK", value: ({ task }) => `${task.owner}/${task.id}` },
  { title: "QUEUE", value: ({ task }) => task.queue },
  { title: "DELETED", value: ({ at }, { when }) => when(at) },
];

const COLUMNS: Column<TaskRevision>[] = [
  { title: "NUMBER", right: true, value: ({ number }) => String(number) },
  { title: "REPLACED", value: ({ until }, { when }) => when(until) },
  { title: "BY", value: ({ by }) => by ?? "-" },
  { title: "TYPE", value: ({ definition }) => definition.type },
  { title: "SCHEDULE", value: ({ definition }) => JSON.stringify(definition.schedule) },
];
