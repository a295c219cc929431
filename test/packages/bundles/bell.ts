import { defineTask } from "@carillon/sdk";
import { z } from "zod";

export const bell = defineTask("bell", {
  queue: "bells",
  payload: z.object({ strokes: z.number() }),
  handler: async ({ strokes }) => ({ rang: strokes }),
});
