import { misuse } from "../failure.js";
import { parseJson } from "../input.js";

export type Row = Readonly<Record<string, unknown>>;

/**
 * Rows of a table as exports write them: a JSON list, JSON lines, or CSV with a head. Names of columns in lower camel
 * case, so that `RETRY_LIMIT` is `retryLimit`; `{ "$date": … }` and its like as plain values. Leaves out empty fields.
 * @throws `INVALID_OPTION`
 */
export function readRows(text: string): Row[] {
  const rows = /^\s*[[{]/.test(text) ? ofJson(text) : ofCsv(text);
  const wrong = rows.findIndex((row) => typeof row !== "object" || row === null || Array.isArray(row));
  if (wrong >= 0) throw misuse("FILE", `row ${wrong + 1} is not an object.`, HINT);
  return rows.map((row) =>
    Object.fromEntries(
      Object.entries(row as Row)
        .map(([name, value]) => [camel(name), plain(value)] as const)
        .filter(([, value]) => textOf(value) !== undefined),
    ),
  );
}

export const isTrue = (value: unknown) => ["true", "t", "1"].includes(String(value));

/** A text, or undefined for what databases have for none. */
export function textOf(value: unknown): string | undefined {
  return value === undefined || value === null || value === "" || value === "NULL" || value === "null"
    ? undefined
    : String(value);
}

/** UTC ms of an ISO time, or of epoch ms. */
export function timeOf(value: unknown): number | undefined {
  const text = textOf(value);
  const time =
    text === undefined ? Number.NaN : new Date(/^-?\d+$/.test(text) ? Number(text) : text).getTime();
  return Number.isNaN(time) || time <= 0 ? undefined : time;
}

/** JSON, also as text in a column. @throws never: other text is itself */
export function jsonOf(value: unknown): unknown {
  if (typeof value !== "string") return value ?? undefined;
  try {
    return JSON.parse(value);
  } catch {
    return textOf(value);
  }
}

const HINT = "Give a JSON list, JSON lines, or CSV with a head.";

function ofJson(text: string): unknown[] {
  const options = { code: "INVALID_OPTION" as const };
  if (/^\s*\[/.test(text)) return parseJson(text, HINT, options) as unknown[];
  return text
    .split("\n")
    .flatMap((line, i) => (line.trim() === "" ? [] : [parseJson(line, HINT, { ...options, line: i + 1 })]));
}

function ofCsv(text: string): Row[] {
  const cells = [...text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)];
  const lines: string[][] = [[]];
  for (const [all, quoted, plain, end] of cells) {
    if (all === "") continue;
    lines.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain!);
    if (end !== ",") lines.push([]);
  }
  const [head = [], ...rows] = lines.filter(({ length }) => length > 0);
  if (head.length < 2) throw misuse("FILE", "neither JSON nor CSV.", HINT);
  return rows.map((row) => Object.fromEntries(head.map((name, i) => [name, row[i]])));
}

function camel(name: string): string {
  if (!/_|^[A-Z]+$/.test(name) || name.startsWith("_")) return name;
  return name.toLowerCase().replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** MongoDB's extended JSON. */
function plain(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const [name, inner] = Object.entries(value)[0] ?? [];
  return name?.startsWith("$") ? plain(inner) : value;
}
