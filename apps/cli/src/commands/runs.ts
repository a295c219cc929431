import type { Run, RunningRun } from "@carillon/sdk";
import { Option } from "commander";
import { type Globals, type Register, taskRef, type Use, wholeNumber } from "../command.js";
import { misuse } from "../failure.js";
import { table } from "../table.js";
import { RUN_COLUMNS, RUNNING_COLUMNS } from "./run-columns.js";

interface RunsOptions extends Globals {
  queue?: string;
  state?: "running";
  longest?: boolean;
  limit?: number;
  offset?: number;
}

export const registerRuns: Register = (program, out) => {
  program
    .verb(
      "runs",
      "a task's runs, newest first; or what runs now",
      "Lists a task's runs, newest first. With --state running: the runs that workers have under way, of all tasks or of one,\n" +
        "longest first: how long each runs, and the usual duration of its task, the mean of its runs that succeeded.",
    )
    .argument("[task]", "[owner/]id; no owner means --owner, else system")
    .option("-q, --queue <queue>", "the task's queue; needed when the same id exists in several")
    .addOption(new Option("--state <state>", "in this state").choices(["running"]))
    .option("--longest", "the same as --state running")
    .option("-l, --limit <n>", "at most 1,000; default 20, with --state 100", wholeNumber)
    .option("--offset <n>", "leave out this many", wholeNumber)
    .answer(
      async ({ client, options }: Use<RunsOptions>, task?: string) => {
        const { queue, owner, limit, offset, longest, state = longest && "running" } = options;
        const ref = task === undefined ? undefined : taskRef(task, queue, owner);
        if (state) {
          if (offset !== undefined) throw misuse("offset", "given with --state.", "Leave it out.");
          return { runs: await client.runs.list({ state, task: ref, queue, limit }) };
        }
        if (ref === undefined) throw misuse("task", "missing.", "Give a task, or --state running.");
        return { runs: await client.runs.list(ref, { limit, offset }) };
      },
      ({ runs }: { runs: Run[] | RunningRun[] }, _, { longest, state }) =>
        longest || state
          ? runs.length
            ? table(RUNNING_COLUMNS, runs as RunningRun[], out)
            : "Nothing runs.\n"
          : runs.length
            ? table(RUN_COLUMNS, runs, out)
            : "No runs.\n",
    );
};
