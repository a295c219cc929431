import { z } from "zod";
import { holds, holdsOf } from "../holds.js";
import { operation } from "../operation.js";
import { silenceInput, silenceOf } from "./silence.js";

export const previewSilence = operation({
  http: "POST /alerts/silences/preview",
  role: "operator",
  reach: "owner",
  logs: false,
  summary: "Counts the tasks whose alerts a silence would suppress, and puts none.",
  input: silenceInput,
  output: z.object({ holds }),
  async run(call, input) {
    const silence = await silenceOf(call, input);
    return { holds: await holdsOf(call.scope, silence, silence) };
  },
});
