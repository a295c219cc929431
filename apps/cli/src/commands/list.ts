import type { Operator } from "@carillon/ops";
import type { Client, ListOptions, Task } from "@carillon/sdk";
import type { Register } from "../command.js";
import type { Column } from "../table.js";
import { cut } from "../text.js";
import { type FreezeView, freezeOf, freezeText } from "./freeze.js";
import { GOOD, lastText } from "./run-columns.js";
import { pageOptions, printPages } from "./task-pages.js";

export const registerList: Register = (program, out) => {
  const command = program
    .verb(
      "list",
      "list tasks",
      "Lists tasks in the order of queue, owner, id, or by next time. --owner narrows it to one owner.",
    )
    .flag("-q, --queue <queue>", "of this queue");
  pageOptions(command).does(async (options) => {
    let freezes: readonly FreezeView[] | undefined;
    const holding = new Set<FreezeView>();
    const read = async (client: Client, filter: ListOptions, ops: Operator) => {
      if (!options.json) freezes ??= (await ops.freezes.list()).freezes;
      const page = await client.list(filter);
      for (const task of page.tasks) {
        const freeze = freezeOf(freezes ?? [], task);
        if (freeze) holding.add(freeze);
      }
      return page;
    };
    await printPages(
      options,
      columnsOf((task) => freezeOf(freezes ?? [], task) !== undefined),
      read,
      out,
    );
    for (const freeze of holding) out.note(`frozen: ${freezeText(freeze)} (carillon unfreeze ${freeze.id})`);
  });
};

const COLOURS = {
  scheduled: "green",
  running: "green",
  queued: "green",
  frozen: "yellow",
  shadow: "yellow",
  paused: "yellow",
  finished: "dim",
} as const;

/** A task without further times may have an open run, which is more useful to show. */
function stateText({ state, mode, openRuns }: Task, frozen: boolean): keyof typeof COLOURS {
  if (frozen && state === "scheduled") return "frozen";
  if (mode !== undefined && state === "scheduled") return mode;
  if (openRuns === undefined || state === "paused") return state;
  if (openRuns.running > 0) return "running";
  return state === "finished" ? "queued" : state;
}

/** The origin of intervals that name none. */
const USUAL_ORIGIN = ", counted from the Unix epoch";

function columnsOf(isFrozen: (task: Task) => boolean): Column<Task>[] {
  const state = (task: Task) => stateText(task, isFrozen(task));
  return [
    { title: "QUEUE", value: "queue", rank: 1, least: 8 },
    { title: "TASK", value: (task) => `${task.owner}/${task.id}` },
    { title: "TYPE", value: "type", rank: 2, least: 8 },
    { title: "STATE", value: state, colour: (task) => COLOURS[state(task)] },
    { title: "LAST", value: lastRun, colour: lastColour, least: 9 },
    {
      title: "SCHEDULE",
      value: ({ humanized }) => cut(humanized.replace(USUAL_ORIGIN, ""), 50),
      rank: 3,
      least: 16,
    },
    { title: "NEXT", value: (task, { when }) => when(task.nextExecution) },
  ];
}

function lastRun({ lastStatus, lastChecked }: Task): string {
  return lastText(lastStatus?.outcome, lastStatus?.finishedAt, lastChecked);
}

function lastColour({ lastStatus }: Task): "green" | "red" | undefined {
  if (lastStatus?.outcome === undefined) return undefined;
  return GOOD.includes(lastStatus.outcome) ? "green" : "red";
}
