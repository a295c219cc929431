import type { Signature, Value } from "./script.js";

/**
 * The way of named keys and arguments from TypeScript to Lua. This file has both ends: `writeLevel` puts them into the
 * numbered `KEYS` and `ARGV`, and `readingLua` makes the Lua that gets them back.
 *
 * A script's own names come first, then each item's. Where a level has names that vary in number, one text goes before
 * its arguments: the positions, counted from the level's beginning, at which each of these ends, keys first. For the
 * script itself the number of items is the last of them.
 */

export type Values = Readonly<Record<string, unknown>>;

interface Names {
  readonly ones: readonly string[];
  /** `name?` and `name[]`, in their order. */
  readonly varying: readonly { readonly name: string; readonly list: boolean }[];
}

interface Level {
  readonly keys: Names;
  readonly args: Names;
  readonly packed: boolean;
}

export interface Layout {
  readonly own: Level;
  readonly each: Level | undefined;
}

/** Terminator of each argument of a packed item. */
const END = "\0";

export function layoutOf({ keys, args = [], each }: Signature): Layout {
  return {
    own: { keys: named(keys), args: named(args), packed: false },
    each: each && {
      keys: named(each.keys ?? []),
      args: named(each.args ?? []),
      packed: each.packed ?? false,
    },
  };
}

function named(names: readonly string[]): Names {
  return {
    ones: names.filter((name) => /^\w+$/.test(name)),
    varying: names.flatMap((name) => {
      const [, base, kind] = /^(\w+)(\?|\[\])$/.exec(name) ?? [];
      return base === undefined ? [] : [{ name: base, list: kind === "[]" }];
    }),
  };
}

/** Whether a text with positions goes before a level's arguments. */
function varies({ keys, args }: Level): boolean {
  return keys.varying.length > 0 || args.varying.length > 0;
}

/** Keys and arguments as they are sent. */
export interface Written {
  readonly keys: string[];
  readonly args: (string | number | Buffer)[];
}

export function writeItem({ each }: Layout, item: Values): Written {
  const sent: Written = { keys: [], args: [] };
  writeLevel(each as Level, item, item, sent, undefined);
  return sent;
}

export function writeCall(
  { own, each }: Layout,
  keys: Values,
  args: Values,
  items: readonly Written[],
): Written {
  const sent: Written = { keys: [], args: [] };
  writeLevel(own, keys, args, sent, each ? items.length : undefined);
  for (const item of items) {
    for (const key of item.keys) sent.keys.push(key);
    for (const arg of item.args) sent.args.push(arg);
  }
  return sent;
}

function writeLevel(
  level: Level,
  keys: Values,
  args: Values,
  sent: Written,
  items: number | undefined,
): void {
  const ends: number[] = [];
  for (const name of level.keys.ones) sent.keys.push(keys[name] as string);
  let end = level.keys.ones.length;
  for (const { name, list } of level.keys.varying) {
    const given = keys[name];
    if (list) sent.keys.push(...(given as readonly string[]));
    else if (given !== undefined) sent.keys.push(given as string);
    end += list ? (given as readonly string[]).length : given === undefined ? 0 : 1;
    ends.push(end);
  }
  if (level.packed) {
    let text = varies(level) ? ends.join(" ") + END : "";
    for (const name of level.args.ones) text += argument(args[name] as Value) + END;
    sent.args.push(text);
    return;
  }
  const from = sent.args.length;
  if (varies(level) || items !== undefined) sent.args.push("");
  for (const name of level.args.ones) sent.args.push(argument(args[name] as Value));
  end = level.args.ones.length;
  for (const { name } of level.args.varying) {
    const list = args[name] as readonly Value[];
    for (const value of list) sent.args.push(argument(value));
    end += list.length;
    ends.push(end);
  }
  if (items !== undefined) ends.push(items);
  if (ends.length > 0) sent.args[from] = ends.join(" ");
}

function argument(value: Value): string | number | Buffer {
  if (value === undefined || value === false) return "";
  return value === true ? "1" : value;
}

