import type { AnswerTo } from "@carillon/ops";
import type { Register } from "../command.js";
import { type Column, rows } from "../table.js";

export const registerSets: Register = (program, out) => {
  program
    .verb("sets", "list the sets of tasks that are defined as code")
    .calls("sets.list", rows(out, "sets", COLUMNS, "No sets."));
};

const COLUMNS: Column<AnswerTo<"sets.list">["sets"][number]>[] = [
  { title: "SET", value: "name" },
  { title: "TASKS", right: true, value: "members" },
  { title: "VERSION", value: ({ version }) => version ?? "", least: 8 },
  { title: "APPLIED", value: ({ at }, { when }) => when(at) },
  { title: "BY", value: ({ by }) => by ?? "", least: 8 },
  { title: "", value: ({ applying }) => (applying === undefined ? "" : "interrupted") },
];
