import { invalid } from "./errors.js";
import { assertName } from "./names.js";
import { type Policies, policySchema } from "./policies.js";
import { fromZod, type TaskDefinition } from "./task.js";
import type { PoliciesInput } from "./task-input.js";

/** Tasks that the default policies apply to: every task, those of an owner, or those of a type. */
export type DefaultsScope = "all" | `owner:${string}` | `type:${string}`;

/** @throws `INVALID_OPTION`, `INVALID_NAME` */
export function assertDefaultsScope(scope: unknown): DefaultsScope {
  const [, kind, name] = /^(owner|type):(.*)$/s.exec(String(scope)) ?? [];
  if (kind !== undefined) assertName(name, kind);
  else if (scope !== "all") {
    throw invalid("scope", "not a scope.", "Give all, owner:NAME or type:NAME.");
  }
  return scope as DefaultsScope;
}

/** @throws `INVALID_TASK`, `INVALID_DURATION` */
export function parsePolicies(input: PoliciesInput): Policies {
  const parsed = policySchema.safeParse(input);
  if (!parsed.success) throw fromZod(parsed.error);
  return parsed.data;
}

/** Two ways to set the same limit: a task that sets one gets no default for either. */
const EITHER = ["minGap", "tolerance"] as const;

/** The scopes whose defaults apply to a task, highest precedence first. */
export function scopesOf({ type, owner }: Pick<TaskDefinition, "type" | "owner">): readonly DefaultsScope[] {
  return [`type:${type}`, `owner:${owner}`, "all"];
}

/**
 * Fills in the policies that a task does not have: from those of its type, else of its owner, else of all. Not `alerts`: default
 * destinations are looked up when an alert is delivered (`destinationsOf`). Each threshold of `alertIf` stands for itself.
 */
export function withDefaults(
  definition: TaskDefinition,
  defaults: ReadonlyMap<string, Policies>,
): TaskDefinition {
  const filled: Record<string, unknown> = { ...definition };
  for (const scope of scopesOf(definition)) {
    const { alerts: _, ...policies } = defaults.get(scope) ?? {};
    for (const [name, value] of Object.entries(policies)) {
      if (name === "alertIf") {
        filled[name] = { ...policies.alertIf, ...(filled[name] as Policies["alertIf"]) };
        continue;
      }
      const names = EITHER.some((either) => either === name) ? EITHER : [name];
      if (names.every((one) => filled[one] === undefined)) filled[name] = value;
    }
  }
  return filled as unknown as TaskDefinition;
}
