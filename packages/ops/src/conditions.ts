import { OUTCOMES, TASK_STATES } from "@carillon/core";
import {
  CONDITION_NAMES,
  CONDITIONS,
  type ConditionKind,
  type ConditionName,
} from "@carillon/sdk/conditions";
import type { z } from "zod";
import { flag, given, oneOf, someOf } from "./shapes.js";

const KINDS = {
  name: given,
  text: given,
  flag,
  state: oneOf(TASK_STATES),
  outcomes: someOf(OUTCOMES),
} satisfies Record<ConditionKind, z.ZodType>;

/** The conditions that select tasks, each optional. */
export const conditions = Object.fromEntries(
  CONDITION_NAMES.map((name) => [
    name,
    KINDS[CONDITIONS[name].kind].optional().describe(sentence(CONDITIONS[name].help)),
  ]),
) as {
  readonly [Name in ConditionName]: z.ZodOptional<(typeof KINDS)[(typeof CONDITIONS)[Name]["kind"]]>;
};

function sentence(help: string): string {
  return `${help.charAt(0).toUpperCase()}${help.slice(1)}.`;
}
