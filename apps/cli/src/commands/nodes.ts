import type { AnswerTo } from "@carillon/ops";
import { silenceText } from "@carillon/ops/words";
import type { Register } from "../command.js";
import { type Column, rows } from "../table.js";

export const registerNodes: Register = (program, out) => {
  program
    .verb(
      "nodes",
      "scheduler nodes: whether each is ready, and its last heartbeat",
      [
        "Lists the scheduler nodes of the namespace. STATE is ready; not-ready (see WHY); silent: the node missed a",
        "heartbeat, because it hangs, is cut off, or its Redis accepts no writes; or dead: it missed three. A dead node stays listed for an hour.",
      ].join(" "),
    )
    .calls("nodes.list", rows(out, "nodes", columns, "No nodes."));
};

type NodeView = AnswerTo<"nodes.list">["nodes"][number];

function columns(nodes: readonly NodeView[]): Column<NodeView>[] {
  return nodes.some((node) => silenceText(node) !== undefined) ? [...COLUMNS, WHY] : COLUMNS;
}

const WHY: Column<NodeView> = { title: "WHY", value: (node) => silenceText(node) ?? "", least: 20 };

const COLUMNS: Column<NodeView>[] = [
  { title: "NODE", value: "id" },
  {
    title: "STATE",
    value: "state",
    colour: (node) => (node.state === "ready" ? "green" : node.alive ? "yellow" : "red"),
  },
  { title: "HOST", value: "host", rank: 1 },
  { title: "PID", right: true, value: "pid", rank: 5 },
  { title: "VERSION", value: "version", rank: 4 },
  { title: "TZDATA", value: "tzdata", rank: 6 },
  { title: "CLOCK", right: true, value: (node) => `${Math.round(node.clockOffset)} ms`, rank: 2 },
  { title: "STARTED", value: (node, { when }) => when(node.started), rank: 3 },
  { title: "LAST BEAT", value: (node, { when }) => when(node.beat) },
];
