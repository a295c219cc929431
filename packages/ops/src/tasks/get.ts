import { z } from "zod";
import { operation } from "../operation.js";
import { refOf, taskRef } from "../shapes.js";
import { task } from "./task.js";

export const getTask = operation({
  http: "GET /tasks/:queue/:owner/:id",
  role: "viewer",
  reach: "owner",
  summary: "Reads a task.",
  input: z.strictObject(taskRef),
  output: task,
  run: ({ client }, input) => client.get(refOf(input)),
});
