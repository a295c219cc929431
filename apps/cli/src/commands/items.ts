import type { AnswerTo } from "@carillon/ops";
import { duration } from "@carillon/ops/words";
import type { ItemState, RunItem } from "@carillon/sdk/internal";
import type { Register } from "../command.js";
import { type Column, rows } from "../table.js";
import { cut, type Paint } from "../text.js";

export const registerItems: Register = (program, out) => {
  program
    .verb("items", "the items of a fan-out run, by index")
    .calls("runs.items", rows(out, "items", COLUMNS, "No items."), {
      flags: { limit: "-l, --limit <n>" },
    });
  program
    .verb("find-items", "items of all runs of a task, by their data")
    .calls("runs.findItems", rows(out, "items", FOUND, "No such items."), {
      flags: { limit: "-l, --limit <n>" },
    });
  program
    .verb("retry-items", "do the failed items of a fan-out run again")
    .calls("runs.retryItems", ({ run }) => `enqueued the failed items: run ${run}\n`);
};

/** Attempts of those allowed; those whose worker died are not among them: `1/2, 3 died`. */
function triesOf({ attempts, crashes = 0, maxAttempts }: RunItem): string {
  return `${Math.max(0, attempts - crashes)}/${maxAttempts}${crashes > 0 ? `, ${crashes} died` : ""}`;
}

const COLOURS: Partial<Record<ItemState, Parameters<Paint>[0]>> = {
  failed: "red",
  completed: "green",
  active: "yellow",
};

const COLUMNS: readonly Column<RunItem>[] = [
  { title: "ITEM", right: true, value: "index" },
  { title: "STATUS", value: "status", colour: ({ status }) => COLOURS[status] },
  { title: "STARTED", value: ({ started }, { when }) => when(started), rank: 3 },
  {
    title: "TOOK",
    right: true,
    value: ({ started, finished }) =>
      started === undefined || finished === undefined ? "-" : duration(finished - started),
  },
  { title: "TRIES", right: true, value: triesOf },
  { title: "WORKER", value: "worker", rank: 4 },
  { title: "DATA", value: ({ data }) => cut(JSON.stringify(data), 40), rank: 2, least: 10 },
  { title: "ERROR", value: ({ error = "" }) => cut(error.split("\n")[0] ?? "", 60), rank: 1, least: 12 },
];

const FOUND: readonly Column<AnswerTo<"runs.findItems">["items"][number]>[] = [
  { title: "RUN", value: "run" },
  { title: "NOMINAL", value: ({ nominal }, { when }) => when(nominal) },
  ...COLUMNS.filter(({ rank }) => rank !== 3 && rank !== 4),
];
