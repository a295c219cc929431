import { CarillonError, type TaskInput, type TaskName, taskSchema } from "@carillon/core";
import { z } from "zod";
import { operation } from "../operation.js";
import { describedBy, dryRun, given } from "../shapes.js";
import { ifRevision } from "./put.js";
import { putResult } from "./task.js";

export const replaceTask = operation({
  http: "PUT /tasks/:queue/:owner/:id",
  body: "task",
  role: "admin",
  reach: "owner",
  logs: "put",
  once: "script",
  example: { id: "t1", task: { type: "ring", schedule: { every: "1h" }, payload: {} } },
  summary: "Stores a task under the name in the path, or changes it.",
  input: z.strictObject({
    ...{ queue: given, owner: given, id: given },
    task: describedBy<Partial<TaskInput>>(taskSchema.partial({ queue: true, owner: true, id: true })),
    ifRevision,
    dryRun,
  }),
  output: putResult,
  status: [200, 201],
  run: ({ client, by }, { task, ifRevision, dryRun, ...name }) =>
    client.put(named(task, name), { ifRevision, dryRun, by }),
});

/** The task with the name of its path. @throws `INVALID_NAME` if the two differ */
function named(task: Partial<TaskInput>, name: TaskName): TaskInput {
  // The client refuses other values.
  if (typeof task !== "object" || task === null || Array.isArray(task)) return task as TaskInput;
  for (const field of ["queue", "owner", "id"] as const) {
    if (task[field] === undefined || task[field] === name[field]) continue;
    throw new CarillonError("INVALID_NAME", "differs from the path.", {
      field,
      remedy:
        "Leave it out here. POST …/move takes a task to another queue; an owner and an id never change.",
    });
  }
  return { ...task, ...name } as TaskInput;
}