/** Lua that defines `K`, `A` and, if there are items, `eachItem`. */
export function readingLua({ own, each }: Layout): string {
  const shaped = varies(own) || each !== undefined;
  const lines: string[] = [];
  if (shaped) lines.push(ENDS_OF);
  if (shaped) lines.push("local own = endsOf(ARGV[1])");
  lines.push(`local K = ${table(fields(own.keys, "KEYS", "", 0, "own", 0))}`);
  lines.push(
    `local A = ${table(fields(own.args, "ARGV", "", shaped ? 1 : 0, "own", own.keys.varying.length))}`,
  );
  if (each) lines.push(eachLua(own, each));
  return lines.join("\n");
}

const ENDS_OF = `local allEnds = {}
local function endsOf(text)
  local ends = allEnds[text]
  if not ends then
    ends = {}
    for position in string.gmatch(text, "%d+") do ends[#ends + 1] = tonumber(position) end
    allEnds[text] = ends
  end
  return ends
end`;

function eachLua(own: Level, each: Level): string {
  const shaped = varies(each);
  const count = own.keys.varying.length + own.args.varying.length + 1;
  const { keys, args } = each;
  const last = (names: Names, from: number) =>
    names.varying.length > 0 ? `ends[${from + names.varying.length}]` : String(names.ones.length);
  const keyFields = fields(keys, "KEYS", "k + ", 0, "ends", 0);
  const read = each.packed
    ? packedLua(each, keyFields)
    : `${shaped ? "local ends = endsOf(ARGV[a + 1])" : ""}
  local item = ${table([...keyFields, ...fields(args, "ARGV", "a + ", shaped ? 1 : 0, "ends", keys.varying.length)])}`;
  const argsTaken = each.packed ? "1" : `${last(args, keys.varying.length)}${shaped ? " + 1" : ""}`;
  return `local k = ${own.keys.varying.length > 0 ? `own[${own.keys.varying.length}]` : own.keys.ones.length}
local a = 1 + ${own.args.varying.length > 0 ? `own[${count - 1}]` : own.args.ones.length}
local itemCount = own[${count}]
local itemsRead = 0
${each.packed ? "local item = {}" : ""}
local function eachItem()
  if itemsRead == itemCount then return nil end
  itemsRead = itemsRead + 1
  ${read}
  k, a = k + ${last(keys, 0)}, a + ${argsTaken}
  return item
end`;
}

/** One table for all items: to make one for each would take Redis longer than to read the text. */
function packedLua(each: Level, keyFields: readonly Field[]): string {
  const names = each.args.ones.map((name) => `item.${name}`);
  const texts = varies(each) ? ["ends", ...names] : names;
  const format = "s".repeat(texts.length);
  const keys = keyFields.map(([name, value]) => `item.${name} = ${value}`).join("\n  ");
  return `local ends, item = nil, item
  ${texts.join(", ")} = struct.unpack("${format}", ARGV[a + 1])
  ${varies(each) ? "ends = endsOf(ends)" : ""}
  ${keys}`;
}

type Field = readonly [name: string, lua: string];

/** @param base what positions are counted from, as Lua @param from a number that is added @param first place of the first end */
function fields(
  names: Names,
  source: string,
  base: string,
  from: number,
  ends: string,
  first: number,
): Field[] {
  const ones = names.ones.map((name, i): Field => [name, `${source}[${base}${from + i + 1}]`]);
  const shift = from === 0 ? "" : ` + ${from}`;
  const varying = names.varying.map(({ name, list }, i): Field => {
    const begin = i === 0 ? String(names.ones.length) : `${ends}[${first + i}]`;
    const end = `${ends}[${first + i + 1}]`;
    return [
      name,
      list
        ? `{ unpack(${source}, ${base}${begin}${shift} + 1, ${base}${end}${shift}) }`
        : `${end} > ${begin} and ${source}[${base}${end}${shift}] or nil`,
    ];
  });
  return [...ones, ...varying];
}

function table(all: readonly Field[]): string {
  return `{ ${all.map(([name, lua]) => `${name} = ${lua}`).join(", ")} }`;
}
