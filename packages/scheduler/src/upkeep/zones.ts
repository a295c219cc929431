import { isAlive, type NodeInfo, type Store } from "@carillon/store";
import type { Settings } from "../options.js";
import { eachQueue, REPAIR_TTL } from "./each-queue.js";

/** Marks a queue that was replanned while nodes with older data were alive: it must be replanned once more. */
const MIXED = " mixed";

/** Replans queues that were planned with older time zone data than that of this node. */
export class Zones {
  #reportedMixed = "";

  /** @param tzdata version of the time zone data, `2026a` */
  constructor(
    private readonly store: Store,
    private readonly settings: Settings,
    private readonly tzdata: string | undefined,
  ) {}

  /** @returns what failed */
  async check(queues: readonly string[]): Promise<unknown[]> {
    const own = this.tzdata;
    if (own === undefined) return [];
    const [nodes, planned, now] = await Promise.all([
      this.store.registry.nodes(),
      this.store.registry.zones(),
      this.store.serverTime(),
    ]);
    const others = nodes.filter(({ id }) => id !== this.settings.nodeId).filter((node) => isAlive(node, now));
    this.#warn(others, own);
    const mixed = others.some(({ tzdata }) => tzdata < own);
    return eachQueue(this.store, queues, async (queue) => {
      const data = planned.get(queue);
      if (data === undefined) await this.store.registry.setZone(queue, own);
      // Times that older nodes compute from now on must be replanned when these nodes have stopped.
      else if (data === own && mixed) await this.store.registry.setZone(queue, own + MIXED);
      else if (data < own || (data === own + MIXED && !mixed)) {
        await this.#replan(queue, mixed ? own + MIXED : own);
      }
    });
  }

  async #replan(queue: string, version: string): Promise<void> {
    const lease = await this.store.lease(queue, "zone", REPAIR_TTL);
    // Another node does it.
    if (!lease) return;
    try {
      const { replanned, left } = await this.store.tasks.replanAll(queue);
      await this.store.registry.setZone(queue, version);
      if (left > 0) this.settings.logger.error({ queue, left }, "could not replan tasks: put them again");
      this.settings.logger.info({ queue, replanned, tzdata: version }, "replanned with newer time zone data");
    } finally {
      await lease.release();
    }
  }

  #warn(others: readonly NodeInfo[], own: string): void {
    const versions = [...new Set([own, ...others.map(({ tzdata }) => tzdata)])].sort();
    const mixed = versions.join(" ");
    if (versions.length > 1 && mixed !== this.#reportedMixed) {
      this.settings.logger.warn(
        { tzdata: versions, own },
        "nodes have different time zone data: run the same Node.js version everywhere",
      );
    }
    this.#reportedMixed = mixed;
  }
}
