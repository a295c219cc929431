import { misuse } from "./failure.js";
import { parseJson, readAll } from "./input.js";
import type { Io } from "./io.js";

/**
 * The entries of a calendar, from a JSON list or one per line; the SDK checks each of them.
 * @throws `INVALID_OPTION` for a file that cannot be read or is empty, `INVALID_SCHEDULE` for broken JSON
 */
export async function readEntries(io: Io, file: string | undefined): Promise<string[]> {
  const text = await readAll(io, file, "A calendar is far smaller.");
  if (text.trim() === "") {
    throw misuse(
      "FILE",
      "empty.",
      "Give dates and calendar events, one a line; [] is a calendar without any.",
    );
  }
  return entriesOf(text);
}

/** A `#` begins a comment: neither dates nor calendar events contain one. */
export function entriesOf(text: string): string[] {
  if (text.trimStart().startsWith("[")) {
    return parseJson(text, 'Give a list, ["2026-12-25", "*-05-01"].', {
      code: "INVALID_SCHEDULE",
    }) as string[];
  }
  return text
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .filter((line) => line !== "");
}

/**
 * Calendars by name, each given as `NAME=FILE`.
 *
 * @throws `INVALID_OPTION`, and as `readEntries`
 */
export async function readCalendars(io: Io, specs: readonly string[]): Promise<Map<string, string[]>> {
  const calendars = new Map<string, string[]>();
  for (const spec of specs) {
    const [, name, file] = /^([^=]+)=(.+)$/s.exec(spec) ?? [];
    if (name === undefined || file === undefined)
      throw misuse("calendar", "not NAME=FILE.", "Write --calendar holidays=holidays.txt.");
    if (calendars.has(name)) throw misuse("calendar", `${name} is given twice.`, "Leave one of the two out.");
    calendars.set(name, await readEntries(io, file));
  }
  return calendars;
}
