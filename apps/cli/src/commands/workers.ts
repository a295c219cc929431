import type { WorkerView } from "@carillon/sdk";
import { type Globals, type Register, withClient } from "../command.js";
import { type Column, cut, table } from "../text.js";
import { when } from "../times.js";

export const registerWorkers: Register = (program, out) => {
  program
    .command("workers")
    .summary("worker processes: their queues and task types, and what each has under way")
    .description(
      [
        "Lists the worker processes of the namespace. STATE is ready; stopping: it takes no more jobs, and waits for its runs; silent: it",
        "missed a heartbeat, since it hangs or is cut off; or dead: it missed three. A dead worker stays listed for an hour. Plain BullMQ",
        "workers are not listed; `carillon queues` counts them. --json shows the first 20 runs of each; `carillon runs --state running`",
        "shows all.",
      ].join("\n"),
    )
    .action(async (_: unknown, command) => {
      const options: Globals = command.optsWithGlobals();
      const workers = await withClient(options, (client) => client.workers.list());
      if (options.json) return out.json(workers);
      await out.write(workers.length ? table(COLUMNS, workers, out.paint) : "No workers.\n");
    });
};

const COLUMNS: Column<WorkerView>[] = [
  { title: "WORKER", value: (worker) => worker.id },
  {
    title: "STATE",
    value: (worker) => worker.state,
    colour: ({ state, alive }) => (state === "ready" ? "green" : alive ? "yellow" : "red"),
  },
  { title: "HOST", value: (worker) => worker.host },
  { title: "PID", right: true, value: (worker) => String(worker.pid) },
  { title: "QUEUES", value: (worker) => cut(worker.queues.join(" "), 40) },
  { title: "TYPES", value: (worker) => cut(worker.types.join(" "), 60) },
  { title: "RUNS", right: true, value: ({ running }) => (running === undefined ? "-" : String(running)) },
  { title: "VERSION", value: ({ versions }) => versions.carillon },
  { title: "STARTED", value: (worker) => when(worker.started) },
  { title: "LAST BEAT", value: (worker) => when(worker.beat) },
];
