import type { TaskName } from "@carillon/core";
import { formatDuration } from "@carillon/core/internal";

/** `error`: work is lost, wrong or not done; `warning`: it may be. */
export type Severity = "error" | "warning";

/** A fault that `client.doctor()` found. */
export interface Finding {
  /** A code of `client.status()`, or of a check of its own. */
  readonly code: string;
  readonly severity: Severity;
  /** The fault, with its proof. */
  readonly message: string;
  readonly remedy: string;
  readonly queue?: string | undefined;
  readonly task?: TaskName | undefined;
}

/** The answer of `client.doctor()`. */
export interface Diagnosis {
  readonly state: "healthy" | "warnings" | "errors";
  /** Errors first. */
  readonly findings: readonly Finding[];
  /** Tasks that were read, of all: at most 2,000, in each queue half of them the first by name, half the next due. */
  readonly tasks: { readonly read: number; readonly of: number };
  /** Checks that could not be made, and why. */
  readonly skipped: readonly string[];
}

/** Names in findings of one code; the rest are counted. */
export const NAMED = 5;

/** A duration for people: without the milliseconds of a second. */
export function span(ms: number): string {
  return formatDuration(ms < 1_000 ? Math.round(ms) : Math.round(ms / 1_000) * 1_000);
}
