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
  overdue?: boolean;
  neverRan?: boolean;
  search?: string;
}

/** The options besides `--queue`. */
export function conditionOptions(command: Command): Command {
  return command
    .option("-t, --tag <tag>", "with this tag")
    .addOption(new Option("--state <state>", "in this state").choices(["scheduled", "paused", "finished"]))
    .addOption(outcomeOption("whose last run ended so"))
    .option("--failing", "whose last run is a failure: failed, timed-out, crashed or lost")
    .option("--overdue", "with an occurrence that is due and that no node has claimed")
    .option("--never-ran", "of which no run has ended")
    .option("-s, --search <text>", "whose owner/id or type contains this, in any case of letters");
}

/** Owner too: a bound client shows its owner's tasks only. @throws `INVALID_OPTION` */
export function conditionsOf({ outcome, failing, ...conditions }: Conditions): BulkFilter {
  const { queue, owner, tag, state, overdue, neverRan, search } = conditions;
  const ends = outcomesOf(outcome, "failing", failing);
  return { queue, owner, tag, state, outcome: ends, overdue, neverRan, search };
}
