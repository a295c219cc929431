import { type Globals, type Register, taskCommand, taskRef, wholeNumber, withClient } from "../command.js";
import { table } from "../text.js";
import { RUN_COLUMNS } from "./run-columns.js";

interface RunsOptions extends Globals {
  queue?: string;
  limit?: number;
  offset?: number;
}

export const registerRuns: Register = (program, out) => {
  taskCommand(program, "runs", "a task's runs, newest first")
    .option("-l, --limit <n>", "at most 1,000; default 20", wholeNumber)
    .option("--offset <n>", "leave out this many", wholeNumber)
    .action(async (task: string, _: unknown, command) => {
      const options: RunsOptions = command.optsWithGlobals();
      const { limit, offset } = options;
      const runs = await withClient(options, (client) =>
        client.runs.list(taskRef(task, options.queue, options.owner), {
          ...(limit === undefined ? {} : { limit }),
          ...(offset === undefined ? {} : { offset }),
        }),
      );
      if (options.json) return out.json(runs);
      await out.write(runs.length ? table(RUN_COLUMNS, runs, out.paint) : "No runs.\n");
    });
};
