import type { AnswerTo } from "@carillon/ops";
import type { Register } from "../command.js";
import { type Column, rows } from "../table.js";
import { cut } from "../text.js";

export const registerWorkers: Register = (program, out) => {
  program
    .verb(
      "workers",
      "worker processes: their queues and task types, and their current runs",
      [
        "Lists the worker processes of the namespace. STATE is ready; stopping: it takes no more jobs, and waits for its runs; silent: it",
        "missed a heartbeat, because it hangs or is cut off; or dead: it missed three. A dead worker stays listed for an hour. Plain BullMQ",
        "workers are not listed; `carillon queues` counts them. --json shows the first 20 runs of each; `carillon running`",
        "shows all.",
      ].join(" "),
    )
    .calls("workers.list", rows(out, "workers", COLUMNS, "No workers."));
};

const COLUMNS: Column<AnswerTo<"workers.list">["workers"][number]>[] = [
  { title: "WORKER", value: "id" },
  {
    title: "STATE",
    value: "state",
    colour: ({ state, alive }) => (state === "ready" ? "green" : alive ? "yellow" : "red"),
  },
  { title: "HOST", value: "host", rank: 5 },
  { title: "PID", right: true, value: "pid", rank: 8 },
  { title: "QUEUES", value: (worker) => cut(worker.queues.join(" "), 40), rank: 1, least: 12 },
  { title: "TYPES", value: (worker) => cut(worker.types.join(" "), 60), rank: 2, least: 12 },
  { title: "RUNS", right: true, value: "running" },
  { title: "VERSION", value: ({ versions }) => versions.carillon, rank: 7 },
  { title: "STARTED", value: (worker, { when }) => when(worker.started), rank: 6 },
  { title: "LAST BEAT", value: (worker, { when }) => when(worker.beat), rank: 4 },
];
