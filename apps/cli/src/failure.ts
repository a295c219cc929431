import type { Writable } from "node:stream";
import type { CarillonError, ErrorCode } from "@carillon/sdk";
import { CommanderError } from "commander";
import { type ExitCode, exitCodeOf } from "./exit-codes.js";
import { printable } from "./text.js";

/** An error as it is printed: the same fields as the SDK's errors, and the line of the input. */
export interface Report {
  readonly code: ErrorCode;
  readonly message: string;
  readonly field?: string | undefined;
  readonly remedy?: string | undefined;
  readonly line?: number | undefined;
}

/** An error found by the CLI itself. A class of its own, because loading the SDK takes time. */
export class Failure extends Error {
  readonly report: Report;

  constructor(report: Report, cause?: unknown) {
    super(report.message, { cause });
    this.name = "Failure";
    this.report = report;
  }
}

/** A usage error: `field: what. remedy`. */
export function misuse(field: string, what: string, remedy: string): Failure {
  return new Failure({ code: "INVALID_OPTION", message: `${field}: ${what} ${remedy}`, field, remedy });
}

export function reportOf(error: unknown): Report {
  if (error instanceof Failure) return error.report;
  if (isCoded(error)) return error.toJSON();
  if (error instanceof CommanderError)
    return { code: "INVALID_OPTION", message: error.message.replace(/^error: /, "").replace("\n", " ") };
  return { code: "INTERNAL", message: error instanceof Error ? error.message : String(error) };
}

function isCoded(error: unknown): error is CarillonError {
  return error instanceof Error && error.name === "CarillonError" && "code" in error;
}

export function fail(error: unknown, json: boolean, stderr: Writable): ExitCode {
  const report = reportOf(error);
  const text = json
    ? JSON.stringify({ error: report })
    : `carillon: ${printable(report.message)} [${report.code}]`;
  stderr.write(`${text}\n`);
  return exitCodeOf(report.code);
}
