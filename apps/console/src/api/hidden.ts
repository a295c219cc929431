import { type Client, isCarillonError, type TaskName } from "@carillon/sdk";
import type { Redactor } from "../redact.js";

/** The fields of a definition that can hold hidden values. */
const HOLDERS = ["payload", "alerts"] as const;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Puts the stored values back into an input in which they are hidden, as they were shown: in the definition that it has as `task`, or in
 * itself. Such a put has the revision as its condition that the values were read from, unless it names one.
 *
 * @param fields of the operation
 * @throws `INVALID_PAYLOAD` for a placeholder without a stored value
 */
export async function withHidden(
  redactor: Redactor,
  client: Client,
  input: Fields,
  fields: Fields,
): Promise<Fields> {
  const inTask = Object.hasOwn(fields, "task");
  const given = Object(inTask ? input["task"] : input) as Fields;
  const hiding = HOLDERS.filter((field) => redactor.hasShown(given[field], field));
  if (hiding.length === 0) return input;
  const { queue, owner, id } = { ...given, ...input } as unknown as TaskName;
  const stored = await client.get({ queue, owner, id }).catch(unlessMissing);
  const whole = hiding.map((field) => [field, redactor.restored(given[field], stored?.[field], field)]);
  const restored = { ...given, ...Object.fromEntries(whole) };
  if (!inTask) return restored;
  const condition = stored && Object.hasOwn(fields, "ifRevision") && { ifRevision: stored.revision };
  return { ...condition, ...input, task: restored };
}

function unlessMissing(error: unknown): undefined {
  if (!isCarillonError(error, "TASK_NOT_FOUND")) throw error;
}
