import type { Task } from "@carillon/sdk";
import type { Register } from "../command.js";
import type { Column } from "../table.js";
import { cut } from "../text.js";
import { relative } from "../times.js";
import { GOOD } from "./run-columns.js";
import { type PageOptions, pageOptions, printPages } from "./task-pages.js";

export const registerList: Register = (program, out) => {
  const command = program
    .command("list")
    .summary("list tasks")
    .description(
      "Lists tasks in the order of queue, owner, id, or by next time. --owner narrows it to one owner.",
    )
    .option("-q, --queue <queue>", "of this queue");
  pageOptions(command).action(async (_: unknown, command) => {
    const options: PageOptions = command.optsWithGlobals();
    await printPages(options, COLUMNS, (client, filter) => client.list(filter), out);
  });
};

const COLOURS = {
  scheduled: "green",
  running: "green",
  queued: "green",
  paused: "yellow",
  finished: "dim",
} as const;

/** A task without further times may have an open run, which is more useful to show. */
function stateText({ state, openRuns }: Task): keyof typeof COLOURS {
  if (openRuns === undefined || state === "paused") return state;
  if (openRuns.running > 0) return "running";
  return state === "finished" ? "queued" : state;
}

const COLUMNS: Column<Task>[] = [
  { title: "QUEUE", value: (task) => task.queue, rank: 1, least: 8 },
  { title: "TASK", value: (task) => `${task.owner}/${task.id}` },
  { title: "TYPE", value: (task) => task.type, rank: 2, least: 8 },
  { title: "STATE", value: stateText, colour: (task) => COLOURS[stateText(task)] },
  { title: "LAST", value: lastRun, colour: lastColour, least: 9 },
  { title: "SCHEDULE", value: (task) => cut(task.humanized, 50), rank: 3, least: 16 },
  { title: "NEXT", value: (task, { when }) => when(task.nextExecution) },
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
