import { CarillonError, isCarillonError } from "@carillon/sdk";
import type { Ctx } from "../context.js";
import { RequestError } from "../errors.js";

/** Headers that make a write conditional, the input field that each stands for, and its value. */
const HEADERS = {
  "If-Match": { field: "ifRevision", read: (text: string) => /^"([^"]+)"$/.exec(text)?.[1] },
  "If-None-Match": { field: "ifRevision", read: (text: string) => (text === "*" ? "absent" : undefined) },
  "If-Unmodified-Since": { field: "", read: () => undefined },
  "Idempotency-Key": { field: "key", read: (text: string) => /^"(.*)"$/.exec(text)?.[1] ?? text },
} as const;

const REMEDIES = {
  ifRevision: "Puts of a task take If-Match with its revision in quotes, and If-None-Match: *.",
  key: "Triggers of a task take it. A put is idempotent without one.",
  "": "Use If-Match.",
} as const;

/**
 * The fields of a write that its headers stand for, so that none is ignored.
 *
 * @param fields of the operation
 * @throws `INVALID_OPTION` for a header that this operation cannot honour, or whose field is given too
 */
export function conditionsOf(c: Ctx, fields: object, given: object): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, { field, read }] of Object.entries(HEADERS)) {
    const text = c.req.header(name);
    if (text === undefined) continue;
    const value = Object.hasOwn(fields, field) ? read(text) : undefined;
    const isRepeated = Object.hasOwn({ ...given, ...found }, field);
    if (value === undefined || isRepeated)
      throw new CarillonError(
        "INVALID_OPTION",
        isRepeated ? `${field} is given too.` : "not supported here.",
        {
          field: name,
          remedy: REMEDIES[field],
        },
      );
    found[field] = value;
  }
  return found;
}

/** A conflict with a condition that a header has, as HTTP wants it: 412. */
export function failedPrecondition(error: unknown, conditions: object): unknown {
  if (!Object.hasOwn(conditions, "ifRevision") || !isCarillonError(error, "CONFLICT")) return error;
  if (error.field !== "ifRevision") return error;
  return new RequestError(412, "someone else has changed, deleted or created the task.", {
    field: "If-Match",
    remedy: "Read the task again, and repeat the change with its new ETag.",
  });
}
