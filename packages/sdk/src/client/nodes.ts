import { type NodeView, nodeView } from "@carillon/store";
import type { Scope } from "./scope.js";

/** The scheduler nodes of a namespace, at `client.nodes`. */
export class Nodes {
  readonly #scope: Scope;

  /** @internal */
  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /** The nodes, and whether each does its work. A node that died stays listed for an hour. */
  async list(): Promise<NodeView[]> {
    const { store } = this.#scope;
    const [nodes, now] = await Promise.all([store.registry.nodes(), store.serverTime()]);
    return nodes.map((node) => nodeView(node, now));
  }
}
