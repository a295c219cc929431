import type { Marks } from "./marks.js";
import { ONCE_ARGS } from "./marks.js";
import type { RedisClient } from "./redis/connection.js";
import type { Link } from "./redis/link.js";
import { ONCE } from "./script/libraries.js";
import { answers, script } from "./script/script.js";
import type { Scripts } from "./script/scripts.js";

const CHANGE_SETTINGS = script("change-settings", {
  once: "mark",
  keys: ["settings", "marks"],
  args: [...ONCE_ARGS, "set[]", "drop[]"],
  uses: [ONCE],
  answer: answers<"OK" | "DONE" | "STALE">(),
});

/** Fields and values to set, and fields to delete. */
interface Change {
  readonly set?: readonly (string | number)[];
  readonly drop?: readonly string[];
}

/** Changes hashes of settings, of a namespace or of a queue. */
export class Settings {
  constructor(
    private readonly link: Link,
    private readonly scripts: Scripts,
    private readonly marks: Marks,
  ) {}

  /**
   * @param keys of the namespace, or of the queue @param name of the hash among them
   * @param decide reads what is stored and decides
   * @returns whether anything has changed
   */
  async change<Name extends string>(
    keys: { readonly [N in Name | "marks"]: string },
    name: Name,
    decide: (client: RedisClient, key: string) => Promise<Change>,
  ): Promise<boolean> {
    const [settings, marks] = [keys[name], keys.marks];
    return this.marks.change<boolean>(marks, name, async (once) => {
      const { set = [], drop = [] } = await this.link.ask((client) => decide(client, settings));
      if (set.length === 0 && drop.length === 0) return false;
      const word = await this.scripts.run(CHANGE_SETTINGS, { settings, marks }, { ...once, set, drop });
      return word === "STALE" ? word : true;
    });
  }

  /** Sets one field. @param value undefined: deletes it @returns whether it had another value */
  async field<Name extends string>(
    keys: { readonly [N in Name | "marks"]: string },
    name: Name,
    field: string,
    value: string | number | undefined,
  ): Promise<boolean> {
    return this.change(keys, name, async (client, key) => {
      const before = await client.hget(key, field);
      if (before === (value === undefined ? null : String(value))) return {};
      return value === undefined ? { drop: [field] } : { set: [field, value] };
    });
  }
}
