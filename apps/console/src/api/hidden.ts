import type { Redactor } from "@carillon/ops/internal";
import { type Client, isCarillonError, type TaskName } from "@carillon/sdk";

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
  if (!redactor.hasShown(given["payload"])) return input;
  const { queue, owner, id } = { ...given, ...input } as unknown as TaskName;
  const stored = await client.get({ queue, owner, id }).catch(unlessMissing);
  const restored = { ...given, payload: redactor.restored(given["payload"], stored?.payload) };
  if (!inTask) return restored;
  const condition = stored && Object.hasOwn(fields, "ifRevision") && { ifRevision: stored.revision };
  return { ...condition, ...input, task: restored };
}

function unlessMissing(error: unknown): undefined {
  if (!isCarillonError(error, "TASK_NOT_FOUND")) throw error;
}
