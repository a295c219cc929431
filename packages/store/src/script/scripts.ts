import { createHash } from "node:crypto";
import { loadBull } from "../bull/load.js";
import { guardsKey, neverKey } from "../keys.js";
import type { Link } from "../redis/link.js";
import { type Layout, layoutOf, type Values, type Written, writeCall, writeItem } from "./arguments.js";
import { assemble, librariesOf } from "./assemble.js";
import { type Guard, REDIS_TIME, type Sabotage, type ScriptContext, type TimeSource } from "./context.js";
import { resident } from "./resident.js";
import type { Args, Declared, Item, Keys, Rest, Script, Signature } from "./script.js";

interface Loaded {
  /** Assembled when it is first sent. */
  readonly script: Script;
  readonly layout: Layout;
  /** Whether its text has scripts of BullMQ. */
  readonly borrows: boolean;
}

/** Calls scripts by the names of their keys and arguments. */
export class Scripts {
  readonly #link: Link;
  readonly #time: TimeSource;
  readonly #sabotage: readonly Sabotage[];
  readonly #guard: Guard | undefined;
  readonly #loaded = new Map<Declared, Loaded>();

  /** @param guard of all changes */
  constructor(
    link: Link,
    time: TimeSource = REDIS_TIME,
    sabotage: readonly Sabotage[] = [],
    guard: Guard | undefined = undefined,
  ) {
    this.#link = link;
    this.#time = time;
    this.#sabotage = sabotage;
    this.#guard = guard;
  }

  /** @throws coded Redis errors */
  async run<T extends Signature, Answer>(
    declared: Declared<T, Answer>,
    keys: Keys<T>,
    ...rest: Rest<T>
  ): Promise<Answer> {
    const [args = {}, items = []] = rest as [object?, Values[]?];
    const { layout } = this.#load(declared);
    return this.runWritten(
      declared,
      keys,
      args as Args<T>,
      items.map((item) => writeItem(layout, item)),
    );
  }

  /** Writes an item of a call that is sent later, with others. */
  write<T extends Signature>(declared: Declared<T>, item: Item<T>): Written {
    return writeItem(this.#load(declared).layout, item as Values);
  }

  /** Like `run`, with written items. @throws coded Redis errors */
  async runWritten<T extends Signature, Answer>(
    declared: Declared<T, Answer>,
    keys: Keys<T>,
    args: Args<T>,
    items: readonly Written[],
  ): Promise<Answer> {
    const { script, layout, borrows } = this.#load(declared);
    if (borrows) await loadBull();
    const call = writeCall(layout, keys, args as Values, items);
    if (declared.once !== "reads") {
      const [first = ""] = call.keys;
      call.keys.push(neverKey(first));
      if (this.#guard) {
        call.keys.push(guardsKey(first));
        call.args.push(this.#guard.subject, this.#guard.number);
      }
    }
    return (await this.#link.run(script, call.keys, call.args)) as Answer;
  }

  #load(declared: Declared): Loaded {
    let loaded = this.#loaded.get(declared);
    if (!loaded) {
      loaded = load(declared, {
        time: this.#time,
        sabotage: this.#sabotage,
        guarded: this.#guard !== undefined && declared.once !== "reads",
      });
      this.#loaded.set(declared, loaded);
    }
    return loaded;
  }
}

/** Scripts by context: a process may open many stores, and assembling them takes some ms. */
const texts = new WeakMap<Declared, Map<string, Loaded>>();

function load(declared: Declared, context: ScriptContext): Loaded {
  const known = texts.get(declared) ?? new Map<string, Loaded>();
  texts.set(declared, known);
  const key = [context.time.lua, context.guarded, ...context.sabotage].join("\n");
  let loaded = known.get(key);
  if (!loaded) {
    loaded = {
      script: scriptOf(declared, context),
      layout: layoutOf(declared.signature),
      borrows: librariesOf(declared).some(({ borrowed }) => borrowed),
    };
    known.set(key, loaded);
  }
  return loaded;
}

/** Its text may have scripts of BullMQ, which must be loaded when it is first sent. */
function scriptOf(declared: Declared, context: ScriptContext): Script {
  let text: Omit<Script, "name"> | undefined;
  const assembled = () => {
    if (!text) {
      const lua = assemble(declared, context);
      const sha = createHash("sha1").update(lua).digest("hex");
      text = { lua, sha, resident: declared.resident ? resident(declared, lua) : undefined };
    }
    return text;
  };
  return {
    name: declared.name,
    get lua() {
      return assembled().lua;
    },
    get sha() {
      return assembled().sha;
    },
    get resident() {
      return assembled().resident;
    },
  };
}
