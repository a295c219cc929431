import type { AnswerTo, InputTo } from "@carillon/ops";
import { covers, duration, scopeText } from "@carillon/ops/words";
import type { Task } from "@carillon/sdk";
import { type Globals, operate, type Register, taskRef, unbound, withClient } from "../command.js";
import { readMoment } from "../moment.js";
import { type Column, table } from "../table.js";
import { printable } from "../text.js";
import { LONG_TIMES, type TimeTexts } from "../times.js";
import { writeHolds } from "./holds-text.js";

interface FreezeOptions extends Globals {
  tag?: string;
  queue?: string;
  all?: boolean;
  from?: string;
  until?: string;
  timezone?: string;
  cron?: string;
  calendar?: string;
  for?: string;
  note?: string;
  by?: string;
  dryRun?: boolean;
}

export const registerFreeze: Register = (program, out) => {
  program
    .command("freeze")
    .summary("hold tasks, or all of an owner, a tag, a queue, or the namespace")
    .description(
      "Holds all tasks of a scope, also those put later, independently of pauses. Due times are skipped as\n" +
        "frozen; single times, retries and pending occurrences are held. Open runs go on. The scope is up to 100 tasks\n" +
        "of one owner, or --owner, --tag, --queue or --all.",
    )
    .argument("[tasks...]", "[owner/]id")
    .option("--tag <tag>", "only tasks with this tag")
    .option("--queue <queue>", "only tasks of this queue")
    .option("--all", "every task of the namespace")
    .option("--from <time>", "begin: 2h from now, or a time: ISO 8601, 14:00, tomorrow 09:00; default now")
    .option("--until <time>", "end, as --from; default: until it is lifted")
    .option("-z, --timezone <zone>", "zone of times without an offset, and of windows", "UTC")
    .option("--cron <expression>", "begin of recurring windows; with --for")
    .option("--calendar <expression>", "begin of recurring windows, as a calendar event; with --for")
    .option("--for <duration>", "length of each window: 2h")
    .option("--note <text>", "why")
    .option("--by <name>", "who")
    .option("--dry-run", "count what it would hold, and freeze nothing")
    .action(async (tasks: string[], _: unknown, command) => {
      const options: FreezeOptions = command.optsWithGlobals();
      const { owner, tag, queue, all, cron, calendar, note, timezone: zone = "UTC" } = options;
      const sdk = await import("@carillon/sdk/schedule");
      const put = await withClient(unbound(options), async (client, ops) => {
        const now = await client.serverTime();
        const time = (text: string | undefined, field: string) =>
          text === undefined ? undefined : readMoment(sdk, text, { zone, now, field, duration: "from" }).time;
        const windows = {
          ...(cron !== undefined && { cron, timezone: zone }),
          ...(calendar !== undefined && { calendar, timezone: zone }),
        };
        const input: InputTo<"freezes.put"> = {
          ...(tasks.length === 0
            ? { owner, queue }
            : { tasks: tasks.map((task) => taskRef(task, queue, owner)) }),
          ...{ tag, all, note },
          from: time(options.from, "--from"),
          until: time(options.until, "--until"),
          schedule: Object.keys(windows).length === 0 ? undefined : (windows as { cron: string }),
          for: options.for,
        };
        return ops.freezes.put({ ...input, dryRun: options.dryRun }, { by: options.by });
      });
      if (options.json) return out.json(put);
      if (!options.dryRun) await out.write(`freeze ${put.id}: ${scopeText(put)}, ${timesOf(put)}\n`);
      await writeHolds(out, put.holds, options.dryRun ? "would hold" : "holds");
    });
};

export const registerFreezes: Register = (program, out) => {
  program
    .command("freezes")
    .summary("list the freezes")
    .description("Lists the freezes that hold or will hold.")
    .action(async (_: unknown, command) => {
      await operate(
        command.optsWithGlobals(),
        out,
        (ops) => ops.freezes.list(),
        ({ freezes }) => (freezes.length ? table(COLUMNS, freezes, out) : "No freezes.\n"),
      );
    });
};

export const registerUnfreeze: Register = (program, out) => {
  program
    .command("unfreeze")
    .summary("lift a freeze")
    .description("Lifts a freeze. Pauses of tasks, and other freezes, stay.")
    .argument("<id>", "as freezes lists it")
    .action(async (id: string, _: unknown, command) => {
      await operate(
        command.optsWithGlobals(),
        out,
        (ops) => ops.freezes.delete({ id }).then(() => ({ id, lifted: true })),
        () => `lifted ${printable(id)}\n`,
      );
    });
};

export type FreezeView = AnswerTo<"freezes.list">["freezes"][number];

/** The freeze that holds a task now. */
export function freezeOf(freezes: readonly FreezeView[], task: Task): FreezeView | undefined {
  return freezes.find((one) => one.active && covers(one, task));
}

/** A freeze in one line: `owner acme, until 14:00 in 2 h, by ann: INC-43`. */
export function freezeText(freeze: FreezeView, times?: TimeTexts): string {
  const { by, note } = freeze;
  const who = by === undefined ? "" : `, by ${by}`;
  return `${scopeText(freeze)}, ${timesOf(freeze, times)}${who}${note === undefined ? "" : `: ${note}`}`;
}

function timesOf(
  { from, until, schedule, length, active, activeUntil }: FreezeView,
  { when }: TimeTexts = LONG_TIMES,
): string {
  if (schedule !== undefined) {
    const now = activeUntil === undefined ? "" : `, now until ${when(activeUntil)}`;
    const begin = "cron" in schedule ? schedule.cron : "calendar" in schedule ? schedule.calendar : "";
    return `${printable(String(begin))} for ${duration(length ?? 0)}${now}`;
  }
  const begin = active ? "" : `from ${when(from)} `;
  return `${begin}until ${until === undefined ? "lifted" : when(until)}`;
}

const COLUMNS: Column<FreezeView>[] = [
  { title: "ID", value: ({ id }) => id },
  { title: "TASKS", value: scopeText },
  { title: "ACTIVE", value: ({ active }) => (active ? "yes" : "no") },
  { title: "TIMES", value: timesOf },
  { title: "BY", value: ({ by }) => by ?? "-" },
  { title: "NOTE", value: ({ note }) => note ?? "-", least: 12 },
];
