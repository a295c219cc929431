import type { DefaultsScope, Policies, PoliciesInput } from "@carillon/core";
import { assertDefaultsScope, parsePolicies } from "@carillon/core/internal";
import type { Scope } from "./scope.js";

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
   * Sets the policies that a task is given where it has none of its own: every task (`all`), those of an owner (`owner:acme`) or of a type
   * (`type:report`). A type's go before an owner's, and these before those of all. They are filled in when a task is put or enqueued, by
   * whatever client: stored tasks stay as they are until they are put again. Returns false if that changed nothing.
   *
   * @param policies in the place of all that were there; null: none
   * @throws `INVALID_OPTION`, `INVALID_NAME`, `INVALID_TASK`, `INVALID_DURATION`, `FORBIDDEN` for a bound client
   */
  async set(scope: DefaultsScope, policies: PoliciesInput | null): Promise<boolean> {
    this.#scope.assertUnbound();
    const parsed = policies === null ? undefined : parsePolicies(policies);
    return this.#scope.store.registry.setDefaults(assertDefaultsScope(scope), parsed);
  }
}
