import { hostname } from "node:os";
import {
  bullVersion,
  Heartbeat,
  type LostHistory,
  type NodeInfo,
  newToken,
  type Store,
  VERSION,
} from "@carillon/store";
import type { ServerClock } from "./loop/server-clock.js";
import type { Settings } from "./options.js";
import type { RoundTrips } from "./round-trips.js";
import { SafetyCheck } from "./safety-check.js";

/** For how long a node reports that Redis lost writes, in ms. */
const REMEMBERED = 3_600_000;

/**
 * Announces regularly that this node is alive, and checks for lost writes: heartbeats are counted in Redis, and a count that
 * does not grow is of an older history.
 * @param held why this node claims nothing although it can write; undefined if it claims
 * @param beaten called after each beat, with the time of Redis
 */
export function nodeHeartbeat(
  store: Store,
  clock: ServerClock,
  settings: Settings,
  roundTrips: RoundTrips,
  held: () => string | undefined,
  beaten: (now: number) => Promise<void> = async () => {},
  safety = new SafetyCheck(store, settings.logger),
): Heartbeat {
  const { registry } = store;
  const { logger } = settings;
  const { nodeId: id, heartbeatEvery: every } = settings;
  const instance = newToken();
  let started: number | undefined;
  let counted = 0;
  let lost: (LostHistory & { readonly noticed: number }) | undefined;

  /** Compares the count with the last one. */
  const checkHistory = async () => {
    const at = Math.round(clock.now());
    const { beats, before: to } = await registry.countBeat(at);
    if (beats <= counted) {
      lost = { at, ...(to !== undefined && { to }), noticed: performance.now() };
      const what = to === undefined ? "Redis came back empty" : "Redis went back to an older state";
      logger.error(
        { namespace: store.namespace, ...(to !== undefined && { to: new Date(to).toISOString() }) },
        what,
      );
    }
    counted = beats;
  };

  const info = async (now: number): Promise<NodeInfo> => {
    const why = held();
    const unsafe = await safety.changed(now);
    started ??= now;
    return {
      id,
      instance,
      host: hostname(),
      pid: process.pid,
      version: VERSION,
      bullmq: await bullVersion(),
      started,
      beat: now,
      every,
      tzdata: process.versions.tz ?? "unknown",
      clockOffset: clock.wallOffset,
      onAlert: settings.onAlert !== undefined,
      ready: why === undefined,
      ...(why === undefined ? {} : { why }),
      ...(roundTrips.usual !== undefined && { roundTrip: Math.round(roundTrips.usual) }),
      ...(unsafe.length > 0 && { unsafe }),
      ...(lost &&
        performance.now() - lost.noticed < REMEMBERED && {
          lost: { at: lost.at, ...(lost.to !== undefined && { to: lost.to }) },
        }),
    };
  };

  return new Heartbeat(store, settings.logger, {
    id,
    instance,
    every,
    list: () => registry.listedNodes(),
    remove: (node, which) => registry.removeNode(node, which),
    beat: async () => {
      // Not this node's estimate, which keeps the old time while it doubts a jump of the server's clock.
      const [now] = await Promise.all([roundTrips.measure(() => store.serverTime()), checkHistory()]);
      await registry.beat(await info(now));
      // If Redis fails, the next beat reports it.
      await beaten(now).catch(() => {});
      return now;
    },
  });
}
