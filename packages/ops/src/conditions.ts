import {
  CONDITION_NAMES,
  CONDITIONS,
  type ConditionKind,
  type ConditionName,
} from "@carillon/sdk/conditions";
import type { z } from "zod";

type Kinds = Readonly<Record<ConditionKind, z.ZodType>>;

/** The shape of an object with the conditions that select tasks, each optional. @param kinds the schema of each kind of value */
export function conditionShape<Of extends Kinds>(kinds: Of) {
  const shape = CONDITION_NAMES.map((name) => [name, kinds[CONDITIONS[name].kind].optional()]);
  return Object.fromEntries(shape) as {
    readonly [Name in ConditionName]: z.ZodOptional<Of[(typeof CONDITIONS)[Name]["kind"]]>;
  };
}
