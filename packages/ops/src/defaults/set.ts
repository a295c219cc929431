import type { DefaultsScope, PoliciesInput } from "@carillon/core";
import { assertDefaultsScope, parsePolicies, restored } from "@carillon/core/internal";
import { shown } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { changed } from "../shapes.js";

/**
 * Sets the policies of tasks that do not have their own: every task (`all`), those of an owner (`owner:acme`) or of a type
 * (`type:report`). A type's go before an owner's, and these before those of all. They are filled in when a task is put or enqueued, by
 * whatever client: stored tasks stay as they are until they are put again. Only `alerts` hold for stored tasks too: they are looked up when
 * an alert is delivered, and those of all tasks also get the alerts about the namespace.
 */
export const setDefaults = operation({
  http: "PUT /defaults/:scope",
  role: "admin",
  reach: "namespace",
  logs: "defaults",
  once: "script",
  example: { scope: "owner:acme", policies: { timeLimit: "2h" } },
  summary: "Replaces the default policies of a scope; `null` removes them.",
  input: z.strictObject({
    scope: z.custom<DefaultsScope>().meta({ type: "string", description: "all, owner:NAME or type:NAME." }),
    policies: z
      .custom<PoliciesInput | null>((given) => typeof given === "object", "not an object")
      .meta({ type: ["object", "null"], description: `An object: {"timeLimit":"50%"}.` }),
  }),
  output: changed,
  async run({ store: { registry }, log }, { scope, policies }) {
    const checked = assertDefaultsScope(scope);
    const before = (await registry.defaults()).get(checked);
    const parsed = policies === null ? undefined : parsePolicies(restored(policies, before) as PoliciesInput);
    const changed = await registry.setDefaults(checked, parsed);
    if (changed)
      log(
        {},
        {
          before: before && shown({ ...before }),
          after: parsed && shown({ ...parsed }),
          details: { of: checked },
        },
      );
    return { changed };
  },
});
