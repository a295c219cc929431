import { CarillonError, type TaskName } from "@carillon/core";
import { conflict } from "@carillon/core/internal";
import { failsForAll, redisError } from "../redis/redis-error.js";

export function nameTaken(local: string): CarillonError {
  return new CarillonError("CONFLICT", `the task ${local} already exists.`, {
    field: "id",
    remedy: "Use another id.",
  });
}

/** @param what the mismatch with the `ifRevision` of the put */
export function notAsAsked(local: string, what: string): CarillonError {
  return new CarillonError("CONFLICT", `${local} ${what}.`, {
    field: "ifRevision",
    remedy: "Get the task again, and retry with its current revision.",
  });
}

export function unsupportedFormat(local: string, version: string): CarillonError {
  return new CarillonError(
    "UNSUPPORTED_FORMAT",
    `${local} was written in format ${version}, which is newer than this version supports.`,
    {
      remedy: "Upgrade Carillon here too; until then this version leaves the task alone.",
    },
  );
}

export function unreadable(local: string, cause: unknown): CarillonError {
  return new CarillonError("UNSUPPORTED_FORMAT", `${local} holds corrupt or foreign data.`, {
    remedy: "Delete it and put it again, and check what else writes to this Redis.",
    cause,
  });
}

export function unreadableRun(id: string): CarillonError {
  return new CarillonError("UNSUPPORTED_FORMAT", `the record of run ${id} holds corrupt or foreign data.`, {
    remedy: "Check what else writes to this Redis. The record is deleted with its task.",
  });
}

/** @param text what Redis said to a script's write of this task */
export function refused(local: string, text: string): CarillonError {
  const coded = redisError(new Error(text));
  return failsForAll(coded)
    ? coded
    : new CarillonError("REDIS_ERROR", `${local} cannot be written: ${text}.`);
}

/** @param moving the mark of the move */
export function isMoving(moving: string, local: string): CarillonError {
  const [direction, queue] = moving.split(" ");
  return conflict(
    `${local} is being moved ${direction} queue ${queue}.`,
    "Repeat the move: it goes on where it was interrupted.",
  );
}

/** Treats a key that holds another type than a hash (foreign data) as an empty hash. @throws any other error */
export function noHash(error: unknown): Record<string, string> {
  if (error instanceof Error && error.message.startsWith("WRONGTYPE")) return {};
  throw error;
}

/** Treats a key that holds another type than a hash (foreign data) as a missing field. @throws any other error */
export function noText(error: unknown): string {
  noHash(error);
  return "";
}

export function tooManyWait({ owner, queue }: Pick<TaskName, "owner" | "queue">): CarillonError {
  return new CarillonError(
    "QUOTA_WAITING",
    `as many jobs of ${owner} wait in queue ${queue} as a quota allows.`,
    {
      remedy: "Start workers or wait for them, use force, or ask an admin for another quota.",
    },
  );
}

export function ownerLimit({ owner, queue }: TaskName): CarillonError {
  return new CarillonError("OWNER_LIMIT", `${owner} has reached its limit of runs in queue ${queue}.`, {
    remedy: "Try again when one of them has ended, or raise the limit: `carillon queues limit`.",
  });
}

/** @param word as a script answers it: `ERROR`, then what Redis said to BullMQ's add */
export function addFailed(word: string): CarillonError {
  const text = word.slice("ERROR ".length);
  const coded = redisError(new Error(text));
  if (coded.code === "REDIS_OUT_OF_MEMORY" || coded.code === "REDIS_READ_ONLY") return coded;
  return new CarillonError("REDIS_ERROR", `BullMQ's add failed: ${text}.`);
}
