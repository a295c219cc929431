import {
  CarillonError,
  type Client,
  isCarillonError,
  type PutOptions,
  type TaskInput,
  type TaskName,
} from "@carillon/sdk";
import { z } from "zod";
import { API_PATH } from "../paths.js";
import type { Redactor } from "../redact.js";
import { COUNTS, NAMED_TASK_INPUT, PUT, REVISIONS, TASK, TASK_INPUT, TASKS } from "./answers.js";
import { COUNTS_QUERY, LIST_QUERY, PUT_QUERY } from "./query.js";
import { type Asked, endpoint, ok, type Reply } from "./route.js";

const RESTORE = z.strictObject({
  number: z.int("not a whole number").optional(),
});

/** Definitions: list, add, read, change, delete. */
export function taskEndpoints(redactor: Redactor) {
  const put = async (client: Client, task: unknown, options: PutOptions): Promise<Reply> => {
    const { revision, ...given } = await withHidden(redactor, client, task);
    const done = await client.put(given.task as TaskInput, { ifRevision: revision, ...options });
    return { status: done.outcome === "created" ? 201 : 200, location: locationOf(done.task), body: done };
  };
  return {
    list: endpoint({ query: LIST_QUERY, answer: TASKS }, async ({ client, query }) =>
      ok(await client.list(query)),
    ),
    counts: endpoint({ query: COUNTS_QUERY, answer: COUNTS }, async ({ client, query }) =>
      ok(await client.counts(query)),
    ),
    add: endpoint(
      { query: PUT_QUERY, body: z.unknown(), checked: { body: TASK_INPUT }, answer: PUT, status: [200, 201] },
      ({ client, body, query }) => put(client, body, query),
    ),
    get: endpoint({ answer: TASK }, async (asked) => ok(await asked.client.get(taskOf(asked)))),
    put: endpoint(
      {
        query: PUT_QUERY,
        body: z.unknown(),
        checked: { body: NAMED_TASK_INPUT },
        answer: PUT,
        status: [200, 201],
      },
      (asked) => put(asked.client, named(asked.body, taskOf(asked)), asked.query),
    ),
    revisions: endpoint({ answer: REVISIONS }, async (asked) =>
      ok({ revisions: await asked.client.revisions(taskOf(asked)) }),
    ),
    restore: endpoint({ body: RESTORE, answer: PUT }, async (asked) =>
      ok(await asked.client.restore(taskOf(asked), asked.body.number)),
    ),
    remove: endpoint({}, async (asked) => {
      await asked.client.delete(taskOf(asked));
      return { status: 204 };
    }),
  };
}

/** The fields of a definition that can hold hidden values. */
const HOLDERS = ["payload", "alerts"] as const;

/**
 * A definition as it was shown, with the hidden values that are stored. `revision` is the one that they were read from, and
 * absent if the definition hides none.
 *
 * @throws `INVALID_PAYLOAD` for a placeholder without a stored value
 */
export async function withHidden(
  redactor: Redactor,
  client: Client,
  task: unknown,
): Promise<{ task: unknown; revision?: string }> {
  const given = Object(task) as Partial<TaskInput>;
  const hiding = HOLDERS.filter((field) => redactor.hasShown(given[field], field));
  if (hiding.length === 0) return { task };
  const { queue, owner, id } = given;
  const stored = await client.get({ queue, owner, id } as TaskName).catch(unlessMissing);
  const whole = hiding.map((field) => [field, redactor.restored(given[field], stored?.[field], field)]);
  return { task: { ...given, ...Object.fromEntries(whole) }, ...(stored && { revision: stored.revision }) };
}

function unlessMissing(error: unknown): undefined {
  if (!isCarillonError(error, "TASK_NOT_FOUND")) throw error;
}

/** The task that a path names; the client checks it. */
export function taskOf({ path }: Pick<Asked, "path">): TaskName {
  return { queue: path["queue"]!, owner: path["owner"]!, id: path["id"]! };
}

function locationOf({ queue, owner, id }: TaskName): string {
  return `${API_PATH}/tasks/${queue}/${owner}/${id}`;
}

/** The task of a body, with the name of its path. @throws `INVALID_NAME` if the two differ */
function named(body: unknown, name: TaskName): unknown {
  // The task's schema refuses other values.
  if (typeof body !== "object" || body === null || Array.isArray(body)) return body;
  for (const field of ["queue", "owner", "id"] as const) {
    const given = (body as Record<string, unknown>)[field];
    if (given === undefined || given === name[field]) continue;
    throw new CarillonError("INVALID_NAME", "differs from the path.", {
      field,
      remedy:
        "Leave it out here. POST …/move takes a task to another queue; an owner and an id never change.",
    });
  }
  return { ...body, ...name };
}
