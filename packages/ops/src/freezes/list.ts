import { isThawed } from "@carillon/core/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { freeze, mayRead, viewOf } from "./freeze.js";

export const listFreezes = operation({
  http: "GET /freezes",
  role: "viewer",
  reach: "owner",
  summary:
    "Lists the freezes that hold or will hold; a caller that is bound to an owner gets its own and those of no owner.",
  input: z.strictObject({}),
  output: z.object({ freezes: z.array(freeze) }),
  async run(call) {
    const { freezes } = call.store;
    const [all, now] = await Promise.all([freezes.list(), freezes.time()]);
    const shown = all.filter((one) => mayRead(call, one) && !isThawed(one, now));
    return { freezes: shown.map((one) => viewOf(one, now)) };
  },
});
