import type { NodeView } from "@carillon/sdk";
import { type Globals, type Register, withClient } from "../command.js";
import { type Column, table } from "../text.js";
import { when } from "../times.js";

export const registerNodes: Register = (program, out) => {
  program
    .command("nodes")
    .summary("scheduler nodes, and when each was last heard of")
    .description(
      "Lists the scheduler nodes of the namespace. A node that died stays listed for an hour, as not alive.",
    )
    .action(async (_: unknown, command) => {
      const options: Globals = command.optsWithGlobals();
      const nodes = await withClient(options, (client) => client.nodes());
      if (options.json) return out.json(nodes);
      await out.write(nodes.length ? table(COLUMNS, nodes, out.paint) : "No nodes.\n");
    });
};

const COLUMNS: Column<NodeView>[] = [
  { title: "NODE", value: (node) => node.id },
  {
    title: "ALIVE",
    value: (node) => (node.alive ? "yes" : "no"),
    colour: (node) => (node.alive ? "green" : "red"),
  },
  { title: "HOST", value: (node) => node.host },
  { title: "PID", right: true, value: (node) => String(node.pid) },
  { title: "VERSION", value: (node) => node.version },
  { title: "TZDATA", value: (node) => node.tzdata },
  { title: "CLOCK", right: true, value: (node) => `${Math.round(node.clockOffset)} ms` },
  { title: "STARTED", value: (node) => when(node.started) },
  { title: "LAST BEAT", value: (node) => when(node.beat) },
];
