import type { Operator } from "@carillon/ops";
import { duration, relative } from "@carillon/ops/words";
import type { Client, Skip, Task, TaskStats } from "@carillon/sdk";
import { type Globals, type Register, taskCommand, taskRef, withClient } from "../command.js";
import type { Output } from "../output.js";
import { type Column, rows, table } from "../table.js";
import { cut, facts } from "../text.js";
import { LONG_TIMES, when } from "../times.js";
import { type FreezeView, freezeOf, freezeText } from "./freeze.js";
import { stateText } from "./list.js";
import type { Fact } from "./policies-text.js";
import { statsLine } from "./stats-text.js";

/** Ledger lines shown to people; --json has all. */
const SHOWN = 10;

/** An occurrence that is kept for later. */
type Pending = Task["pending"][number];

/** A task and its history. */
interface Whole {
  readonly task: Task;
  readonly stats: TaskStats;
  readonly skips: readonly Skip[];
  readonly freeze: FreezeView | undefined;
}

export const registerShow: Register = (program, out) => {
  taskCommand(program, "show", "show a task, how it went, and what of it was not enqueued").action(
    async (task: string, _: unknown, command) => {
      const options: Globals & { queue?: string } = command.optsWithGlobals();
      const whole = await withClient(options, (client, ops) => ask(client, ops, task, options));
      if (!options.json) {
        // Loaded only here, because it loads the SDK.
        const { policyFacts } = await import("./policies-text.js");
        return out.write(describe(whole, policyFacts(whole.task), out));
      }
      const { task: found, stats, skips } = whole;
      await out.json({ ...found, stats, skips });
    },
  );
  program
    .verb("skips", "occurrences of a task that were not enqueued, and why; newest first")
    .calls("runs.skips", rows(out, "skips", SKIPS, "No skips."));
};

async function ask(
  client: Client,
  ops: Operator,
  text: string,
  { queue, owner }: Globals & { queue?: string },
): Promise<Whole> {
  const task = await client.get(taskRef(text, queue, owner));
  const name = { queue: task.queue, owner: task.owner, id: task.id };
  const [stats, skips, { freezes }] = await Promise.all([
    client.runs.stats(name),
    client.runs.skips(name),
    ops.freezes.list(),
  ]);
  return { task, stats, skips, freeze: freezeOf(freezes, task) };
}

function describe({ task, stats, skips, freeze }: Whole, policies: readonly Fact[], out: Output): string {
  const { paused, pending } = task;
  const note = paused?.note ? `: ${paused.note}` : "";
  const head = facts(
    [
      ["task", `${task.owner}/${task.id}`],
      ["queue", task.queue],
      ["type", task.type],
      ["description", task.description],
      ["state", stateText(task, LONG_TIMES)],
      ["mode", task.mode],
      ["paused", paused && `${when(paused.at)}${byText(paused.by)}${note}`],
      ["frozen", freeze && freezeText(freeze)],
      ["schedule", task.humanized],
      ["definition", JSON.stringify(task.schedule)],
      ["next", `${when(task.display?.next)}${task.display?.skips ? "; times before are skipped" : ""}`],
      ["last decided", when(task.cursor)],
      ["enqueued", enqueuedText(task)],
      ["last run", lastRun(task)],
      ["last nothing to do", task.lastChecked === undefined ? undefined : when(task.lastChecked)],
      ["last error", cut(task.lastStatus?.error?.split("\n")[0] ?? "", 200)],
      ["statistics", statsLine(stats)],
      ...policies,
      ["priority", task.priority ? String(task.priority) : undefined],
      ["tags", task.tags.join(", ")],
      ["subject", task.subject],
      ["submitter", task.submitter],
      ["group", task.group],
      ["payload", cut(JSON.stringify(task.payload), 500)],
      ["generation", String(task.generation)],
      ["created", `${when(task.created)}${byText(task.createdBy)}`],
      ["updated", when(task.updated)],
      ["last put by", task.updatedBy],
    ],
    out.paint,
  );
  const waiting = pending.length > 0 ? `\nWaiting:\n${table(PENDING, pending, out)}` : "";
  return `${head}${waiting}${skipped(skips, out)}`;
}

function byText(name: string | undefined): string {
  return name === undefined ? "" : ` by ${name}`;
}

/** `3 of 10`, if the schedule has a `maxRuns`. */
function enqueuedText({ fired, schedule: { maxRuns } }: Task): string {
  return maxRuns === undefined ? `${fired}` : `${fired} of ${maxRuns}`;
}

function lastRun({ lastStatus }: Task): string | undefined {
  if (lastStatus === undefined) return undefined;
  const { run, executedAt, finishedAt, node, outcome } = lastStatus;
  const ago = finishedAt === undefined ? "" : ` ${relative(finishedAt, Date.now())}`;
  const took =
    executedAt === undefined || finishedAt === undefined ? "" : ` after ${duration(finishedAt - executedAt)}`;
  return `${outcome}${ago}${took}${node === undefined ? "" : ` on ${node}`}: ${run}`;
}

function skipped(skips: readonly Skip[], out: Output): string {
  if (skips.length === 0) return "";
  const more = skips.length > SHOWN ? `… and ${skips.length - SHOWN} more; --json shows them\n` : "";
  return `\nSkips:\n${table(SKIPS, skips.slice(0, SHOWN), out)}${more}`;
}

const PENDING: Column<Pending>[] = [
  { title: "NOMINAL", value: ({ nominal }, { when }) => when(nominal) },
  { title: "TRIGGER", value: "trigger" },
  { title: "UNTIL", value: ({ at }, { when }) => (at === undefined ? "no run is in its way" : when(at)) },
];

const SKIPS: Column<Skip>[] = [
  { title: "REASON", value: "reason" },
  { title: "FROM", value: (entry, { when }) => when(entry.from) },
  { title: "TO", value: (entry, { when }) => (entry.to === entry.from ? "" : when(entry.to)) },
  { title: "BY", value: "by", rank: 2, least: 8 },
  { title: "NOTE", value: (entry) => entry.note ?? "", rank: 1, least: 12 },
];
