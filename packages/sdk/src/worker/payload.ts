import { PermanentError } from "../permanent-error.js";
import { type AnyTaskType, validatePayload } from "../task-type.js";

/** The schema's output. A retry cannot fix an invalid payload. @throws `PermanentError` */
export async function checkedPayload(type: AnyTaskType, payload: unknown): Promise<unknown> {
  try {
    return await validatePayload(type, payload);
  } catch (error) {
    throw new PermanentError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}
