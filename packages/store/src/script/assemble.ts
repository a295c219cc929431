import { layoutOf, readingLua } from "./arguments.js";
import type { ScriptContext } from "./context.js";
import { FACTS } from "./facts.js";
import { type Declared, type Library, luaText } from "./script.js";

/** The whole text of a script: time, its keys and arguments by name, the sets of `FACTS` that it reads, its libraries, itself. */
export function assemble(script: Declared, context: ScriptContext): string {
  const own = withoutComments(luaText(script.name));
  const libraries = librariesOf(script).map(({ name, made }) =>
    made ? made(context) : withoutComments(luaText(`lib/${name}`)),
  );
  const sets = new Map<string, string>();
  const body = withFacts([...onlyUsed(libraries, own), own].join("\n"), sets);
  const guard = context.guarded && !context.sabotage.includes("guard") ? [GUARD] : [];
  return [...guard, context.time.lua, readingLua(layoutOf(script.signature)), ...sets.values(), body].join(
    "\n",
  );
}

/** The guards are the last key; subject and number are the last arguments. */
const GUARD = `if tonumber(redis.call("HGET", KEYS[#KEYS], ARGV[#ARGV - 1]) or 0) > tonumber(ARGV[#ARGV]) then
  return redis.error_reply("OVERTAKEN")
end`;

/** A script's libraries, each once, after those that it builds on. */
export function librariesOf({ uses }: Declared): Library[] {
  const found = new Map<string, Library>();
  const visit = (one: Library) => {
    if (found.has(one.name)) return;
    for (const other of one.uses) visit(other);
    found.set(one.name, one);
  };
  for (const one of uses) visit(one);
  return [...found.values()];
}

function withoutComments(text: string): string {
  return text.replace(/^\s*--.*\n/gm, "");
}

/** A function of a library: from `local function name` to the `end` that is not indented. */
const FUNCTION = /^local function (\w+)\(.*\)(?:.* end|[\s\S]*?\nend)$/gm;

/** Libraries without the functions that nothing calls: Redis makes all of a script's functions for each call. */
function onlyUsed(libraries: readonly string[], own: string): string[] {
  const functions = new Map(
    libraries.flatMap((text) => [...text.matchAll(FUNCTION)].map(([all, name]) => [name, all])),
  );
  const mentions = new Map<string, number>();
  const count = (text: string, by: number) => {
    for (const [word] of text.matchAll(/\w+/g)) mentions.set(word, (mentions.get(word) ?? 0) + by);
  };
  for (const text of [...libraries, own]) count(text, 1);
  const unused = new Set<string | undefined>();
  for (let before = -1; unused.size > before; ) {
    before = unused.size;
    for (const [name, text] of functions) {
      // One mention is the definition. Functions that only unused ones call are unused too.
      if (unused.has(name) || mentions.get(name as string) !== 1) continue;
      unused.add(name);
      count(text as string, -1);
    }
  }
  return libraries.map((text) =>
    text.replace(FUNCTION, (whole, name: string) => (unused.has(name) ? "" : whole)),
  );
}

/** Replaces the names of facts by their values. @param sets receives the Lua that defines those that are sets */
function withFacts(text: string, sets: Map<string, string>): string {
  return text.replace(/\bF((?:\.\w+)+)/g, (whole, path: string) => {
    let fact: unknown = FACTS;
    for (const name of path.slice(1).split(".")) fact = (fact as Record<string, unknown>)[name];
    if (typeof fact === "string") return luaString(fact);
    if (typeof fact === "number") return String(fact);
    if (!(fact instanceof Set)) throw new Error(`there is no fact ${whole}.`);
    const name = `FACT${path.replaceAll(".", "_")}`;
    const members = [...fact].map((member) => `[${luaString(String(member))}] = true`);
    sets.set(name, `local ${name} = { ${members.join(", ")} }`);
    return name;
  });
}

function luaString(text: string): string {
  const escaped = text.replace(/["\\]/g, "\\$&");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: facts may be control characters.
  return `"${escaped.replace(/[\x00-\x1f]/g, (one) => `\\${String(one.charCodeAt(0)).padStart(3, "0")}`)}"`;
}
