import { CarillonError } from "@carillon/core";

export function nameTaken(local: string): CarillonError {
  return new CarillonError("CONFLICT", `there is a task ${local} already.`, {
    field: "id",
    remedy: "Use another id.",
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
