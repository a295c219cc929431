import type { AnswerTo } from "@carillon/ops";
import { duration } from "@carillon/ops/words";
import {
  type Globals,
  limitOf,
  type Register,
  taskCommand,
  taskRef,
  type Use,
  wholeNumber,
} from "../command.js";
import { momentsOf } from "../moment.js";
import { type Column, table } from "../table.js";
import type { Colour } from "../text.js";
import { utcIso } from "../times.js";
import { GOOD } from "./run-columns.js";

type Tick = AnswerTo<"occurrences.ticks">["ticks"][number];

interface TickCommandOptions extends Globals {
  queue?: string;
  from?: string;
  to?: string;
  limit?: number;
}

/** Number of planned occurrences that are shown unless `--to` asks for more: the past matters most. */
const PLANNED = 10;

export const registerTicks: Register = (program, out) => {
  taskCommand(program, "ticks", "each occurrence of a task: skipped, run, or planned")
    .description(
      "Lists the occurrences of a task in order: those that were skipped and why, those that ran and how, and those to come.",
    )
    .option("--from <time>", "2h before now, or a time: ISO 8601, 09:00, yesterday; default 1d")
    .option(
      "--to <time>",
      "2h from now, or a time: ISO 8601, 09:00, tomorrow; default 2h, and at most ten that are planned",
    )
    .option("-n, --limit <n>", "at most 1,000; default 500", wholeNumber)
    .answer(
      async ({ ops, client, options }: Use<TickCommandOptions>, task: string) => {
        const { queue, owner } = options;
        const { from = 0 } = await momentsOf(client, { from: options.from ?? "1d" }, "before");
        const { to = 0 } = await momentsOf(client, { to: options.to ?? "2h" }, "from");
        const limit = limitOf(options.limit, 1_000);
        return ops.occurrences.ticks({ ...taskRef(task, queue, owner), from, to, limit });
      },
      ({ ticks, next }, _, { to }) => {
        const planned = ticks.findIndex(({ state }) => state === "planned");
        const shown = ticks.slice(0, to === undefined && planned >= 0 ? planned + PLANNED : undefined);
        const more = ticks.length - shown.length;
        if (more === 0 && next !== undefined) out.note(`there are more: --from ${utcIso(next)}`);
        const rest = more > 0 ? `… and ${more} more planned; --to shows them\n` : "";
        return (shown.length > 0 ? table(COLUMNS, shown, out) : "No occurrences.\n") + rest;
      },
    );
};

const COLUMNS: Column<Tick>[] = [
  { title: "TIME", value: ({ nominal }, { when }) => when(nominal) },
  { title: "STATE", value: stateText, colour: stateColour },
  { title: "TRIGGER", value: ({ trigger }) => trigger ?? "-", rank: 3 },
  { title: "LATE", right: true, value: ({ lateMs }) => ms(lateMs), rank: 2 },
  { title: "TOOK", right: true, value: ({ durationMs }) => ms(durationMs), rank: 1 },
  { title: "RUN", value: ({ run }) => run ?? "-", rank: 4 },
  { title: "WHY", value: whyText, least: 16 },
];

function ms(value: number | undefined): string {
  return value === undefined ? "-" : duration(value, 1);
}

function stateText({ state, outcome, runState }: Tick): string {
  return state === "enqueued" ? (outcome ?? runState ?? state) : state;
}

function stateColour({ state, outcome }: Tick): Colour | undefined {
  if (outcome !== undefined) return GOOD.includes(outcome) ? "green" : "red";
  return state === "planned" ? "dim" : "yellow";
}

function whyText({ reason, note, until, decisions }: Tick): string {
  const range = until === undefined ? "" : `${decisions ?? ""} until ${new Date(until).toISOString()}`;
  // Notes of freezes say "frozen by …" themselves.
  const why = reason !== undefined && note?.startsWith(reason) ? [note] : [reason, note];
  return [...why, range].filter(Boolean).join(", ");
}
