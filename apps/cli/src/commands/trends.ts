import type { AnswerTo } from "@carillon/ops";
import { duration, type TrendFigure, trendText } from "@carillon/ops/words";
import type { Register } from "../command.js";
import { type Column, type Screen, table } from "../table.js";
import { counted } from "../text.js";

type Trends = AnswerTo<"runs.trends">;
type Row = Trends["rows"][number];
type Deploy = Trends["deploys"][number];

const figure = (title: string, name: TrendFigure, rank?: number): Column<Row> => ({
  title,
  right: true,
  value: (row) => {
    const { text = "-", change } = trendText(row, name) ?? {};
    return change === undefined ? text : `${text} (${change})`;
  },
  colour: (row) => (trendText(row, name)?.worse ? "red" : undefined),
  ...(rank !== undefined && { rank }),
});

const COLUMNS: readonly Column<Row>[] = [
  { title: "OF", value: subjectOf },
  figure("RUNS", "runs"),
  figure("WENT WELL", "share"),
  figure("P50", "p50", 1),
  figure("P95", "p95"),
  figure("LATE", "late", 2),
  figure("SKIPPED", "skipped", 3),
  {
    title: "COMPARED",
    value: ({ tasks, compared }) => (compared === tasks ? "all" : `${compared} of ${counted(tasks, "task")}`),
    rank: 4,
  },
  { title: "RECORDS SINCE", value: ({ since }, { at }) => (since === undefined ? "" : at(since)), rank: 5 },
];

const DEPLOYS: readonly Column<Deploy>[] = [
  { title: "APPLIED", value: ({ at }, { when }) => when(at) },
  { title: "SET", value: "set" },
  { title: "VERSION", value: "version" },
  { title: "BY", value: ({ by }) => by || "-", rank: 1 },
];

export const registerTrends: Register = (program, out) => {
  program
    .verb("trends", "a week against the last, by task, owner, queue or tag")
    .calls("runs.trends", (answer) => trendsText(answer, out));
};

function trendsText({ rows, runs, from, to, start, more, deploys }: Trends, out: Screen): string {
  const length = duration(to - from);
  if (rows.length === 0) return `No runs within ${length}, and none in the time before.\n`;
  const isCut = start > from - (to - from);
  const head = [
    `${counted(runs, "run")} within ${length}, against the time before`,
    ...(isCut ? ["too many runs to compare: give a later --from"] : []),
    ...(more > 0 ? [`${counted(more, "row")} more`] : []),
  ].join("; ");
  const applied = deploys.length === 0 ? "" : `\n${table(DEPLOYS, deploys, out)}`;
  return `${head}\n${table(COLUMNS, rows, out)}${applied}`;
}

/** The task, owner, queue or tag of a row. */
function subjectOf({ task, owner, queue, tag }: Row): string {
  return owner ?? queue ?? (tag === "" ? "(no tag)" : tag) ?? `${task?.queue} ${task?.owner}/${task?.id}`;
}
