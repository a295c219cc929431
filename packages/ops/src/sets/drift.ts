import { CarillonError } from "@carillon/core";
import { assertName } from "@carillon/core/internal";
import { driftOf } from "@carillon/sdk/internal";
import { z } from "zod";
import { nameOf } from "../bulk/bulk.js";
import { operation } from "../operation.js";
import { count, given, taskName, time } from "../shapes.js";
import { set } from "./set.js";

const MOST = 1_000;

const drift = taskName.extend({ by: z.string().optional(), at: time });

export const driftOfSet = operation({
  http: "GET /sets/:set/drift",
  role: "viewer",
  reach: "namespace",
  summary: "Returns a set, and its tasks whose definitions others have changed since its last apply.",
  input: z.strictObject({ set: given }),
  output: z.object({
    set,
    found: count.describe("Its tasks that are stored: fewer than `members` if some were deleted."),
    drift: z.array(drift).describe("The first 1,000."),
  }),
  async run({ store }, { set: name }) {
    assertName(name, "set");
    const record = await store.sets.get(name);
    if (!record)
      throw new CarillonError("SET_NOT_FOUND", `there is no set ${name}.`, { remedy: "List the sets." });
    const found: z.output<typeof drift>[] = [];
    let tasks = 0;
    for await (const page of store.tasks.pages({ set: name })) {
      tasks += page.tasks.length;
      for (const task of page.tasks) {
        const changed = driftOf(task);
        if (changed && found.length < MOST) found.push({ ...nameOf(task), ...changed });
      }
    }
    return { set: record, found: tasks, drift: found };
  },
});
