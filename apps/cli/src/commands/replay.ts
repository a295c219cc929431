import type { AnswerTo } from "@carillon/ops";
import type { Register } from "../command.js";
import { EXIT } from "../exit-codes.js";
import { misuse } from "../failure.js";
import { momentsOf } from "../moment.js";
import { counted } from "../text.js";
import { when } from "../times.js";
import { leftOut } from "./backfill.js";
import { refusals } from "./many.js";
import { RUN } from "./run.js";

/** Options that select failed runs, and those for one run alone. */
const [SELECT, ONE] = [
  ["from", "to", "task", "queue", "cause", "text", "node", "took"],
  ["overlap", "force"],
] as const;

export const registerReplay: Register = (program, out) => {
  program
    .verb(
      "replay",
      "run runs again with the payloads that they had: one now, or many at a pace",
      "One run: triggers its task now, with the run's own payload if it had one. Several, or with --failures all that\n" +
        "failed of a range: --per-minute spreads them, each with its nominal time; backfills cancel ends them.",
    )
    .argument("[runs...]", RUN)
    .flag("--failures", "all that failed, timed out, crashed or were lost, and did not succeed since")
    .takes("runs.replayMany", SELECT, { of: "of these: " })
    .takes("runs.replayMany", ["perMinute", "key", "dryRun"], { of: "of many runs: " })
    .takes("runs.replay", ONE, { of: "of one run: " })
    .answer(
      async ({ client, ops, options }, runs: string[]) => {
        const { failures, perMinute, key, dryRun, overlap, force, by } = options;
        const [id] = runs;
        const given = SELECT.find((name) => options[name] !== undefined);
        if (id !== undefined && (failures || given))
          throw misuse(given ?? "failures", "cannot be combined with runs.", "Leave one of the two out.");
        if (id !== undefined && runs.length === 1 && perMinute === undefined && !dryRun)
          return ops.runs.replay({ id, force, overlap }, { by });
        const alone = ONE.find((name) => options[name] !== undefined);
        if (alone) throw misuse(alone, "applies to one run only.", "Leave it out.");
        if (id === undefined && !failures)
          throw misuse(
            "RUN",
            "missing.",
            "Give runs; or --failures and --from 2h for all that failed since.",
          );
        const { task, queue, cause, text, node, took, owner, from, to } = options;
        const range = id === undefined ? await momentsOf(client, { from, to }, "before") : {};
        const which = id === undefined ? { task, queue, cause, text, node, took, owner, ...range } : { runs };
        const many = await ops.runs.replayMany({ ...which, perMinute, key, dryRun }, { by });
        if (many.refused.count > 0) out.exitCode = EXIT.refused;
        if (!options.json) refusals(many, out, "run");
        return many;
      },
      (answer, _, { perMinute }) => ("total" in answer ? ofMany(answer, perMinute) : ofOne(answer)),
    );
};

function ofOne(answer: AnswerTo<"runs.replay">): string {
  const when = answer.outcome === "queued" ? "when the run in its way is over" : `run ${answer.run}`;
  return `${answer.outcome}: ${when}\n`;
}

function ofMany(
  { total, count, left, until, batch }: AnswerTo<"runs.replayMany">,
  perMinute: number | undefined,
): string {
  const runs = `${counted(total, "run")} of ${counted(count, "task")}`;
  const pace = until === undefined ? "" : `, ${perMinute} a minute, over by ${when(until)}`;
  const head =
    batch === undefined
      ? `replay means ${runs} again${pace}`
      : `running ${runs} again${pace}\nbatch ${batch}`;
  return `${head}\n${leftOut(left)}`;
}
