import { z } from "zod";
import { operation } from "../operation.js";
import { refOf, taskRef } from "../shapes.js";

export const deleteTask = operation({
  http: "DELETE /tasks/:queue/:owner/:id",
  role: "admin",
  reach: "owner",
  logs: "delete",
  once: "script",
  example: { id: "t1" },
  summary: "Deletes a task with its records. Its definition can be restored for 7 days.",
  input: z.strictObject(taskRef),
  run: ({ client, by }, input) => client.delete(refOf(input), { by }),
});
