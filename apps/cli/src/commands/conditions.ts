import type { BulkFilter, Outcome, TaskState } from "@carillon/sdk";
import { type Command, Option } from "commander";
import { outcomeOption, outcomesOf } from "./outcomes.js";

/** Options that select tasks. */
export interface Conditions {
  owner?: string;
  queue?: string;
  tag?: string;
  state?: TaskState;
  outcome?: Outcome[];
  failing?: boolean;
}

/** The options besides `--queue`. */
export function conditionOptions(command: Command): Command {
  return command
    .option("-t, --tag <tag>", "with this tag")
    .addOption(new Option("--state <state>", "in this state").choices(["scheduled", "paused", "finished"]))
    .addOption(outcomeOption("whose last run ended so"))
    .option("--failing", "whose last run is a failure: failed, timed-out, crashed or lost");
}

/** Owner too: a bound client shows its owner's tasks only. @throws `INVALID_OPTION` */
export function conditionsOf({ queue, owner, tag, state, outcome, failing }: Conditions): BulkFilter {
  return { queue, owner, tag, state, outcome: outcomesOf(outcome, "failing", failing) };
}
