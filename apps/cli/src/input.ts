import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { Failure, misuse, type Report } from "./failure.js";

/** A line may be this long, in characters; far more than the largest task. */
const LONGEST_LINE = 8 * 1024 * 1024;
/** A file that is read as a whole may be this long, in characters. */
const LARGEST_FILE = 64 * 1024 * 1024;

export interface Line {
  /** From 1. */
  readonly number: number;
  /** Undefined: too long to be kept. */
  readonly text: string | undefined;
}

let stdinTaken = false;

/** A file, or standard input for `-` and for nothing, as text. */
function open(file: string | undefined): Readable {
  if (file !== undefined && file !== "-") return createReadStream(file, "utf8");
  if (file === undefined && process.stdin.isTTY) {
    throw misuse("FILE", "missing.", "Give a file, or - to type into standard input.");
  }
  if (stdinTaken) throw misuse("FILE", "standard input is asked for twice.", "Give a file for one of them.");
  stdinTaken = true;
  return process.stdin.setEncoding("utf8");
}

/** What reading failed with: a missing file is the caller's mistake. */
function unreadable(error: unknown, file: string | undefined): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (typeof code !== "string" || !code.startsWith("E")) return error;
  return misuse("FILE", `${file ?? "standard input"} cannot be read: ${message}.`, "Check the path.");
}

/**
 * @param instead what to do about an input that is too large
 * @throws `INVALID_OPTION` for what cannot be read, `INVALID_TASK` for too much
 */
export async function readAll(file: string | undefined, instead: string): Promise<string> {
  let text = "";
  try {
    for await (const chunk of open(file)) {
      text += chunk as string;
      if (text.length > LARGEST_FILE) break;
    }
  } catch (error) {
    throw unreadable(error, file);
  }
  if (text.length <= LARGEST_FILE) return text.replace(/^\uFEFF/, "");
  throw new Failure({
    code: "INVALID_TASK",
    message: `The input is larger than 64 MiB. ${instead}`,
  });
}

/**
 * The lines of each chunk as it comes, blank ones left out: memory holds one chunk, and who asks line by line gets
 * each answer before the next question.
 */
export async function* readLines(file: string | undefined): AsyncGenerator<Line[]> {
  let number = 0;
  let carry = "";
  let tooLong = false;
  const take = (text: string): Line[] => {
    number += 1;
    const line = { number, text: tooLong || text.length > LONGEST_LINE ? undefined : text };
    tooLong = false;
    return line.text?.trim() === "" ? [] : [line];
  };
  try {
    for await (const chunk of open(file) as AsyncIterable<string>) {
      const ends = chunk.lastIndexOf("\n");
      if (ends < 0) {
        carry += chunk;
      } else {
        const lines = (carry + chunk.slice(0, ends)).split("\n");
        carry = chunk.slice(ends + 1);
        if (number === 0) lines[0] = (lines[0] as string).replace(/^\uFEFF/, "");
        yield lines.flatMap(take);
      }
      if (carry.length > LONGEST_LINE) {
        tooLong = true;
        carry = "";
      }
    }
  } catch (error) {
    throw unreadable(error, file);
  }
  if (carry !== "" || tooLong) yield take(number === 0 ? carry.replace(/^\uFEFF/, "") : carry);
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
