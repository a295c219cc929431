import { type Register, taskCommand, taskRef, wholeNumber } from "../command.js";
import { table } from "../table.js";
import { RUN_COLUMNS, RUNNING_COLUMNS } from "./run-columns.js";

export const registerRuns: Register = (program, out) => {
  taskCommand(program, "runs", "a task's runs, newest first")
    .flag("-l, --limit <n>", "at most 1,000; default 20", wholeNumber)
    .flag("--offset <n>", "leave out this many", wholeNumber)
    .answer(
      async ({ client, options: { queue, owner, limit, offset } }, task: string) => ({
        runs: await client.runs.list(taskRef(task, queue, owner), { limit, offset }),
      }),
      ({ runs }) => (runs.length ? table(RUN_COLUMNS, runs, out) : "No runs.\n"),
    );
};

export const registerRunning: Register = (program, out) => {
  program
    .verb(
      "running",
      "what runs now, of all tasks or of one, longest first",
      "Lists the runs that workers have under way, of all tasks or of one, longest first: how long each runs, and the\n" +
        "usual duration of its task, the mean of its runs that succeeded.",
    )
    .argument("[task]", "[owner/]id; default all tasks")
    .flag("-q, --queue <queue>", "of this queue")
    .flag("-l, --limit <n>", "at most 1,000; default 100", wholeNumber)
    .answer(
      async ({ client, options: { queue, owner, limit } }, task?: string) => ({
        runs: await client.runs.running({
          task: task === undefined ? undefined : taskRef(task, queue, owner),
          queue,
          limit,
        }),
      }),
      ({ runs }) => (runs.length ? table(RUNNING_COLUMNS, runs, out) : "Nothing runs.\n"),
    );
};
