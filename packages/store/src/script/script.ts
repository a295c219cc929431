import { TEXTS } from "../../lua/texts.js";
import type { ScriptContext } from "./context.js";

/** An argument. In Lua all are texts: `true` is "1", `false` and `undefined` are "". */
export type Value = string | number | boolean | Buffer | undefined;

/** Values by declared name: one for `name`, one or none for `name?`, a list for `name[]`. */
type Given<Name extends string, One> = {
  readonly [N in Name as N extends `${string}?` | `${string}[]` ? never : N]: One;
} & {
  readonly [N in Name as N extends `${infer Base}?` ? Base : never]?: One | undefined;
} & {
  readonly [N in Name as N extends `${infer Base}[]` ? Base : never]: readonly One[];
};

/**
 * Keys and arguments of a script, by name. Its Lua reads keys as `K.task` and arguments as `A.now`. A key `name?` may
 * be absent (nil in Lua); `name[]` is a list.
 *
 * `each`: the keys and arguments of each item of a list. In Lua `for item in eachItem do` reads one after the other,
 * keys and arguments in one table. `packed`: the arguments of an item, none of which holds a zero byte or is a list,
 * are sent as one text, which Redis reads several times faster; and the next item comes in the same table.
 */
export interface Signature {
  readonly keys: readonly string[];
  readonly args?: readonly string[];
  readonly each?: {
    readonly keys?: readonly string[];
    readonly args?: readonly string[];
    readonly packed?: boolean;
  };
}

type NamesOf<Names> = Names extends readonly (infer Name extends string)[] ? Name : never;

export type Keys<T extends Signature> = Given<NamesOf<T["keys"]>, string>;
export type Args<T extends Signature> = Given<NamesOf<T["args"]>, Value>;
/** Keys and arguments of one item. */
export type Item<T extends Signature> = T["each"] extends object
  ? Given<NamesOf<T["each"]["keys"]>, string> & Given<NamesOf<T["each"]["args"]>, Value>
  : never;

/** Arguments of a script call besides the keys. */
export type Rest<T extends Signature> = T["each"] extends object
  ? [args: Args<T>, items: readonly Item<T>[]]
  : T["args"] extends readonly string[]
    ? [args: Args<T>]
    : [];

/** Lua functions that several scripts share. */
export interface Library {
  readonly name: string;
  readonly uses: readonly Library[];
  /** Its text as our own Lua files are written, with facts; undefined: `lib/<name>.lua`. */
  readonly made?: (context: ScriptContext) => string;
  /** Whether its text has scripts of BullMQ. */
  readonly borrowed?: boolean;
}

/** The library `lib/<name>.lua`. */
export function library(name: string, uses: readonly Library[] = []): Library {
  return { name, uses };
}

/** A library whose text is not a file's. */
export function madeLibrary(
  name: string,
  made: (context: ScriptContext) => string,
  uses: readonly Library[] = [],
): Library {
  return { name, uses, made };
}

/**
 * Protection of a script from requests that arrive late, after their sender gave up, or twice. `Link` sends a request
 * again if its answer was lost, and the first copy may still arrive, at any later time.
 *
 * - `reads`: it changes nothing.
 * - `generation`: it compares the generation of the task that the caller has read. Each change of a task gives it another
 *   one, and a task that is deleted and put again never has an earlier one.
 * - `mark`: it compares the mark of the newest change of its subject that the caller has seen (lib/once.lua).
 * - `value`: it compares a value that the caller has read, and that never comes back.
 * - `fence`: it compares the fence of the attempt, or the lock of its job.
 * - `number`: it carries a number of its sender that only grows; Redis keeps the newest.
 * - `repeats`: the reason why a copy at any later time does no harm.
 */
export type Once =
  | "reads"
  | "generation"
  | "mark"
  | "value"
  | "fence"
  | "number"
  | { readonly repeats: string };

/** A script as Redis knows it. */
export interface Script {
  readonly name: string;
  readonly lua: string;
  readonly sha: string;
  readonly resident?: Resident | undefined;
}

/** A script as a function that Redis keeps (resident.ts). The name has the hash of its text, so that versions live side by side. */
export interface Resident {
  readonly name: string;
  readonly lua: string;
}

/** A Lua file, and how it is called. */
export interface Declared<T extends Signature = Signature, Answer = unknown> {
  readonly name: string;
  readonly signature: T;
  readonly uses: readonly Library[];
  readonly once: Once;
  readonly resident: boolean;
  /** Exists only for the compiler. */
  readonly answer?: Answer;
}

export const DECLARED = new Map<string, Declared>();

/** The protection of a script from late copies; undefined: there is no such script. */
export function onceOf(name: string): Once | undefined {
  return DECLARED.get(name)?.once;
}

/**
 * Declares the script `<name>.lua`.
 *
 * @param options `once`: how a late copy of a request is kept from changing anything; `uses`: its libraries; `resident`: it is called for each
 * occurrence, so Redis keeps it as a function, if it can; `answer`: the type of what it returns, see `answers`
 */
export function script<const T extends Signature, Answer = unknown>(
  name: string,
  {
    once,
    uses = [],
    resident = false,
    answer: _,
    ...signature
  }: T & {
    readonly once: Once;
    readonly uses?: readonly Library[];
    readonly resident?: boolean;
    readonly answer?: Answer;
  },
): Declared<T, Answer> {
  const declared = { name, signature: signature as unknown as T, uses, once, resident };
  DECLARED.set(name, declared);
  return declared;
}

/** The type of a script's answer. */
export function answers<Answer>(): Answer {
  return undefined as Answer;
}

/**
 * The text of a Lua file by its name.
 * @throws if there is none
 */
export function luaText(name: string): string {
  const text = TEXTS[`${name}.lua`];
  if (text === undefined) throw new Error(`no Lua file is called ${name}.lua.`);
  return text;
}
