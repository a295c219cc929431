import { isAlive, isSilent, type NodeInfo } from "../beats.js";

/** `silent`: it missed a heartbeat. `dead`: it missed three. */
export type NodeState = "ready" | "not-ready" | "silent" | "dead";

/** A node of the registry; `alive` while its last heartbeat is within three of its intervals from now. */
export interface NodeView extends NodeInfo {
  readonly alive: boolean;
  readonly state: NodeState;
  /** Time since its last heartbeat, if it missed one, in ms; negative: the clock of Redis went back. */
  readonly silentMs?: number;
}

/** A node that has missed a heartbeat counts as not ready: its reported state is out of date. */
export function nodeView(node: NodeInfo, now: number): NodeView {
  const alive = isAlive(node, now);
  if (alive && !isSilent(node, now)) return { ...node, alive, state: node.ready ? "ready" : "not-ready" };
  return { ...node, alive, state: alive ? "silent" : "dead", ready: false, silentMs: now - node.beat };
}
