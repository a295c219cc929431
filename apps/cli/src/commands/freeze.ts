import type { AnswerTo } from "@carillon/ops";
import { covers, duration, scopeText } from "@carillon/ops/words";
import type { Task } from "@carillon/sdk";
import { type Register, taskRef } from "../command.js";
import { type Column, rows } from "../table.js";
import { printable } from "../text.js";
import { LONG_TIMES, type TimeTexts } from "../times.js";
import { holdsText } from "./holds-text.js";

export const registerFreezes: Register = (program, out) => {
  program
    .verb("freeze", "hold tasks, or all of an owner, a tag, a queue, or the namespace")
    .needs("-z, --timezone <zone>", "zone of times without an offset, and of windows", { otherwise: "UTC" })
    .flag("--cron <expression>", "begin of recurring windows; with --for")
    .flag("--calendar <expression>", "begin of recurring windows, as a calendar event; with --for")
    .calls(
      "freezes.put",
      (put, { dryRun }) =>
        (dryRun ? "" : `freeze ${put.id}: ${scopeText(put)}, ${timesOf(put)}\n`) +
        holdsText(out, put.holds, dryRun ? "would hold" : "holds"),
      {
        args: ["tasks"],
        but: ["schedule"],
        times: "from",
        more: { unbound: true },
        input({ tasks, queue, owner }, { options: { cron, calendar, timezone } }) {
          const windows = {
            ...(cron !== undefined && { cron, timezone }),
            ...(calendar !== undefined && { calendar, timezone }),
          };
          return {
            ...(tasks && { queue: undefined, owner: undefined }),
            tasks: tasks?.map((task) => taskRef(task as string, queue, owner)),
            schedule: Object.keys(windows).length === 0 ? undefined : (windows as { cron: string }),
          };
        },
      },
    );
  program
    .verb("freezes", "list the freezes")
    .calls("freezes.list", rows(out, "freezes", COLUMNS, "No freezes."));
  program
    .verb("unfreeze", "lift a freeze")
    .calls("freezes.delete", (_, { id }) => `lifted ${printable(id)}\n`, {
      also: ({ id }) => ({ id, lifted: true }),
    });
};

export type FreezeView = AnswerTo<"freezes.list">["freezes"][number];

export function freezeOf(freezes: readonly FreezeView[], task: Task): FreezeView | undefined {
  return freezes.find((one) => one.active && covers(one, task));
}

/** A freeze in one line: `owner acme, until 14:00 in 2 h, by ann: INC-43`. */
export function freezeText(freeze: FreezeView): string {
  const { by, note } = freeze;
  const who = by === undefined ? "" : `, by ${by}`;
  return `${scopeText(freeze)}, ${timesOf(freeze)}${who}${note === undefined ? "" : `: ${note}`}`;
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
  { title: "ID", value: "id" },
  { title: "TASKS", value: scopeText },
  { title: "ACTIVE", value: ({ active }) => (active ? "yes" : "no") },
  { title: "TIMES", value: timesOf },
  { title: "BY", value: "by" },
  { title: "NOTE", value: "note", least: 12 },
];
