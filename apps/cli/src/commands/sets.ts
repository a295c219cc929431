import type { AnswerTo } from "@carillon/ops";
import type { Register } from "../command.js";
import { type Column, table } from "../table.js";

export const registerSets: Register = (program, out) => {
  program
    .verb(
      "sets",
      "list the sets of tasks that are defined as code",
      "Lists the sets of tasks that carillon apply has stored.",
    )
    .answer(
      ({ ops }) => ops.sets.list(),
      ({ sets }) => (sets.length > 0 ? table(COLUMNS, sets, out) : "No sets.\n"),
    );
};

const COLUMNS: Column<AnswerTo<"sets.list">["sets"][number]>[] = [
  { title: "SET", value: ({ name }) => name },
  { title: "TASKS", right: true, value: ({ members }) => String(members) },
  { title: "VERSION", value: ({ version }) => version ?? "", least: 8 },
  { title: "APPLIED", value: ({ at }, { when }) => when(at) },
  { title: "BY", value: ({ by }) => by ?? "", least: 8 },
  { title: "", value: ({ applying }) => (applying === undefined ? "" : "interrupted") },
];
