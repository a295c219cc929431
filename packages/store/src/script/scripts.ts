import { createHash } from "node:crypto";
import type { Link } from "../redis/link.js";
import { type Layout, layoutOf, type Values, writeCall } from "./arguments.js";
import { assemble } from "./assemble.js";
import { REDIS_TIME, type Sabotage, type ScriptContext, type TimeSource } from "./context.js";
import type { Declared, Keys, Rest, Script, Signature } from "./script.js";

interface Loaded {
  readonly script: Script;
  readonly layout: Layout;
}

/** A call, ready to be sent. */
export interface Packed<Answer> {
  readonly script: Declared<Signature, Answer>;
  readonly keys: readonly string[];
  readonly args: readonly (string | number | Buffer)[];
}

/** Calls scripts by the names of their keys and arguments. */
export class Scripts {
  readonly #link: Link;
  readonly #time: TimeSource;
  readonly #sabotage: readonly Sabotage[];
  readonly #loaded = new Map<Declared, Loaded>();

  constructor(link: Link, time: TimeSource = REDIS_TIME, sabotage: readonly Sabotage[] = []) {
    this.#link = link;
    this.#time = time;
    this.#sabotage = sabotage;
  }

  /** @throws coded Redis errors */
  async run<T extends Signature, Answer>(
    declared: Declared<T, Answer>,
    keys: Keys<T>,
    ...rest: Rest<T>
  ): Promise<Answer> {
    return this.send(this.pack(declared, keys, ...rest));
  }

  /** Prepares a call without sending it, for decisions made ahead of time. */
  pack<T extends Signature, Answer>(
    declared: Declared<T, Answer>,
    keys: Keys<T>,
    ...rest: Rest<T>
  ): Packed<Answer> {
    const script: Declared<Signature, Answer> = declared;
    const [args = {}, items = []] = rest as [object?, object[]?];
    return { script, ...writeCall(this.#load(declared).layout, keys, args as Values, items as Values[]) };
  }

  /** @throws coded Redis errors */
  async send<Answer>({ script, keys, args }: Packed<Answer>): Promise<Answer> {
    return (await this.#link.run(this.#load(script).script, keys, args)) as Answer;
  }

  #load(declared: Declared): Loaded {
    let loaded = this.#loaded.get(declared);
    if (!loaded) {
      loaded = load(declared, { time: this.#time, sabotage: this.#sabotage });
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
  const key = [context.time.lua, ...context.sabotage].join("\n");
  let loaded = known.get(key);
  if (!loaded) {
    const { name, signature } = declared;
    const lua = assemble(declared, context);
    const sha = createHash("sha1").update(lua).digest("hex");
    loaded = { script: { name, lua, sha }, layout: layoutOf(signature) };
    known.set(key, loaded);
  }
  return loaded;
}
