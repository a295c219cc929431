import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { Failure, misuse, type Report } from "./failure.js";
import type { Io } from "./io.js";

/** Maximum length of a line, in bytes; far more than the largest task. */
const LONGEST_LINE = 8 * 1024 * 1024;
/** Maximum size of a file that is read as a whole, in bytes. */
const LARGEST_FILE = 64 * 1024 * 1024;

export interface Line {
  /** From 1. */
  readonly number: number;
  /** Undefined if the line has a fault. */
  readonly text: string | undefined;
  /** `too long` to be kept, or `not UTF-8`. */
  readonly fault?: string | undefined;
}

const LINE_END = 0x0a;
const NOTHING = Buffer.alloc(0);

/** Streams that are being read, or have been read. */
const taken = new WeakSet<Readable>();

/** Opens a file, or standard input for `-` or if no file is given. */
function open({ stdin }: Io, file: string | undefined): Readable {
  if (file !== undefined && file !== "-") return createReadStream(file);
  if (file === undefined && stdin.isTTY)
    throw misuse("FILE", "missing.", "Give a file, or - to type into standard input.");
  if (taken.has(stdin))
    throw misuse("FILE", "standard input can be read only once.", "Give a file for one of them.");
  taken.add(stdin);
  return stdin;
}

/** Converts a read error: a missing file is a usage error. */
function unreadable(error: unknown, file: string | undefined): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (typeof code !== "string" || !code.startsWith("E")) return error;
  return misuse("FILE", `${file ?? "standard input"} cannot be read: ${message}.`, "Check the path.");
}

/** Undefined for text that is not UTF-8: decoding it would change it. */
function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

const withoutMark = (text: string) => text.replace(/^\uFEFF/, "");

/**
 * @param instead what to do about an input that is too large
 * @throws `INVALID_OPTION` for input that cannot be read or is not UTF-8, `INVALID_TASK` if it is too large
 */
export async function readAll(io: Io, file: string | undefined, instead: string): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of open(io, file) as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > LARGEST_FILE) break;
    }
  } catch (error) {
    throw unreadable(error, file);
  }
  if (size > LARGEST_FILE) {
    throw new Failure({
      code: "INVALID_TASK",
      message: `The input is larger than 64 MiB. ${instead}`,
    });
  }
  const text = decode(Buffer.concat(chunks));
  if (text === undefined)
    throw misuse("FILE", `${file ?? "standard input"} is not UTF-8.`, "Save it as UTF-8.");
  return withoutMark(text);
}

/**
 * Yields the lines of each chunk as it arrives, without blank ones. So memory holds one chunk, and a program that
 * writes line by line gets each answer before it writes the next line.
 */
export async function* readLines(io: Io, file: string | undefined): AsyncGenerator<Line[]> {
  let number = 0;
  let carry: Buffer = NOTHING;
  let tooLong = false;
  const take = (text: string | undefined, size: number): Line[] => {
    number += 1;
    const fault = tooLong || size > LONGEST_LINE ? "too long" : text === undefined ? "not UTF-8" : undefined;
    tooLong = false;
    if (text === undefined || fault !== undefined) return [{ number, text: undefined, fault }];
    const line = number === 1 ? withoutMark(text) : text;
    return line.trim() === "" ? [] : [{ number, text: line }];
  };
  const takeAll = (bytes: Buffer): Line[] => {
    const text = decode(bytes);
    // The usual case: decodes all lines at once.
    if (text !== undefined) return text.split("\n").flatMap((line) => take(line, line.length));
    return splitLines(bytes).flatMap((line) => take(decode(line), line.length));
  };
  try {
    for await (const chunk of open(io, file) as AsyncIterable<Buffer>) {
      const ends = chunk.lastIndexOf(LINE_END);
      if (ends < 0) {
        carry = Buffer.concat([carry, chunk]);
      } else {
        const lines = Buffer.concat([carry, chunk.subarray(0, ends)]);
        carry = chunk.subarray(ends + 1);
        yield takeAll(lines);
      }
      if (carry.length > LONGEST_LINE) {
        tooLong = true;
        carry = NOTHING;
      }
    }
  } catch (error) {
    throw unreadable(error, file);
  }
  if (carry.length > 0 || tooLong) yield takeAll(carry);
}

function splitLines(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  let from = 0;
  for (let end = bytes.indexOf(LINE_END); end >= 0; end = bytes.indexOf(LINE_END, from)) {
    lines.push(bytes.subarray(from, end));
    from = end + 1;
  }
  return [...lines, bytes.subarray(from)];
}

/** @throws `INVALID_TASK`, or the code given */
export function parseJson(
  text: string,
  hint: string,
  { line, code = "INVALID_TASK" }: Partial<Pick<Report, "line" | "code">> = {},
): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const at = line === undefined ? "" : `line ${line}: `;
    const why = (error as Error).message;
    throw new Failure({ code, message: `${at}not JSON: ${why}. ${hint}`, remedy: hint, line }, error);
  }
}
