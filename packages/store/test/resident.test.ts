import "@carillon/store";
import { Redis } from "ioredis";
import { parse } from "luaparse";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { TEXTS } from "../lua/texts.js";
import { loadBull } from "../src/bull/load.js";
import { assemble } from "../src/script/assemble.js";
import { REDIS_TIME } from "../src/script/context.js";
import { resident } from "../src/script/resident.js";
import { DECLARED, type Declared, script } from "../src/script/script.js";

await loadBull();

const texts = TEXTS as Record<string, string>;
const NOW = `local function nowMs() return 1700000000000 end
local function nowMicros() return "1700000000000000" end
local time = { "1700000000", "0" }`;
const CONTEXTS = {
  "as in production": { time: REDIS_TIME, sabotage: [] },
  guarded: { time: REDIS_TIME, sabotage: [], guarded: true },
  "with another time": { time: { lua: NOW }, sabotage: [] },
} as const;
const all = [...DECLARED.values()].filter(({ resident }) => resident);

/** Names of Lua and Redis that a script may use. */
const LUA = [
  ..."KEYS ARGV _G cjson cmsgpack error ipairs math next pairs pcall rawget redis select setmetatable string".split(
    " ",
  ),
  ..."struct table tonumber tostring type unpack os".split(" "),
];

