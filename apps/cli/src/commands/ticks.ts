import type { Tick, TickOptions } from "@carillon/sdk";
import {
  type Globals,
  limitOf,
  type Register,
  taskCommand,
  taskRef,
  wholeNumber,
  withClient,
} from "../command.js";
import { readSince } from "../moment.js";
import { type Column, table } from "../table.js";
import type { Colour } from "../text.js";
import { duration, HERE } from "../times.js";
import { GOOD } from "./run-columns.js";

interface TickCommandOptions extends Globals {
  queue?: string;
  since?: string;
  until?: string;
  count?: number;
}

const HOUR = 3_600_000;

export const registerTicks: Register = (program, out) => {
  taskCommand(program, "ticks", "each occurrence of a task: skipped, run, or planned")
    .description(
      "Lists the occurrences of a task in order: those that were skipped and why, those that ran and how, and those to come.",
    )
    .option("--since <time>", "2h before now, or a time: ISO 8601, 09:00, yesterday; default 1d")
    .option("--until <time>", "a time: ISO 8601, 09:00, tomorrow; default 2 hours from now")
    .option("-n, --count <n>", "at most 1,000; default 500", wholeNumber)
    .action(async (task: string, _: unknown, command) => {
      const options: TickCommandOptions = command.optsWithGlobals();
      const { since = "1d", until, queue, owner, count } = options;
      const sdk = await import("@carillon/sdk");
      const found = await withClient(options, async (client) => {
        const now = await client.serverTime();
        const read = (text: string, field: "since" | "until") =>
          readSince(sdk, text, { zone: HERE, now, field });
        const range: TickOptions = {
          from: read(since, "since"),
          to: until === undefined ? now + 2 * HOUR : read(until, "until"),
          limit: limitOf(count, 1_000),
        };
        return client.ticks(taskRef(task, queue, owner), range);
      });
      if (options.json) return out.json(found);
      await out.write(found.ticks.length > 0 ? table(COLUMNS, found.ticks, out) : "No occurrences.\n");
      if (found.next !== undefined) out.note(`there are more: --since ${new Date(found.next).toISOString()}`);
    });
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
  return [reason, note, range].filter(Boolean).join(", ");
}
