import type { AnswerTo, InputTo } from "@carillon/ops";
import { duration } from "@carillon/ops/words";
import { type Register, wholeNumber } from "../command.js";
import { misuse } from "../failure.js";
import { type Column, table } from "../table.js";

type QuotaScope = InputTo<"quotas.set">["scope"];
const SCOPE = "all, owner:NAME, or owner:* for each owner without an own quota";

export const registerQuotas: Register = (program, out) => {
  const quotas = program
    .verb(
      "quotas",
      "most tasks, shortest interval and most waiting jobs",
      "Lists the quotas of the namespace and of owners. Puts beyond them are refused; times beyond them are skipped, with the reason quota.",
    )
    .answer(
      ({ ops }) => ops.quotas.list(),
      ({ quotas }) => (quotas.length ? table(COLUMNS, quotas, out) : "No quotas.\n"),
    );
  quotas
    .verb(
      "set",
      "set a quota, replacing the earlier one",
      "Replaces the quota of a scope. A bound that you leave out is unlimited.",
    )
    .argument("<scope>", SCOPE)
    .flag("--tasks <n>", "most tasks", wholeNumber)
    .flag("--interval <duration>", "shortest time between two occurrences of a task, such as 10s")
    .flag("--waiting <n>", "most jobs that wait in each queue", wholeNumber)
    .answer(
      async ({ ops, options }, scope: QuotaScope) => {
        const { tasks, interval, waiting } = options;
        if ([tasks, interval, waiting].every((value) => value === undefined))
          throw misuse("quota", "missing.", "Give --tasks, --interval or --waiting; quotas rm removes it.");
        return ops.quotas.set({ scope, tasks, interval, waiting });
      },
      ({ changed }, [scope]) => `${changed ? "set the quota of" : "unchanged:"} ${scope}\n`,
    );
  quotas
    .verb("rm", "remove a quota", "Removes the quota of a scope.")
    .argument("<scope>", SCOPE)
    .answer(
      ({ ops }, scope: QuotaScope) => ops.quotas.set({ scope }),
      ({ changed }, [scope]) => `${changed ? "removed the quota of" : "unchanged:"} ${scope}\n`,
    );
};

const count = (value: number | undefined) => (value === undefined ? "-" : String(value));

const COLUMNS: Column<AnswerTo<"quotas.list">["quotas"][number]>[] = [
  { title: "SCOPE", value: ({ scope }) => scope },
  { title: "TASKS", right: true, value: ({ tasks }) => count(tasks) },
  {
    title: "INTERVAL",
    right: true,
    value: ({ interval }) => (interval === undefined ? "-" : duration(interval)),
  },
  { title: "WAITING", right: true, value: ({ waiting }) => count(waiting) },
];
