import { type Display, displayText } from "@carillon/ops/words";
import type { Client, ListOptions, Task } from "@carillon/sdk";
import type { Register } from "../command.js";
import type { Column } from "../table.js";
import { type Colour, cut } from "../text.js";
import { localIso, type TimeTexts } from "../times.js";
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
    const holding = new Map<string, Display>();
    const read = async (client: Client, filter: ListOptions) => {
      const page = await client.list(filter);
      for (const { display } of options.json ? [] : page.tasks)
        if (display?.freeze !== undefined) holding.set(display.freeze, display);
      return page;
    };
    await printPages(options, COLUMNS, read, out);
    for (const [id, { note, ...display }] of holding)
      out.note(
        `${displayText(display, localIso)}${note === undefined ? "" : `: ${note}`} (carillon unfreeze ${id})`,
      );
  });
};

/** The others are yellow: somebody or something is in the way. */
const COLOURS: Partial<Record<Display["code"], Colour>> = {
  ...{ runs: "green", due: "green", "never-due": "dim", over: "dim", fails: "red" },
};

/** State of a task in words; a shadow is said to be one. */
export function stateText({ display, state, mode }: Task, { at }: TimeTexts): string {
  const text = display === undefined ? state : displayText(display, at);
  return mode === undefined ? text : `${text} (${mode})`;
}

/** The origin of intervals that name none. */
const USUAL_ORIGIN = ", counted from the Unix epoch";

const COLUMNS: Column<Task>[] = [
  { title: "QUEUE", value: "queue", rank: 1, least: 8 },
  { title: "TASK", value: (task) => `${task.owner}/${task.id}` },
  { title: "TYPE", value: "type", rank: 2, least: 8 },
  {
    title: "STATE",
    value: stateText,
    colour: ({ display, mode }) => (mode === undefined && display && COLOURS[display.code]) || "yellow",
    least: 16,
  },
  { title: "LAST", value: lastRun, colour: lastColour, least: 9 },
  {
    title: "SCHEDULE",
    value: ({ humanized }) => cut(humanized.replace(USUAL_ORIGIN, ""), 50),
    rank: 3,
    least: 16,
  },
  { title: "NEXT", value: ({ display }, { when }) => when(display?.next) },
];

function lastRun({ lastStatus, lastChecked }: Task): string {
  return lastText(lastStatus?.outcome, lastStatus?.finishedAt, lastChecked);
}

function lastColour({ lastStatus }: Task): "green" | "red" | undefined {
  if (lastStatus?.outcome === undefined) return undefined;
  return GOOD.includes(lastStatus.outcome) ? "green" : "red";
}
