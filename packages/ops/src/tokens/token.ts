import { TOKEN_ROLES } from "@carillon/store";
import { z } from "zod";
import { time } from "../shapes.js";

/** A named token, without anything of its secret. */
export const token = z
  .object({
    name: z.string(),
    role: z.enum(TOKEN_ROLES),
    owners: z
      .array(z.string())
      .optional()
      .describe("The owners whose tasks it may see and touch. Absent: all."),
    created: time,
    createdBy: z.string().optional(),
    expires: time.optional().describe("Absent: never."),
    expired: z.boolean().describe("Whether its time is over: it opens nothing."),
  })
  .meta({ id: "Token" });
