import { z } from "zod";
import { operation } from "../operation.js";
import { silence, silencesOf } from "./silence.js";

export const listSilences = operation({
  http: "GET /silences",
  role: "viewer",
  reach: "owner",
  summary: "Lists the current silences, the first to end first.",
  input: z.strictObject({}),
  output: z.object({ silences: z.array(silence) }),
  run: async (call) => ({ silences: await silencesOf(call) }),
});
