import { createHash } from "node:crypto";
import type { Declared, Resident } from "./script.js";

/**
 * A script as a library of Redis Functions. Redis runs the whole text of a script for each call, and makes each of its functions again;
 * those of a library stay. So the text is taken apart: what defines a function or a constant runs once, when the library is loaded, and
 * the rest, in its order, when it is called. All names of the script's outermost level are names of the library, which each call sets again.
 */

/** Functions of Lua and Redis. A library has one level of names, so none of ours may hide them: a function above it would find ours. */
const LUA = new Set(
  (
    "_G assert bit cjson cmsgpack coroutine error getmetatable ipairs loadstring math next pairs pcall rawequal rawget rawset redis " +
    "select server setmetatable string struct table tonumber tostring type unpack xpcall"
  ).split(" "),
);
/** Beginning of the names of our libraries. All namespaces of a server share them. */
const PREFIX = "carillon_";
/** Most outer names that one function of Lua can use. */
const UPVALUES = 55;
/** Most names of one level. */
const LOCALS = 195;

interface Statement {
  /** Names that it declares at the outermost level. */
  readonly declares: readonly string[];
  /** Runs when the library is loaded, at its first call, or at each. */
  readonly when: "load" | "first" | "call";
  /** As it stands in the library, where its names are declared already. */
  readonly sets: string;
}

/** Names that each library has besides those of its script. */
const OWN = ["KEYS", "ARGV", "GOES_ON", "isMade"];

/**
 * The library of a script.
 *
 * @param lua its assembled text
 * @throws if the text cannot be taken apart
 */
export function resident({ name: script, once }: Declared, lua: string): Resident {
  const statements = statementsOf(lua).map(statementOf);
  const names = [...OWN, ...statements.flatMap(({ declares }) => declares)];
  const refuse = (why: string, which: readonly string[]) => {
    if (which.length > 0)
      throw new Error(`${script}.lua as a function of Redis: ${why}: ${which.join(", ")}.`);
  };
  refuse(
    "declared twice at the outermost level",
    names.filter((one, i) => one !== "_" && names.indexOf(one) !== i),
  );
  refuse(
    "hides a function of Lua",
    names.filter((one) => LUA.has(one)),
  );
  const textsOf = (when: Statement["when"]) =>
    statements.filter((one) => one.when === when).map(({ sets }) => sets);
  const makes = stepsOf(textsOf("first"), new Set(names));
  const steps = stepsOf(textsOf("call"), new Set(names));
  const all = names.length + makes.length + steps.length;
  if (all > LOCALS) throw new Error(`${script}.lua as a function of Redis: ${all} names are too many.`);
  // Redis refuses other functions when its memory is full, before they have read anything.
  const flags = once === "reads" ? `"no-writes"` : "";
  const textOf = (name: string) =>
    [
      `#!lua name=${name}`,
      `local ${names.join(", ")}`,
      "GOES_ON = {}",
      ...textsOf("load"),
      ...makes.map((step, i) => `local function make${i}()\n${step}\nend`),
      ...steps.map((step, i) => `local function step${i}()\n${step}\nend`),
      `redis.register_function{ function_name = "${name}", flags = { ${flags} }, callback = function(keys, args)`,
      "KEYS, ARGV = keys, args",
      `if not isMade then ${makes.map((_, i) => `make${i}() `).join("")}isMade = true end`,
      "local answer",
      ...steps.map((_, i) => `answer = step${i}()\nif answer ~= GOES_ON then return answer end`),
      "end }",
    ].join("\n");
  // The hash is the library's, not the script's: a change of this file makes another library of the same script.
  const hash = createHash("sha1").update(textOf("")).digest("hex").slice(0, 12);
  const name = `${PREFIX}${script.replaceAll("-", "_")}_${hash}`;
  return { name, lua: textOf(name) };
}

/** Statements that need few enough names for one function; one that does not end the call goes on to the next. */
function stepsOf(texts: readonly string[], names: ReadonlySet<string>): string[] {
  const steps: string[] = [];
  let step: string[] = [];
  let used = new Set(["GOES_ON"]);
  const end = () => {
    steps.push([...step, ...(/^return\b/.test(step.at(-1) ?? "") ? [] : ["return GOES_ON"])].join("\n"));
    [step, used] = [[], new Set(["GOES_ON"])];
  };
  for (const text of texts) {
    const more = [...text.matchAll(/[A-Za-z_]\w*/g)].flatMap(([word]) => (names.has(word) ? [word] : []));
    if (step.length > 0 && new Set([...used, ...more]).size > UPVALUES) end();
    step.push(text);
    for (const one of more) used.add(one);
  }
  if (step.length > 0) end();
  return steps;
}

function statementOf(text: string): Statement {
  const made = /^local function (\w+)/.exec(text);
  if (made) return { declares: [made[1] as string], when: "load", sets: text.slice("local ".length) };
  const when = ONCE.test(text) ? "first" : "call";
  const local = /^local ([\w, ]+?)\s*(?:=\s*([\s\S]*))?$/.exec(text.replace(ONCE, "$1"));
  if (!local) return { declares: [], when, sets: text };
  const [, list = "", value = "nil"] = local;
  const declares = list.split(/,\s*/);
  const isConstant = CONSTANT.test(list) && value !== "nil" && isLiteral(value);
  return { declares, when: isConstant ? "load" : when, sets: `${list} = ${value}` };
}

/** The name of a constant, if it is declared alone, and with literals: resident.test.ts checks that no call changes it. */
const CONSTANT = /^([A-Z][A-Z_]*|FACT_\w+)$/;
/** At the end of a statement's first line: it only makes functions, or declares the names of some. */
const ONCE = /^([^\n]*) -- once(?=\n|$)/;

function isLiteral(value: string): boolean {
  const rest = value
    .replace(/"(?:\\.|[^"\\])*"/g, "")
    .replace(/\w+\s*=(?!=)/g, "")
    .replace(/\b(true|false|nil|\d[\w.]*)\b/g, "");
  return !/[A-Za-z_]/.test(rest);
}

const WORD =
  /--\[\[[\s\S]*?\]\]|--[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\[\[[\s\S]*?\]\]|[A-Za-z_]\w*|[{}()[\]]|\n/g;
const OPENS = new Set(["function", "do", "if", "repeat", "{", "(", "["]);
const CLOSES = new Set(["end", "until", "}", ")", "]"]);

/** The statements of the outermost level: each begins on a line of its own, without a space before it. */
function statementsOf(lua: string): string[] {
  const begins: number[] = [0];
  let depth = 0;
  for (const { 0: word, index } of lua.matchAll(WORD)) {
    if (OPENS.has(word)) depth += 1;
    else if (CLOSES.has(word)) depth -= 1;
    else if (word === "\n" && depth === 0 && /\S/.test(lua[index + 1] ?? " ")) begins.push(index + 1);
  }
  return begins
    .map((begin, i) => lua.slice(begin, begins[i + 1]).trim())
    .filter((text) => text !== "" && !/^--[^\n]*$/.test(text));
}
