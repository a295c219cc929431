import { CarillonError } from "@carillon/core";
import { failsForAll, redisError } from "./redis-error.js";

export function nameTaken(local: string): CarillonError {
  return new CarillonError("CONFLICT", `there is a task ${local} already.`, {
    field: "id",
    remedy: "Use another id.",
  });
}

/** @param what how it is, other than a put asked for */
export function notAsAsked(local: string, what: string): CarillonError {
  return new CarillonError("CONFLICT", `${local} ${what}.`, {
    field: "ifRevision",
    remedy: "Get it again, and decide anew.",
  });
}

export function unsupportedFormat(local: string, version: string): CarillonError {
  return new CarillonError(
    "UNSUPPORTED_FORMAT",
    `${local} was written in format ${version}, newer than ours.`,
    {
      remedy: "Upgrade Carillon here too; until then this version leaves the task alone.",
    },
  );
}

export function unreadable(local: string, cause: unknown): CarillonError {
  return new CarillonError("UNSUPPORTED_FORMAT", `${local} holds what Carillon never writes.`, {
    remedy: "Delete it and put it again, and see who else writes to this Redis.",
    cause,
  });
}

/** @param text what Redis said to a script's write of this task */
export function refused(local: string, text: string): CarillonError {
  const coded = redisError(new Error(text));
  return failsForAll(coded)
    ? coded
    : new CarillonError("REDIS_ERROR", `${local} cannot be written: ${text}.`);
}

/** Where a hash should be there is something that someone else has put there: as if there were nothing. @throws any other error */
export function noHash(error: unknown): Record<string, string> {
  if (error instanceof Error && error.message.startsWith("WRONGTYPE")) return {};
  throw error;
}
