import type { AnswerTo } from "@carillon/ops";
import { dueOwnerText, ownerLimitText } from "@carillon/ops/words";
import type { Register } from "../command.js";
import { summaryOf } from "../fields.js";
import { type Column, table } from "../table.js";
import type { TimeTexts } from "../times.js";

type Upcoming = AnswerTo<"occurrences.upcoming">["upcoming"][number];

export const registerUpcoming: Register = (program, out) => {
  program
    .verb(
      "upcoming",
      "the tasks that are due next, or each occurrence of the next hours",
      summaryOf("occurrences.upcoming"),
    )
    .takes("occurrences.upcoming", ["within", "queue", "limit"])
    .answer(
      async ({ ops, options }) => {
        const { within, queue, limit } = options;
        const found = await ops.occurrences.upcoming({ within, queue, limit });
        if (within !== undefined && found.upcoming.length === (limit ?? 1_000))
          out.note("there may be more: --limit sets the number listed.");
        return found;
      },
      ({ upcoming, overdue = [] }, _, { within }) => {
        if (upcoming.length === 0)
          return `Nothing is due${within === undefined ? "" : ` within ${within}`}.\n`;
        const owners = overdue.map((one) => `Overdue in the queue ${one.queue}: ${dueOwnerText(one)}.\n`);
        return [table(columnsOf(upcoming), upcoming, out), ...owners].join("");
      },
    );
};

function columnsOf(found: readonly Upcoming[]): Column<Upcoming>[] {
  // Nominal and due times are usually equal.
  const apart = found.some(({ nominal, due }) => nominal !== due);
  const frozen = {
    title: "FROZEN",
    value: ({ frozen }: Upcoming, { when }: TimeTexts) => {
      if (!frozen) return "";
      const who = frozen.by === undefined ? "" : ` by ${frozen.by}`;
      const end = frozen.until === undefined ? "lifted" : when(frozen.until);
      return `until ${end}${who}${frozen.note === undefined ? "" : `: ${frozen.note}`}`;
    },
    colour: () => "yellow" as const,
    least: 12,
  };
  const held = {
    title: "WAITS",
    value: ({ task, limit }: Upcoming) => (limit === undefined ? "" : ownerLimitText(task.owner, limit)),
    colour: () => "yellow" as const,
    least: 12,
  };
  const nominal = { title: "NOMINAL", value: (one: Upcoming, { at }: TimeTexts) => at(one.nominal), rank: 2 };
  return [
    { title: "DUE", value: ({ due }, { when }) => when(due) },
    ...(apart ? [nominal] : []),
    { title: "QUEUE", value: ({ task }) => task.queue, rank: 1, least: 8 },
    { title: "TASK", value: ({ task }) => `${task.owner}/${task.id}` },
    ...(found.some((one) => one.frozen) ? [frozen] : []),
    ...(found.some((one) => one.limit !== undefined) ? [held] : []),
  ];
}
