import { undelivered } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { time } from "../shapes.js";
import { alert } from "./alert.js";

const delivery = z.object({
  id: z
    .string()
    .describe(
      "Id of the task that sends it, in the queue of alerts; of what is collected, of its destination.",
    ),
  owner: z.string(),
  to: z.string().describe("Host of the webhook, or the e-mail address."),
  state: z
    .enum(["collecting", "waiting", "failed"])
    .describe(
      "Collecting until `at`; waiting for a worker, or for its next attempt; failed after its last one.",
    ),
  at: time.describe("Due time."),
  kinds: z.array(z.string()).readonly().describe("The kinds of its alerts."),
  error: z.string().optional(),
});

export const undeliveredAlerts = operation({
  http: "GET /alerts/undelivered",
  role: "viewer",
  reach: "owner",
  summary:
    "Lists alerts that wait for a node, and deliveries that wait for a worker, are collected or failed: the first hundred of each.",
  input: z.strictObject({}),
  output: z.object({ alerts: z.array(alert).readonly(), deliveries: z.array(delivery).readonly() }),
  run: ({ scope }) => undelivered(scope),
});
