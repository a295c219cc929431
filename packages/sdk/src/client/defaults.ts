import type { DefaultsScope, Policies, PoliciesInput } from "@carillon/core";
import { assertDefaultsScope, assertOptions, parsePolicies } from "@carillon/core/internal";
import { shown } from "./change.js";
import type { Scope } from "./scope.js";
import type { AuthorOptions } from "./types.js";

/** Policies for tasks that do not have them, at `client.defaults`. */
export class Defaults {
  readonly #scope: Scope;

  /** @internal */
  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /** The policies by whose tasks they are for. */
  async list(): Promise<Partial<Record<DefaultsScope, Policies>>> {
    return Object.fromEntries(await this.#scope.store.registry.defaults());
  }

  /**
   * Sets the policies of tasks that do not have their own: every task (`all`), those of an owner (`owner:acme`) or of a type
   * (`type:report`). A type's go before an owner's, and these before those of all. They are filled in when a task is put or enqueued, by
   * whatever client: stored tasks stay as they are until they are put again. Only `alerts` hold for stored tasks too: they are looked up when
   * an alert is delivered, and those of all tasks also get the alerts about the namespace. Returns false if that changed nothing.
   *
   * @param policies in the place of all that were there; null: none
   * @throws `INVALID_OPTION`, `INVALID_NAME`, `INVALID_TASK`, `INVALID_DURATION`, `FORBIDDEN` for a bound client
   */
  async set(
    scope: DefaultsScope,
    policies: PoliciesInput | null,
    options: AuthorOptions = {},
  ): Promise<boolean> {
    assertOptions(options, ["by"]);
    this.#scope.assertUnbound();
    const by = this.#scope.author(options.by);
    const parsed = policies === null ? undefined : parsePolicies(policies);
    const { registry } = this.#scope.store;
    const checked = assertDefaultsScope(scope);
    const before = (await registry.defaults()).get(checked);
    const changed = await registry.setDefaults(checked, parsed);
    if (changed) {
      const facts = { before: before && shown({ ...before }), after: parsed && shown({ ...parsed }) };
      this.#scope.log("defaults", {}, by, { ...facts, details: { of: checked } });
    }
    return changed;
  }
}