type Node = { readonly type: string; readonly [field: string]: unknown };
const parsed = (text: string) =>
  parse(text.replace(/^#!.*/, ""), { luaVersion: "5.1", scope: true, comments: false }) as unknown as Node & {
    readonly body: readonly Node[];
    readonly globals: readonly { readonly name: string }[];
  };

/** A mention of a name that is a binding of the outermost level, or of the outermost level of a function there. */
interface Mention {
  readonly name: string;
  /** How the binding is used: a part of it is read, it is set, a part of it is set; `whole`: anything else. */
  readonly use: "part" | "set" | "change" | "whole";
  /** The function of the outermost level that has the mention; undefined: none. */
  readonly within: string | undefined;
  /** Number of functions around the binding, and around the mention. */
  readonly of: number;
  readonly at: number;
}

const READS_PARTS = ["ipairs", "pairs", "unpack", "next"];
const CHANGES = ["insert", "remove", "sort"];

/** The mentions of all bindings, with the scopes of Lua. */
function mentionsOf(chunk: Node): Mention[] {
  const found: Mention[] = [];
  const scopes: Map<string, number>[] = [new Map()];
  let within: string | undefined;
  let at = 0;
  const declare = (node: unknown) => scopes.at(-1)?.set((node as { name: string }).name, at);
  const mention = (node: Node, use: Mention["use"]) => {
    const name = node["name"] as string;
    const of = scopes.findLast((scope) => scope.has(name))?.get(name);
    if (of !== undefined) found.push({ name, use, within, of, at });
  };
  const inScope = (act: () => void) => {
    scopes.push(new Map());
    act();
    scopes.pop();
  };
  const each = (nodes: unknown) => {
    for (const node of nodes as Node[]) visit(node);
  };
  const target = (node: Node) => {
    if (node.type === "Identifier") return mention(node, "set");
    let base = node;
    while (base.type !== "Identifier" && base["base"]) base = base["base"] as Node;
    if (base.type === "Identifier") mention(base, "change");
    visit(node);
  };
  const part = (node: unknown) =>
    (node as Node).type === "Identifier" ? mention(node as Node, "part") : visit(node as Node);
  const visit = (node: Node | null): void => {
    if (node === null) return;
    const { type } = node;
    if (type === "Identifier") return mention(node, "whole");
    if (type === "LocalStatement") {
      each(node["init"]);
      for (const variable of node["variables"] as Node[]) declare(variable);
    } else if (type === "AssignmentStatement") {
      each(node["init"]);
      for (const variable of node["variables"] as Node[]) target(variable);
    } else if (type === "FunctionDeclaration") {
      const named = node["identifier"] as (Node & { name: string }) | null;
      if (named && node["isLocal"] && !scopes[0]?.has(named.name)) declare(named);
      else if (named) target(named);
      const outer = within;
      if (at === 0) within = named?.name ?? "callback";
      at += 1;
      inScope(() => {
        for (const parameter of node["parameters"] as Node[])
          if (parameter.type === "Identifier") declare(parameter);
        each(node["body"]);
      });
      at -= 1;
      within = outer;
    } else if (type === "ForNumericStatement" || type === "ForGenericStatement") {
      for (const field of ["start", "end", "step"]) visit((node[field] ?? null) as Node | null);
      each(node["iterators"] ?? []);
      inScope(() => {
        for (const variable of (node["variables"] ?? [node["variable"]]) as Node[]) declare(variable);
        each(node["body"]);
      });
    } else if (
      type === "RepeatStatement" ||
      type === "WhileStatement" ||
      type === "DoStatement" ||
      /Clause$/.test(type)
    ) {
      inScope(() => {
        if (type !== "RepeatStatement") visit((node["condition"] ?? null) as Node | null);
        each(node["body"]);
        if (type === "RepeatStatement") visit(node["condition"] as Node);
      });
    } else if (type === "MemberExpression") part(node["base"]);
    else if (type === "IndexExpression") {
      part(node["base"]);
      visit(node["index"] as Node);
    } else if (type === "UnaryExpression" && node["operator"] === "#") part(node["argument"]);
    else if (type === "CallExpression") {
      const base = node["base"] as Node & { name?: string; identifier?: { name: string } };
      const [first, ...rest] = node["arguments"] as Node[];
      visit(base);
      if (first?.type === "Identifier" && CHANGES.includes(base.identifier?.name ?? ""))
        mention(first, "change");
      else if (READS_PARTS.includes(base.name ?? "")) part(first);
      else visit(first ?? null);
      each(rest);
    } else if (type === "TableKeyString") visit(node["value"] as Node);
    else
      for (const value of Object.values(node))
        for (const one of Array.isArray(value) ? value : [value])
          if (one && typeof one === "object" && "type" in one) visit(one as Node);
  };
  each(chunk["body"]);
  return found;
}

const isStep = (name: string | undefined) => /^step\d+$/.test(name ?? "");
const isMake = (name: string | undefined) => /^make\d+$/.test(name ?? "");

/** Differences between a function and its script that would change what it does; empty if there are none. */
function differences(lua: string, library: string): string[] {
  const [asScript, asLibrary] = [parsed(lua), parsed(library)];
  const [names, ...body] = asLibrary.body as (Node & { variables: { name: string }[] })[];
  const ours = new Set(names?.variables.map(({ name }) => name));
  const globals = asScript.globals.map(({ name }) => name);
  const found = globals.filter((name) => !LUA.includes(name)).map((name) => `${name} is declared nowhere`);
  // KEYS and ARGV are globals of a script, and names of a library.
  found.push(
    ...globals.filter((n) => ours.has(n) && n !== "KEYS" && n !== "ARGV").map((n) => `${n} is hidden`),
  );

  const functions = body.filter(({ type }) => type === "FunctionDeclaration") as unknown as (Node & {
    body: Node[];
    identifier: { name: string };
  })[];
  const parts = functions.filter(({ identifier: { name } }) => isStep(name) || isMake(name));
  const goOn = parts.filter(({ body: own }) => JSON.stringify(own.at(-1)).includes("GOES_ON")).length;
  const statements = parts.reduce((sum, { body: own }) => sum + own.length, 0) - goOn;
  // GOES_ON and the call that registers the function are the library's own.
  if (statements + body.length - parts.length - 2 !== asScript.body.length)
    found.push("a statement is two, or half of one");

  if (parts.some(({ body: own }) => own.some(({ type }) => type === "LocalStatement")))
    found.push("a name is local to a step");

  const mentions = mentionsOf(asLibrary);
  const setIn = (name: string, where: (within: string | undefined) => boolean) =>
    mentions.some(
      (one) => one.name === name && one.use === "set" && one.of === 0 && one.at <= 1 && where(one.within),
    );
  const lasting = new Set(
    [...ours].filter(
      (name) => name !== "isMade" && (setIn(name, (within) => within === undefined) || setIn(name, isMake)),
    ),
  );
  const tables = new Set(
    body.flatMap((one) => {
      const [init] = (one["init"] ?? []) as Node[];
      return one.type === "AssignmentStatement" && init?.type === "TableConstructorExpression"
        ? [one.variables[0]?.name]
        : [];
    }),
  );
  for (const { name, use, within, of, at } of mentions) {
    const where = `${name} in ${within}`;
    if (of === 0 && lasting.has(name)) {
      if (use === "set" && within !== undefined && !isMake(within)) found.push(`a call sets ${where}`);
      if (use === "change") found.push(`a call changes ${where}`);
      if (use === "whole" && tables.has(name) && name !== "GOES_ON")
        found.push(`a call could change ${where}`);
    }
    if (isMake(within)) {
      if (of === 0 && at === 1 && !lasting.has(name)) found.push(`what is made once reads ${where}`);
      if (of === 1 && at > 1 && (use === "set" || use === "change"))
        found.push(`a call changes ${where}, which is made once`);
    }
  }
  return found;
}

describe.each(Object.entries(CONTEXTS))("each script %s", (_, context) => {
  it.each(all.map((one) => [one.name, one] as const))("%s is the same as a function", (_, declared) => {
    const lua = assemble(declared, context);
    expect(differences(lua, resident(declared, lua).lua)).toEqual([]);
  });
});

describe("a difference is found:", () => {
  const library = (names: string, ...rest: string[]) =>
    `#!lua name=x
local KEYS, ARGV, GOES_ON, isMade, ${names}
GOES_ON = {}
${rest.join("\n")}
redis.register_function{ function_name = "x", callback = function(keys, args) KEYS, ARGV = keys, args end }`;

  it.each([
    [
      "a name that is declared nowhere",
      "local a = typo",
      library("a", "local function step0() a = typo return GOES_ON end"),
      "typo is declared nowhere",
    ],
    [
      "a function that uses one of Lua, and a later name",
      "local function f() return type(1) end\nlocal type = f()",
      library(
        "f, type",
        "function f() return type(1) end",
        "local function step0() type = f() return GOES_ON end",
      ),
      "type is hidden",
    ],
    [
      "two statements on one line",
      "local a = 1 local b = 2",
      library("a", "local function step0() a = 1 local b = 2 return GOES_ON end"),
      "a name is local to a step",
    ],
    [
      "half a statement",
      "local a = 1",
      library("a", "local function step0() a = 1 a = 2 return GOES_ON end"),
      "a statement is two, or half of one",
    ],
    [
      "a constant that is set",
      "local N = 1\nN = N + 1\nreturn N",
      library("N", "N = 1", "local function step0() N = N + 1 return N end"),
      "a call sets N in step0",
    ],
    [
      "a function that is replaced",
      "local function f() return 1 end\nf = tostring",
      library("f", "function f() return 1 end", "local function step0() f = tostring return GOES_ON end"),
      "a call sets f in step0",
    ],
    [
      "a table that is changed",
      "local T = { 1 }\nlocal function f() T[1] = 2 end\nf()",
      library(
        "T, f",
        "T = { 1 }",
        "function f() T[1] = 2 end",
        "local function step0() f() return GOES_ON end",
      ),
      "a call changes T in f",
    ],
    [
      "a table that is sorted",
      "local T = { 2, 1 }\ntable.sort(T)",
      library("T", "T = { 2, 1 }", "local function step0() table.sort(T) return GOES_ON end"),
      "a call changes T in step0",
    ],
    [
      "a table of another name",
      "local T = { 1 }\nlocal U = T\nU[1] = 2",
      library("T, U", "T = { 1 }", "local function step0() U = T U[1] = 2 return GOES_ON end"),
      "a call could change T in step0",
    ],
    [
      "a value of a call in what is made once",
      "local a = ARGV[1]\nlocal f\ndo local b = a f = function() return b end end",
      library(
        "a, f",
        "local function make0() f = nil do local b = a f = function() return b end end end",
        "local function step0() a = ARGV[1] return GOES_ON end",
      ),
      "what is made once reads a in make0",
    ],
    [
      "a count in what is made once",
      "local f\ndo local n = 0 f = function() n = n + 1 return n end end",
      library(
        "f",
        "local function make0() f = nil do local n = 0 f = function() n = n + 1 return n end end end",
      ),
      "a call changes n in make0, which is made once",
    ],
  ])("%s", (_, lua, made, expected) => {
    const found = differences(lua, made);
    expect(found).toContain(expected);
  });
});

it("a constant that a call changes is found in what is made of its text", () => {
  const lua = "local T = { 1 }\nT[1] = T[1] + 1\nreturn T[1]";
  const declared = script("told-once", { keys: [], once: "value" });
  expect(differences(lua, resident(declared, lua).lua)).toEqual(["a call changes T in step0"]);
  DECLARED.delete("told-once");
});

describe("on Redis", () => {
  const redis = sharedRedis();
  let client: Redis;
  beforeAll(() => {
    client = new Redis(redis.url);
  });
  afterAll(async () => {
    await client.function("FLUSH");
    client.disconnect();
    delete texts["told-once.lua"];
    DECLARED.delete("told-once");
  });

  const load = async (declared: Declared, lua: string) => {
    const made = resident(declared, lua);
    expect(await client.function("LOAD", "REPLACE", made.lua)).toBe(made.name);
    return made.name;
  };
  /** Lines have other numbers in a function, and its variables are not local. */
  const plain = (error: Error) =>
    error.message.replace(/@?user_(script|function): ?\d+:?|ERR | script: .*|\b(local|upvalue) (?=')/g, "");
  const answerOf = async (call: Promise<unknown>) =>
    JSON.stringify(await call.catch(plain), (_, value) => (value instanceof Error ? plain(value) : value))
      // Redis numbers the entries of a stream by its clock.
      .replace(/\d{13}-\d+/g, "entry");

  describe.each(Object.entries(CONTEXTS))("each script %s", (_, context) => {
    it.each(all.map((one) => [one.name, one] as const))("%s loads", async (_, declared) => {
      await load(declared, assemble(declared, context));
    });
  });

  it.each(all.map((one) => [one.name, one] as const))(
    "%s does the same after a call that failed",
    async (_, declared) => {
      const lua = assemble(declared, CONTEXTS["with another time"]);
      const name = await load(declared, lua);
      const { keys, args = [], each } = declared.signature;
      const given = (value: string) => {
        const ends = [keys.length, args.length].join(" ");
        const named = keys.map((key) => `{n:q}:~${key.replace(/\W/g, "")}`);
        return [named.length, ...named, ...(each ? [`${ends} 1`] : []), ...args.map(() => value)] as const;
      };
      const calls = [given("7"), given("x"), given(""), given("7")];
      const answers = async (call: (given: readonly [number, ...string[]]) => Promise<unknown>) => {
        await client.flushall();
        const seen = [];
        for (const one of calls) seen.push(await answerOf(call(one)));
        return seen;
      };
      expect(await answers((one) => client.fcall(name, ...one))).toEqual(
        await answers((one) => client.eval(lua, ...one)),
      );
    },
  );

  /** Scripts that could see something of the call before. Each is called three times with the same arguments. */
  const REMEMBERING = {
    counts: `local n = 0\nlocal function count() n = n + 1 return n end\ncount()\nreturn count()`,
    "fills a table": `local seen = {}\nlocal function see(x) seen[#seen + 1] = x end\nsee(1)\nreturn #seen`,
    "changes a field": `local t = { n = 1 }\nt.n = t.n + 1\nreturn t.n`,
    "changes an element": `local t = { 1 }\nlocal at = { 1 }\nt[at[1]] = t[1] + 1\nreturn t[1]`,
    "changes a table by another name": `local t = { 1 }\nlocal u = t\nu[1] = u[1] + 1\nreturn u[1]`,
    "changes a table in a function": `local t = { 1 }\nlocal function f(x) x[1] = x[1] + 1 return x[1] end\nreturn f(t)`,
    inserts: `local t = { 1 }\ntable.insert(t, 2)\nreturn #t`,
    "sets a constant": `local n = 1\nlocal m = n\nn, m = 5, 6\nlocal before = n\nn = n + 1\nreturn before`,
    "sets a constant in a function": `local n = 1\nlocal function f() local old = n n = n + 1 return old end\nreturn f()`,
    "has a name without value": `local was\nlocal answer = was or "none"\nwas = 1\nreturn answer`,
    "keeps its arguments": `local first = ARGV[1]\nlocal function f() return first .. #KEYS .. #ARGV end\nreturn f()`,
    "ends early": `local n = 1\nif n == 1 then return end\nreturn "late"`,
    "returns false": `for i = 1, 2 do\n  if i == 2 then return false end\nend\nreturn "late"`,
    "returns an error": `if ARGV[1] then return redis.error_reply("NO") end\nreturn 1`,
    "fails midway": `local n, seen = 0, {}\nlocal function f() n = n + 1 seen[n] = n if n == 2 then error("cut " .. #seen) end end\nf()\nf()\nreturn n`,
    "fails in a command": `local n = redis.call("INCR", KEYS[1])\nlocal kept = { n }\nredis.call("HSET", KEYS[1], "a", "b")\nreturn kept`,
    "has a block that is made once": `local f, g -- once\ndo -- once\n  local call = redis.call\n  f = function(key) return call("INCR", key) end\nend\nreturn f(KEYS[1])`,
    "has many names": [
      ...Array.from({ length: 150 }, (_, i) => `local n${i} = ${i} + #ARGV`),
      `return ${Array.from({ length: 50 }, (_, i) => `n${3 * i}`).join(" + ")}`,
    ].join("\n"),
  };
  it.each(Object.entries(REMEMBERING))("a script that %s does the same at each call", async (_, text) => {
    texts["told-once.lua"] = text;
    const declared = script("told-once", { keys: ["task"], once: "value" });
    const name = await load(declared, text);
    const thrice = async (call: () => Promise<unknown>) => {
      await client.flushall();
      return [await answerOf(call()), await answerOf(call()), await answerOf(call())];
    };
    expect(await thrice(() => client.fcall(name, 1, "k", "x"))).toEqual(
      await thrice(() => client.eval(text, 1, "k", "x")),
    );
  });

  it.each([
    ["declared twice at the outermost level: a", `local a = 1\nlocal a = 2\nreturn a`],
    ["hides a function of Lua: type", `local type = 1\nreturn type`],
    ["names are too many", Array.from({ length: 198 }, (_, i) => `local n${i} = 1`).join("\n")],
  ])("a text is refused: %s", (why, text) => {
    const declared = script("told-once", { keys: ["task"], once: "value" });
    expect(() => resident(declared, text)).toThrow(why);
  });
});
