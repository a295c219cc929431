import type { TaskPage } from "@carillon/sdk";
import { z } from "zod";
import { conditions } from "../conditions.js";
import { operation } from "../operation.js";
import { as, nextPage, oneOf, page, taskName } from "../shapes.js";
import { task } from "./task.js";

/** Fields that select and sort tasks. */
export const listing = {
  ...conditions,
  sort: oneOf(["name", "next", "last"])
    .optional()
    .describe(
      "By queue, owner, id (default), by next time, or by the end of the last run, without tasks that have none.",
    ),
  ...page,
};

export const listTasks = operation({
  http: "GET /tasks",
  role: "viewer",
  reach: "owner",
  summary: "Lists tasks. A page may be short, even empty, and have a cursor, if few of very many match.",
  input: z.strictObject(listing),
  output: as<TaskPage>(
    z.object({
      tasks: z.array(task),
      unreadable: z.array(taskName).optional().describe("Matching tasks that this version cannot read."),
      cursor: nextPage,
    }),
  ),
  run: ({ client }, input) => client.list(input),
});
