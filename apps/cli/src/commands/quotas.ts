import type { AnswerTo, InputTo } from "@carillon/ops";
import { duration } from "@carillon/ops/words";
import type { Register } from "../command.js";
import { misuse } from "../failure.js";
import { type Column, rows } from "../table.js";

export const registerQuotas: Register = (program, out) => {
  const quotas = program
    .verb("quotas", "most tasks, shortest interval and most waiting jobs")
    .calls("quotas.list", rows(out, "quotas", COLUMNS, "No quotas."));
  quotas.verb("set", "set a quota, replacing the earlier one").calls("quotas.set", done("set"), {
    input({ scope: _, ...bounds }) {
      if (Object.values(bounds).every((value) => value === undefined))
        throw misuse("quota", "missing.", "Give --tasks, --interval or --waiting; quotas rm removes it.");
    },
  });
  quotas
    .verb("rm", "remove a quota", "Removes the quota of a scope.")
    .calls("quotas.set", done("removed"), { only: ["scope"] });
};

const done =
  (verb: string) =>
  ({ changed }: AnswerTo<"quotas.set">, { scope }: InputTo<"quotas.set">) =>
    `${changed ? `${verb} the quota of` : "unchanged:"} ${scope}\n`;

const COLUMNS: Column<AnswerTo<"quotas.list">["quotas"][number]>[] = [
  { title: "SCOPE", value: "scope" },
  { title: "TASKS", right: true, value: "tasks" },
  {
    title: "INTERVAL",
    right: true,
    value: ({ interval }) => (interval === undefined ? "-" : duration(interval)),
  },
  { title: "WAITING", right: true, value: "waiting" },
];
