import { type NodeView, nodeView } from "@carillon/store";
import { z } from "zod";
import { operation } from "../operation.js";
import { process } from "../shapes.js";

const node = z.object({
  ...process,
  version: z.string(),
  bullmq: z.string().describe("Its version of BullMQ."),
  tzdata: z.string().describe("The version of the time zone data that it computes with."),
  clockOffset: z.number().describe("Lead of its clock over Redis, in ms."),
  ready: z.boolean().describe("Whether it claims; if not, `why`."),
  why: z.string().optional(),
  silentMs: z
    .number()
    .optional()
    .describe(
      "Time since its last heartbeat, if it missed one, in ms; negative: the clock of Redis went back.",
    ),
  state: z.enum(["ready", "not-ready", "silent", "dead"]),
  onAlert: z.boolean().optional().describe("Whether it has an `onAlert`."),
  roundTrip: z.number().optional().describe("The usual round trip of a command to Redis, in ms."),
});

export const listNodes = operation({
  http: "GET /nodes",
  role: "viewer",
  reach: "local",
  summary:
    "Lists the scheduler nodes, and whether each does its work. A node that died stays listed for an hour.",
  input: z.strictObject({}),
  output: z.object({ nodes: z.array(node) }),
  async run({ store }) {
    const [nodes, now] = await Promise.all([store.registry.nodes(), store.serverTime()]);
    return { nodes: nodes.map((node): NodeView => nodeView(node, now)) };
  },
});
