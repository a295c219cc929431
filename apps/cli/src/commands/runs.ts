import type { Run } from "@carillon/sdk";
import { type Globals, type Register, taskCommand, taskRef, wholeNumber, withClient } from "../command.js";
import { type Column, cut, table } from "../text.js";
import { duration, localIso, when } from "../times.js";

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
        client.runs(taskRef(task, options.queue, options.owner), {
          ...(limit === undefined ? {} : { limit }),
          ...(offset === undefined ? {} : { offset }),
        }),
      );
      if (options.json) return out.json(runs);
      await out.write(runs.length ? table(COLUMNS, runs, out.paint) : "No runs.\n");
    });
};

const COLUMNS: Column<Run>[] = [
  { title: "RUN", value: (run) => run.id },
  { title: "NOMINAL", value: (run) => localIso(run.nominal) },
  { title: "TRIGGER", value: (run) => run.trigger },
  {
    title: "STATE",
    value: (run) => run.outcome ?? run.state,
    colour: ({ outcome }) => (outcome === undefined ? "yellow" : outcome === "succeeded" ? "green" : "red"),
  },
  { title: "ENQUEUED", value: (run) => when(run.enqueued) },
  { title: "TOOK", right: true, value: took },
  { title: "TRIES", right: true, value: (run) => String(run.attempts) },
  { title: "WORKER", value: (run) => run.worker ?? "-" },
  // The first line: the rest is a stack.
  { title: "ERROR", value: (run) => cut(run.error?.split("\n")[0] ?? "", 60) },
];

function took({ started, finished }: Run): string {
  return started === undefined || finished === undefined ? "-" : duration(finished - started);
}
