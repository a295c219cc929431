import type { Client, ListOptions, Task } from "@carillon/sdk";
import { Option } from "commander";
import { type Globals, type Register, wholeNumber, withClient } from "../command.js";
import { misuse } from "../failure.js";
import type { Output } from "../output.js";
import { type Column, cut, table } from "../text.js";
import { relative, when } from "../times.js";
import { GOOD } from "./run-columns.js";

interface ListCommandOptions extends Globals {
  queue?: string;
  tag?: string;
  state?: Task["state"];
  deliveries?: boolean;
  limit?: number;
  cursor?: string;
  all?: boolean;
}

/** A page when all are asked for: one round trip's worth. */
const PAGE = 500;

export const registerList: Register = (program, out) => {
  program
    .command("list")
    .summary("list tasks")
    .description("Lists tasks in the order of queue, owner, id. --owner narrows it to one owner.")
    .option("-q, --queue <queue>", "of this queue")
    .option("-t, --tag <tag>", "with this tag")
    .addOption(new Option("--state <state>", "in this state").choices(["scheduled", "paused", "finished"]))
    .option("--deliveries", "also deliveries of alerts, the tasks of the queue carillon-alerts")
    .option("-l, --limit <n>", "a page's size, at most 1,000; default 100", wholeNumber)
    .option("--cursor <cursor>", "of the page before")
    .option("--all", "all pages; with --json one task a line")
    .action(async (_: unknown, command) => {
      const options: ListCommandOptions = command.optsWithGlobals();
      const filter = pick(options);
      if (options.all && options.cursor !== undefined) {
        throw misuse("cursor", "given beside --all.", "Leave one of the two out.");
      }
      await withClient(options, async (client) => {
        if (options.all) return listAll(client, filter, options.json, out);
        const page = await client.list(filter);
        if (options.json) return out.json(page);
        await out.write(page.tasks.length ? table(COLUMNS, page.tasks, out.paint) : "No tasks.\n");
        // Beside the table, not in it: what reads the table does not want it.
        if (page.cursor) out.stderr.write(`There may be more: --cursor ${page.cursor}\n`);
      });
    });
};

/** Owner too: a bound client shows its owner's tasks only. */
function pick({ queue, owner, tag, state, deliveries, limit, cursor }: ListCommandOptions): ListOptions {
  return { queue, owner, tag, state, deliveries, limit, cursor };
}

async function listAll(
  client: Client,
  filter: ListOptions,
  json: boolean | undefined,
  out: Output,
): Promise<void> {
  const widths: number[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.list({ ...filter, limit: filter.limit ?? PAGE, cursor });
    cursor = page.cursor;
    if (json) await out.write(page.tasks.map((task) => `${JSON.stringify(task)}\n`).join(""));
    else if (page.tasks.length > 0) await out.write(table(COLUMNS, page.tasks, out.paint, widths));
  } while (cursor !== undefined && !out.closed);
  if (!json && widths.length === 0) await out.write("No tasks.\n");
}

const COLOURS = {
  scheduled: "green",
  running: "green",
  queued: "green",
  paused: "yellow",
  finished: "dim",
} as const;

/** A task whose schedule has no time left may have a run that is not over: that is what a person wants to know. */
function stateText({ state, openRuns }: Task): keyof typeof COLOURS {
  if (openRuns === undefined || state === "paused") return state;
  if (openRuns.running > 0) return "running";
  return state === "finished" ? "queued" : state;
}

const COLUMNS: Column<Task>[] = [
  { title: "QUEUE", value: (task) => task.queue },
  { title: "TASK", value: (task) => `${task.owner}/${task.id}` },
  { title: "TYPE", value: (task) => task.type },
  { title: "STATE", value: stateText, colour: (task) => COLOURS[stateText(task)] },
  { title: "LAST", value: lastRun, colour: lastColour },
  { title: "SCHEDULE", value: (task) => cut(task.humanized, 50) },
  { title: "NEXT", value: (task) => when(task.nextExecution) },
];

function lastRun({ lastStatus }: Task): string {
  if (lastStatus === undefined) return "-";
  const { outcome, finishedAt } = lastStatus;
  return `${outcome}${finishedAt === undefined ? "" : ` ${relative(finishedAt, Date.now())}`}`;
}

function lastColour({ lastStatus }: Task): "green" | "red" | undefined {
  if (lastStatus?.outcome === undefined) return undefined;
  return GOOD.includes(lastStatus.outcome) ? "green" : "red";
}
