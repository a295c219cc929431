import { z } from "zod";
import { operation } from "../operation.js";
import { given } from "../shapes.js";
import { backfill, findBackfill, withoutRuns } from "./backfill.js";

export const getBackfill = operation({
  http: "GET /backfills/:id",
  role: "viewer",
  reach: "owner",
  summary: "Shows how far a backfill is.",
  input: z.strictObject({ id: given.describe("A backfill's id, as its start shows it.") }),
  output: backfill,
  async run(call, { id }) {
    return withoutRuns(await findBackfill(call, id));
  },
});
