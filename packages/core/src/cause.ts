import { fingerprint } from "./fingerprint.js";
import type { Outcome } from "./run.js";

/** The common part of failures with one cause. */
export interface Cause {
  /** Eight hexadecimal digits: the same for the same outcome, error and frame, in every version. */
  readonly id: string;
  readonly outcome: Outcome;
  /** First line of the error; `…` is what differs from run to run. "": there is none. */
  readonly error: string;
  /** Function and file of the user's own frame on top of its stack, without line and column, which each deploy moves. */
  readonly frame?: string;
}

/** Parts of an error that differ from run to run. Their order matters: a URL has a host, a host has numbers. */
const DIFFERS: readonly RegExp[] = [
  // Quoted values.
  /"[^"]*"|`[^`]*`|(?<!\w)'[^']*'/g,
  /\b[a-z][a-z+.-]*:\/\/[^\s)\]}"']+/gi,
  /\b[\w.+-]+@[\w-]+\.[\w.-]+/g,
  /\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gi,
  // Times.
  /\b\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-][\d:]+)?)?/g,
  // Addresses, with ports.
  /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g,
  /(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{1,4}(?![\w:])/gi,
  // Ids: words with a digit that have eight letters and digits or more, but no codes such as ERR_HTTP2_ERROR.
  /\b(?=[\w-]*\d)(?![A-Z_]+\d{1,2}[A-Z_]+\b)[\w-]{8,}\b/g,
];
/** A number, unless it says what kind of failure it is: `HTTP 503`, `status 404`, `exit code 1`. */
const NUMBER = /\b(?<!\b(?:http|status|code|errno|signal)\W{0,4})\d+(?:\.\d+)?/gi;

/**
 * The cause of a failed run.
 *
 * @param line first line of its error @param frame of its stack, as V8 writes it, without `at`; "" none
 */
export function causeOf(outcome: Outcome, line: string, frame = ""): Cause {
  let error = line;
  for (const part of DIFFERS) error = error.replace(part, "…");
  error = error.replace(NUMBER, "…");
  const at = placeOf(frame);
  const id = fingerprint([outcome, error, at].join("\n")).toString(16).padStart(8, "0");
  return { id, outcome, error, ...(at !== "" && { frame: at }) };
}

/** `load (src/report.ts)`: the last two parts of the path are the same wherever it is installed. */
function placeOf(frame: string): string {
  const [, name = "", path = ""] = /^(?:(.*) \()?([^()]*?)(?::\d+){1,2}\)?$/.exec(frame) ?? [];
  const file = path.split(/[\\/]/).slice(-2).join("/");
  if (file === "") return "";
  return name === "" ? file : `${name} (${file})`;
}
