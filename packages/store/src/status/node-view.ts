import { isAlive, isSilent, type NodeInfo } from "../beats.js";

/** `silent`: it missed a heartbeat. `dead`: it missed three. */
export type NodeState = "ready" | "not-ready" | "silent" | "dead";

/** A node of the registry; `alive` while its last heartbeat is within three of its intervals from now. */
export interface NodeView extends NodeInfo {
  readonly alive: boolean;
  readonly state: NodeState;
}

/** A node that has missed a heartbeat counts as not ready: its reported state is out of date. */
export function nodeView(node: NodeInfo, now: number): NodeView {
  const alive = isAlive(node, now);
  if (alive && !isSilent(node, now)) return { ...node, alive, state: node.ready ? "ready" : "not-ready" };
  const seconds = Math.round((now - node.beat) / 1000);
  const why = seconds < 0 ? "no beat since the clock of Redis went back" : `no beat for ${seconds} s`;
  return { ...node, alive, state: alive ? "silent" : "dead", ready: false, why };
}
