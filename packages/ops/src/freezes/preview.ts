import { z } from "zod";
import { holds } from "../holds.js";
import { operation } from "../operation.js";
import { freezeInput, freezeOf, holdsOfFreeze } from "./freeze.js";

export const previewFreeze = operation({
  http: "POST /freezes/preview",
  role: "operator",
  reach: "owner",
  logs: false,
  summary: "Counts what a freeze would hold, and puts none.",
  input: freezeInput,
  output: z.object({ holds }),
  async run(call, input) {
    const { freeze, now } = await freezeOf(call, input);
    return { holds: await holdsOfFreeze(call, freeze, now) };
  },
});
