import "@carillon/store";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { TEXTS } from "../lua/texts.js";
import { loadBull } from "../src/bull/load.js";
import { assemble, librariesOf } from "../src/script/assemble.js";
import { REDIS_TIME } from "../src/script/context.js";
import { FACTS } from "../src/script/facts.js";
import { answers, DECLARED, script } from "../src/script/script.js";
import { Scripts } from "../src/script/scripts.js";

await loadBull();

const texts = TEXTS as Record<string, string>;
const CONTEXT = { time: REDIS_TIME, sabotage: [] };
const all = [...DECLARED.values()].filter(({ name }) => name !== "told-by-name");
const withoutMark = (names: readonly string[] = []) =>
  names.map((name) => name.replace(/\?|\[\]$/, "")).sort();
const code = (text: string) => text.replace(/--.*$/gm, "");

/** Names that a script's own text and its libraries read from a table. */
function read(table: string, text: string): string[] {
  const found = [...code(text).matchAll(new RegExp(`\\b${table}\\.(\\w+)`, "g"))];
  return [...new Set(found.map(([, name]) => name as string))].sort();
}

/** Copies each item, because packed ones share one table. */
const COLLECT = `for item in eachItem do
  local copy = {}
  for name, value in pairs(item) do copy[name] = value end
  items[#items + 1] = copy
end`;

describe("Lua files", () => {
  it("are all used and present", () => {
    const libraries = all.flatMap((one) => librariesOf(one)).filter(({ made }) => !made);
    const used = [...all.map(({ name }) => name), ...libraries.map(({ name }) => `lib/${name}`)];
    expect(Object.keys(TEXTS).sort()).toEqual([...new Set(used)].map((name) => `${name}.lua`).sort());
  });

  it.each(Object.entries(TEXTS))("have a header and no numbered keys: %s", (name, text) => {
    expect(text).toMatch(/^-- \S/);
    const numbered = [...code(text).matchAll(/\b(KEYS|ARGV)\b.*/g)].map(([line]) => line);
    // The names of the queue's keys are derived from any one key.
    expect(numbered).toHaveLength(name === "lib/keys.lua" ? 1 : 0);
  });

  it("build no key by hand", () => {
    const prefixes = Object.values(FACTS.keys).map((prefix) => `"${prefix}`);
    for (const [name, text] of Object.entries(TEXTS)) {
      for (const prefix of prefixes) expect(code(text).includes(prefix), `${name}: ${prefix}`).toBe(false);
    }
  });
});

