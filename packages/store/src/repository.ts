import type { NamespaceKeys } from "./keys.js";
import type { Marks } from "./marks.js";
import type { OptimisticWrites } from "./optimistic.js";
import type { Link } from "./redis/link.js";
import type { Scripts } from "./script/scripts.js";
import type { Settings } from "./settings.js";

/** Parts that the repositories of a store share. */
export interface Parts {
  readonly link: Link;
  readonly keys: NamespaceKeys;
  readonly scripts: Scripts;
  readonly marks: Marks;
  readonly settings: Settings;
  readonly optimistic: OptimisticWrites;
}

/** Data of one subject in Redis. Its parts are accessors, so that printing a repository shows none of them. */
export abstract class Repository {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  protected get link(): Link {
    return this.#parts.link;
  }

  protected get keys(): NamespaceKeys {
    return this.#parts.keys;
  }

  protected get scripts(): Scripts {
    return this.#parts.scripts;
  }

  protected get marks(): Marks {
    return this.#parts.marks;
  }

  protected get settings(): Settings {
    return this.#parts.settings;
  }

  protected get optimistic(): OptimisticWrites {
    return this.#parts.optimistic;
  }
}
