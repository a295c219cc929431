import type { AnswerTo } from "@carillon/ops";
import { dueOwnerText, ownerLimitText } from "@carillon/ops/words";
import { type Globals, limitOf, type Register, type Use, wholeNumber } from "../command.js";
import type { Output } from "../output.js";
import { type Column, table } from "../table.js";
import type { TimeTexts } from "../times.js";

type Upcoming = AnswerTo<"occurrences.upcoming">["upcoming"][number];

interface UpcomingOptions extends Globals {
  queue?: string;
  limit?: number;
}

/** Default limit of a forecast. */
const MOST = 1_000;

export const registerUpcoming: Register = (program, out) => {
  program
    .verb(
      "upcoming",
      "the tasks that are due next",
      "Lists the tasks that are due next, earliest first, each once.",
    )
    .option("-q, --queue <queue>", "of this queue")
    .option("-n, --limit <n>", "at most 1,000; default 20", wholeNumber)
    .answer(
      async ({ ops, options: { queue, limit } }: Use<UpcomingOptions>) =>
        ops.occurrences.upcoming({ queue, limit: limitOf(limit, 1_000) }),
      ({ upcoming, overdue = [] }) => {
        const owners = overdue.map((one) => `Overdue in the queue ${one.queue}: ${dueOwnerText(one)}.\n`);
        return [shown(upcoming, out) ?? "Nothing is due.\n", ...owners].join("");
      },
    );
};

export const registerForecast: Register = (program, out) => {
  program
    .verb(
      "forecast",
      "each occurrence of the next hours",
      "Lists each occurrence that falls due within a time from now, by the current schedules, earliest first.\n" +
        "Missed occurrences that the task's catch-up policy keeps are due now.",
    )
    .argument("<duration>", "30m, 2h, 1d")
    .option("-q, --queue <queue>", "of this queue")
    .option("-n, --limit <n>", "at most 100,000; default 1,000", wholeNumber)
    .answer(
      async ({ ops, options: { queue, limit } }: Use<UpcomingOptions>, within: string) => {
        const found = await ops.occurrences.forecast({ within, queue, limit: limitOf(limit, 100_000) });
        if (found.upcoming.length === (limit ?? MOST))
          out.note("there may be more: --limit sets the number listed.");
        return found;
      },
      ({ upcoming }, [within]) => shown(upcoming, out) ?? `Nothing is due within ${within}.\n`,
    );
};

/** Undefined: nothing is to come. */
function shown(found: readonly Upcoming[], out: Output): string | undefined {
  return found.length ? table(columnsOf(found), found, out) : undefined;
}

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