describe.each(all.map((one) => [one.name, one] as const))("the script %s", (_, declared) => {
  const { keys, args, each } = declared.signature;
  const own = TEXTS[`${declared.name}.lua`] as string;
  const libraries = librariesOf(declared).map(({ name, made }) =>
    made ? made(CONTEXT) : (TEXTS[`lib/${name}.lua`] as string),
  );
  const text = [own, ...libraries].join("\n");

  it("load the parts that they name", () => {
    const named =
      code(text).match(/(?<!")\b(FENCED|TIMELY|THAWED|GUARDED|LIMITING|LEAVING|ONCE|WAKING)\b/g) ?? [];
    for (const name of named) expect(text).toContain(`local ${name} =`);
  });

  it("read all of their keys and arguments", () => {
    // The first key gives the names of the queue's keys; its content need not be read.
    expect(withoutMark(keys)).toEqual(expect.arrayContaining(read("K", own)));
    expect([...read("K", text), withoutMark([keys[0] as string])[0]]).toEqual(
      expect.arrayContaining(withoutMark(keys)),
    );
    expect(withoutMark(args)).toEqual(expect.arrayContaining(read("A", text)));
    // Arguments and items are also passed as a whole.
    for (const name of withoutMark([...(args ?? []), ...(each?.keys ?? []), ...(each?.args ?? [])])) {
      expect(code(text), name).toMatch(new RegExp(`\\w\\.${name}\\b`));
    }
  });
});

describe("scripts on Redis", () => {
  const redis = sharedRedis();
  let client: Redis;
  beforeAll(async () => {
    client = new Redis(redis.url);
  });
  afterAll(async () => {
    client.disconnect();
  });

  it.each(all.map((one) => [one.name, one] as const))("%s compiles", async (_, declared) => {
    await expect(client.script("LOAD", assemble(declared, CONTEXT))).resolves.toHaveLength(40);
  });

  describe("called by name", () => {
    /** Runs a script that returns all of its arguments, as JSON. */
    async function told(
      { keys = [], args = [], each }: { keys?: string[]; args?: string[]; each?: object },
      ...given: unknown[]
    ) {
      texts["told-by-name.lua"] = `
local items = {}
${each ? COLLECT : ""}
return cjson.encode({ K, A, items })`;
      const declared = script("told-by-name", { keys, args, each, answer: answers<string>() } as never);
      const link = {
        run: (one: { lua: string }, names: string[], values: string[]) =>
          client.eval(one.lua, names.length, ...names, ...values),
      };
      const scripts = new Scripts(link as never);
      const answer = (await scripts.run(declared as never, ...(given as [never]))) as string;
      return JSON.parse(answer) as unknown;
    }
    afterAll(() => {
      delete texts["told-by-name.lua"];
      DECLARED.delete("told-by-name");
    });

    it("get keys and arguments, each one text", async () => {
      expect(
        await told(
          { keys: ["a", "b"], args: ["n", "yes", "no", "none", "text"] },
          { a: "k1", b: "k2" },
          { n: 17, yes: true, no: false, none: undefined, text: "ü" },
        ),
      ).toEqual([{ a: "k1", b: "k2" }, { n: "17", yes: "1", no: "", none: "", text: "ü" }, {}]);
    });

    it("get lists, and keys that may be absent", async () => {
      const spec = { keys: ["list[]", "a", "maybe?", "other?", "more[]"], args: ["values[]", "n", "last[]"] };
      expect(
        await told(
          spec,
          { a: "k", list: ["l1", "l2"], other: "o", more: [] },
          { n: 1, values: [], last: [2, ""] },
        ),
      ).toEqual([
        { a: "k", list: ["l1", "l2"], other: "o", more: {} },
        { n: "1", values: {}, last: ["2", ""] },
        {},
      ]);
      expect(
        await told(spec, { a: "k", list: [], maybe: "m", more: ["x"] }, { n: 1, values: ["v"], last: [] }),
      ).toEqual([{ a: "k", list: {}, maybe: "m", more: ["x"] }, { n: "1", values: ["v"], last: {} }, {}]);
    });

    it.each([false, true])("get items, packed %s", async (packed) => {
      const each = { keys: ["key", "maybe?", "list[]"], args: ["n", "text"], packed };
      const one = { key: "k1", list: ["x", "y"], n: 1, text: "a b" };
      const other = { key: "k2", maybe: "m", list: [], n: 2, text: "" };
      const [, , items] = (await told(
        { keys: ["first", "rest[]"], args: ["arg", "more[]"], each },
        { first: "f", rest: ["r"] },
        { arg: "a", more: ["b", "c"] },
        [one, other, one],
      )) as [unknown, unknown, unknown];
      const asTexts = [
        { ...one, n: "1" },
        { ...other, list: {}, n: "2" },
      ];
      expect(items).toEqual([asTexts[0], asTexts[1], asTexts[0]]);
      expect((await told({ keys: ["a"], each }, { a: "k" }, {}, [])) as unknown[]).toEqual([
        { a: "k" },
        {},
        {},
      ]);
    });

    it("get equal items with lists of arguments", async () => {
      const each = { args: ["n", "fields[]"] };
      expect(
        await told({ keys: ["a"], args: [], each }, { a: "k" }, {}, [
          { n: 1, fields: ["f", "v"] },
          { n: 2, fields: [] },
        ]),
      ).toEqual([
        { a: "k" },
        {},
        [
          { n: "1", fields: ["f", "v"] },
          { n: "2", fields: {} },
        ],
      ]);
    });
  });
});
