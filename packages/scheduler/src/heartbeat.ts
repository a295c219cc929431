import { hostname } from "node:os";
import { bullVersion, Heartbeat, type NodeInfo, type Store, VERSION } from "@carillon/store";
import { AlertWatch } from "./alerts/alert-watch.js";
import type { ServerClock } from "./loop/server-clock.js";
import type { Settings } from "./options.js";

/**
 * Announces regularly that this node is alive, and checks for undelivered alerts.
 * @param held why this node claims nothing although it can write; undefined if it claims
 */
export function nodeHeartbeat(
  store: Store,
  clock: ServerClock,
  settings: Settings,
  held: () => string | undefined,
): Heartbeat {
  const { registry } = store;
  const { nodeId: id, heartbeatEvery: every } = settings;
  const alerts = new AlertWatch(store, settings);
  let started: number | undefined;

  const info = (now: number): NodeInfo => {
    const why = held();
    started ??= now;
    return {
      id,
      host: hostname(),
      pid: process.pid,
      version: VERSION,
      bullmq: bullVersion(),
      started,
      beat: now,
      every,
      tzdata: process.versions.tz ?? "unknown",
      clockOffset: clock.wallOffset,
      onAlert: settings.onAlert !== undefined,
      ready: why === undefined,
      ...(why === undefined ? {} : { why }),
    };
  };

  return new Heartbeat(store, settings.logger, {
    id,
    every,
    list: () => registry.nodes(),
    remove: (node) => registry.removeNode(node),
    beat: async () => {
      const now = Math.round(clock.now());
      await registry.beat(info(now));
      // If Redis fails, the next beat reports it.
      await alerts.check(now).catch(() => {});
      return now;
    },
  });
}
