import { duration } from "@carillon/ops/words";
import type { ItemState, RunItem } from "@carillon/sdk/internal";
import { collect, type Register, wholeNumber } from "../command.js";
import { type Column, table } from "../table.js";
import { cut, type Paint } from "../text.js";
import { runCommand } from "./run.js";

/** Complete on purpose: a new status does not compile until it can be asked for. */
const STATES = Object.keys({
  waiting: true,
  active: true,
  completed: true,
  failed: true,
  cancelled: true,
} satisfies Record<ItemState, true>) as ItemState[];

export const registerItems: Register = (program, out) => {
  runCommand(program, "items", "the items of a fan-out run, by index")
    .flag("--status <status>", `with this status; repeatable: ${STATES.join(", ")}`, collect<ItemState>)
    .flag("-l, --limit <n>", "at most 1,000; default 100", wholeNumber)
    .flag("--cursor <cursor>", "of the page before")
    .answer(
      ({ ops, options: { status, limit, cursor } }, id: string) =>
        ops.runs.items({ id, status, limit, cursor }),
      ({ items, cursor }) => {
        out.more(cursor);
        return items.length ? table(COLUMNS, items, out) : "No items.\n";
      },
    );
};

export const registerRetryItems: Register = (program) => {
  runCommand(program, "retry-items", "do the failed items of a fan-out run again")
    .description(
      "Starts a new run of the items of this one that failed or that its time limit left, and no others. Idempotent:\n" +
        "given again, it names the same new run. Refused if the run is not over or has no such items.",
    )
    .flag("--by <name>", "who")
    .answer(
      ({ ops, options: { by } }, id: string) => ops.runs.retryItems({ id }, { by }),
      ({ run }) => `enqueued the failed items: run ${run}\n`,
    );
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
  { title: "ITEM", right: true, value: ({ index }) => String(index) },
  {
    title: "STATUS",
    value: ({ status }) => status,
    colour: ({ status }) => COLOURS[status],
  },
  { title: "STARTED", value: ({ started }, { when }) => when(started), rank: 3 },
  {
    title: "TOOK",
    right: true,
    value: ({ started, finished }) =>
      started === undefined || finished === undefined ? "-" : duration(finished - started),
  },
  { title: "TRIES", right: true, value: triesOf },
  { title: "WORKER", value: ({ worker }) => worker ?? "-", rank: 4 },
  { title: "DATA", value: ({ data }) => cut(JSON.stringify(data), 40), rank: 2, least: 10 },
  { title: "ERROR", value: ({ error = "" }) => cut(error.split("\n")[0] ?? "", 60), rank: 1, least: 12 },
];
