import type { AnswerTo } from "@carillon/ops";
import { duration } from "@carillon/ops/words";
import { type Column, type Screen, table } from "../table.js";
import { utcIso } from "../times.js";

type Failures = AnswerTo<"runs.failures">;
type Group = Failures["groups"][number];

const number = (title: string, of: (group: Group) => number, rank?: number): Column<Group> => ({
  title,
  right: true,
  value: (group) => String(of(group)),
  ...(rank !== undefined && { rank }),
});

const SUBJECT: Column<Group> = { title: "OF", value: subjectOf };
const COUNTS: readonly Column<Group>[] = [
  number("RUNS", ({ runs }) => runs),
  number("MADE UP", ({ madeUp }) => madeUp, 4),
  number("OWED", ({ owed }) => owed),
  number("TASKS", ({ tasks }) => tasks, 3),
  number("FAILING", ({ failing }) => failing, 2),
];
const TIMES: readonly Column<Group>[] = [
  { title: "FIRST", value: ({ first }, { when }) => when(first), rank: 5 },
  { title: "LAST", value: ({ last }, { when }) => when(last) },
  { title: "STRIP", value: ({ strip }) => stripText(strip), rank: 8 },
];
const CAUSE: readonly Column<Group>[] = [
  ...COUNTS,
  number("OWNERS", ({ owners }) => owners, 3),
  number("QUEUES", ({ queues }) => queues, 3),
  ...TIMES,
  { title: "CAUSE", value: subjectOf, rank: 6 },
  { title: "OUTCOME", value: ({ cause }) => cause?.outcome ?? "", rank: 7 },
  { title: "ERROR", value: ({ cause }) => cause?.error ?? "", least: 40 },
  { title: "AT", value: ({ cause }) => cause?.frame ?? "", rank: 9 },
  { title: "BEFORE", value: ({ change, first }) => (change ? changeText(change, first) : ""), rank: 1 },
];

/** The answer of `runs.failures` as a table, or as CSV. */
export function failuresText(answer: Failures, out: Screen, csv?: boolean): string {
  const { runs, groups, from, to, more } = answer;
  if (csv) return groups.map(rowOf).reduce((text, row) => text + csvLine(row), csvLine(HEAD));
  const within = `within ${duration(to - from)}`;
  if (groups.length === 0) return `No failed runs ${within}.\n`;
  const rest = more > 0 ? `, and ${more} groups more` : "";
  const columns = groups[0]?.cause ? CAUSE : [SUBJECT, ...COUNTS, ...TIMES];
  return `${runs} failed runs ${within}${rest}\n${table(columns, groups, out)}`;
}

const HEAD = ["group", "runs", "made up", "owed", "tasks", "failing", "first", "last", "outcome", "error"];

function rowOf(group: Group): (string | number)[] {
  const { runs, madeUp, owed, tasks, failing, first, last, cause } = group;
  const times = [first, last].map(utcIso);
  return [
    ...[subjectOf(group), runs, madeUp, owed, tasks, failing, ...times],
    ...[cause?.outcome ?? "", cause?.error ?? ""],
  ];
}

function csvLine(values: readonly (string | number)[]): string {
  return `${values.map((value) => (typeof value === "number" ? value : `"${value.replaceAll('"', '""')}"`)).join(",")}\n`;
}

function subjectOf({ cause, owner, queue, task }: Group): string {
  return cause?.id ?? owner ?? queue ?? `${task?.queue} ${task?.owner}/${task?.id}`;
}

function changeText({ kind, by, text, at, id }: NonNullable<Group["change"]>, first: number): string {
  const what = [kind, text].filter(Boolean).join(" ");
  return `${what}${by ? ` by ${by}` : ""}, ${duration(first - at)} before${id ? ` (${id})` : ""}`;
}

/** One letter for each part, the higher the more runs. */
function stripText(strip: readonly number[]): string {
  const most = Math.max(1, ...strip);
  return strip.map((n) => (n === 0 ? "." : "▁▂▃▄▅▆▇█"[Math.ceil((8 * n) / most) - 1])).join("");
}
