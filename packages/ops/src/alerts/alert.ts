import { ALERT_KINDS } from "@carillon/core";
import { z } from "zod";
import { taskName, time } from "../shapes.js";

export const alertKind = z.enum(ALERT_KINDS).meta({ id: "AlertKind" });

export const alert = z
  .object({
    kind: alertKind,
    task: taskName.optional().describe("Missing for an alert about the namespace."),
    code: z.string().optional().describe("Status code of an alert about the namespace."),
    queue: z.string().optional(),
    type: z.string().optional(),
    run: z.string().optional().describe("The run that caused it."),
    at: time.describe("When it happened, or the deadline that passed."),
    error: z.string().optional(),
    cause: z.string().optional().describe("Id of the cause of its failure. A silence may name it."),
    message: z.string().optional().describe("Details of an alert without a run."),
    ended: z
      .array(alertKind)
      .readonly()
      .optional()
      .describe("Kinds of the incidents that a `recovered` ends."),
  })
  .meta({ id: "Alert" });
