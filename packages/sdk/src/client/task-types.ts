import { isDeepStrictEqual } from "node:util";
import { assertName, assertOptions } from "@carillon/core/internal";
import { assertList } from "../options.js";
import { shown } from "./change.js";
import type { Scope } from "./scope.js";
import type { AuthorOptions } from "./types.js";

/** The task types that may be put into a namespace, at `client.types`. */
export class TaskTypes {
  readonly #scope: Scope;

  /** @internal */
  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /** The task types that any client may put; empty: any type. */
  async list(): Promise<string[]> {
    return this.#scope.store.registry.types();
  }

  /**
   * Allows only these task types to be put into the namespace, by any client; an empty list allows any type. Stored tasks stay.
   *
   * @throws `INVALID_NAME`, `INVALID_OPTION`, `FORBIDDEN` for a bound client
   */
  async allow(types: readonly string[], options: AuthorOptions = {}): Promise<void> {
    assertOptions(options, ["by"]);
    this.#scope.assertUnbound();
    assertList(types, "types", "Give a list of names; an empty one allows any type.");
    const names = new Set(types.map((type) => assertName(type, "type")));
    const by = this.#scope.author(options.by);
    const before = await this.list();
    await this.#scope.store.registry.setTypes([...names]);
    const facts = { before: shown({ types: before }), after: shown({ types: [...names].sort() }) };
    if (!isDeepStrictEqual(facts.before, facts.after)) this.#scope.log("types", {}, by, facts);
  }
}
