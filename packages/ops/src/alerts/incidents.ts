import { z } from "zod";
import { operation } from "../operation.js";
import { alert } from "./alert.js";

export const alertIncidents = operation({
  http: "GET /alerts/incidents",
  role: "viewer",
  reach: "namespace",
  summary:
    "Lists the alerts about the namespace whose incidents have not ended. Those of a task are in its statistics.",
  input: z.strictObject({}),
  output: z.object({ alerts: z.array(alert) }),
  run: async ({ store }) => ({ alerts: await store.alerts.incidents() }),
});
