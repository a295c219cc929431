import { z } from "zod";
import { exampleTask, operation } from "../operation.js";
import { dryRun, given } from "../shapes.js";
import { putResult, taskInput } from "./task.js";

export const ifRevision = given
  .optional()
  .describe("Of one task: only if its `revision` is still this one; `absent`: only if there is none.");

export const putTask = operation({
  http: "POST /tasks",
  body: "task",
  role: "admin",
  reach: "owner",
  logs: "put",
  once: "script",
  example: { task: exampleTask("n1", { every: "1h" }) },
  summary: "Stores a task, or changes it. An identical one changes nothing.",
  input: z.strictObject({ task: taskInput, ifRevision, dryRun }),
  output: putResult,
  status: [200, 201],
  run: ({ client, by }, { task, ...how }) => client.put(task, { ...how, by }),
});
