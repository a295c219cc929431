import type { AnswerTo, InputTo } from "@carillon/ops";
import { duration } from "@carillon/ops/words";
import { type Globals, operate, type Register, wholeNumber } from "../command.js";
import { misuse } from "../failure.js";
import { type Column, table } from "../table.js";

type QuotaScope = InputTo<"quotas.set">["scope"];
type QuotaInput = Omit<InputTo<"quotas.set">, "scope">;
type SetOptions = Globals & QuotaInput;

const SCOPE = "all, owner:NAME, or owner:* for each owner without an own quota";

export const registerQuotas: Register = (program, out) => {
  const quotas = program
    .command("quotas")
    .summary("most tasks, shortest interval and most waiting jobs")
    .description(
      "Lists the quotas of the namespace and of owners. Puts beyond them are refused; times beyond them are skipped, and are in the ledger.",
    )
    .action(async (_: unknown, command) => {
      await operate(
        command.optsWithGlobals(),
        out,
        (ops) => ops.quotas.list(),
        ({ quotas }) => (quotas.length ? table(COLUMNS, quotas, out) : "No quotas.\n"),
      );
    });
  quotas
    .command("set")
    .summary("set a quota, replacing the earlier one")
    .description("Replaces the quota of a scope. A bound that you leave out is unlimited.")
    .argument("<scope>", SCOPE)
    .option("--tasks <n>", "most tasks", wholeNumber)
    .option("--interval <duration>", "shortest time between two occurrences of a task, such as 10s")
    .option("--waiting <n>", "most jobs that wait in each queue", wholeNumber)
    .action(async (scope: string, _: unknown, command) => {
      const options: SetOptions = command.optsWithGlobals();
      const { tasks, interval, waiting } = options;
      if ([tasks, interval, waiting].every((value) => value === undefined))
        throw misuse("quota", "missing.", "Give --tasks, --interval or --waiting; quotas rm removes it.");
      await set(scope, { tasks, interval, waiting }, options);
    });
  quotas
    .command("rm")
    .summary("remove a quota")
    .description("Removes the quota of a scope.")
    .argument("<scope>", SCOPE)
    .action((scope: string, _: unknown, command) => set(scope, {}, command.optsWithGlobals()));

  async function set(scope: string, quota: QuotaInput, options: Globals): Promise<void> {
    const done = Object.keys(quota).length === 0 ? "removed the quota of" : "set the quota of";
    await operate(
      options,
      out,
      (ops) => ops.quotas.set({ scope: scope as QuotaScope, ...quota }),
      ({ changed }) => `${changed ? done : "unchanged:"} ${scope}\n`,
    );
  }
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
