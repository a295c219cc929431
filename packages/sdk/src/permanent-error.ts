import { branded } from "@carillon/core/internal";

/** Throw it if a retry is useless: the run gets no further attempt. */
export class PermanentError extends Error {
  override name = "PermanentError";
}

branded(PermanentError, "permanent-error");

/** Whether a retry is useless. BullMQ's error for it counts too, by its name: it may be of another copy. */
export function isPermanentError(error: Error): boolean {
  return error instanceof PermanentError || PERMANENT.includes(error.name);
}

const PERMANENT = ["PermanentError", "UnrecoverableError"];
