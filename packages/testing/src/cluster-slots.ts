// @ts-expect-error: it comes without types.
import calculateSlot from "cluster-key-slot";
import { type RedisServer, withConnection } from "./redis.js";

export interface SlotMove {
  /**
   * Called after each step: both masters know of the move (`"migrating"`), some keys were moved (`"keys"`), the slot
   * belongs to the other master (`"moved"`). The move waits for it.
   */
  onStep?: (step: "migrating" | "keys" | "moved") => void | Promise<void>;
}

/** Keys that one command moves. */
const KEYS_AT_ONCE = 20;
const MIGRATE_MS = 5_000;
/** Longest wait for a node, in ms: one that is frozen is ignored. */
const GLANCE_MS = 1_000;

export function slotOf(key: string): number {
  return calculateSlot(key);
}

/** The owner of a slot, according to the master with the newest epoch. @throws while no master that is up claims the slot */
export async function slotOwner(servers: readonly RedisServer[], slot: number): Promise<RedisServer> {
  const seen = await Promise.allSettled(alive(servers).map(members));
  const owners = seen
    .flatMap((result) => (result.status === "fulfilled" ? result.value : []))
    .filter(({ master, slots }) => master && slots.some(([first, last]) => first <= slot && slot <= last))
    .sort((a, b) => b.epoch - a.epoch);
  const owner = alive(servers).find(({ port }) => port === owners[0]?.port);
  if (!owner) throw new Error(`No master that is up serves slot ${slot}.`);
  return owner;
}

export async function migrateSlot(
  servers: readonly RedisServer[],
  slot: number,
  to: RedisServer,
  { onStep = () => {} }: SlotMove = {},
): Promise<void> {
  const from = await slotOwner(servers, slot);
  if (from === to) return;
  const [source, target] = await Promise.all([idOf(from), idOf(to)]);
  const setSlot = (server: RedisServer, ...how: string[]) =>
    withConnection(server, (redis) => redis.call("CLUSTER", "SETSLOT", slot, ...how));

  await setSlot(to, "IMPORTING", source);
  await setSlot(from, "MIGRATING", target);
  await onStep("migrating");
  await withConnection(from, async (redis) => {
    for (;;) {
      const keys = (await redis.call("CLUSTER", "GETKEYSINSLOT", slot, KEYS_AT_ONCE)) as string[];
      if (keys.length === 0) break;
      await redis.call("MIGRATE", to.host, to.port, "", 0, MIGRATE_MS, "KEYS", ...keys);
      await onStep("keys");
    }
  });
  // The new owner first, so that the slot has an owner even if the rest fails.
  await setSlot(to, "NODE", target);
  await setSlot(from, "NODE", target);
  const others = alive(servers).filter((server) => server !== to && server !== from);
  await Promise.all(
    others.map(async (server) => (await isMaster(server)) && setSlot(server, "NODE", target)),
  );
  await onStep("moved");
}

function alive(servers: readonly RedisServer[]): RedisServer[] {
  return servers.filter(({ pid }) => pid !== undefined);
}

async function idOf(server: RedisServer): Promise<string> {
  return String(await withConnection(server, (redis) => redis.call("CLUSTER", "MYID")));
}

async function isMaster(server: RedisServer): Promise<boolean> {
  return (await withConnection(server, (redis) => redis.info("replication"))).includes("role:master");
}

interface Member {
  readonly port: number;
  readonly epoch: number;
  readonly master: boolean;
  readonly slots: readonly (readonly [first: number, last: number])[];
}

/** Lines of `CLUSTER NODES`: id, address, flags, master, ping, pong, epoch, link, slots. */
async function members(server: RedisServer): Promise<Member[]> {
  const text = String(await withConnection(server, (redis) => redis.call("CLUSTER", "NODES"), GLANCE_MS));
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [, address = "", flags = "", , , , epoch, , ...slots] = line.split(" ");
      return {
        port: Number(/:(\d+)@/.exec(address)?.[1]),
        epoch: Number(epoch),
        master: flags.includes("master") && !/fail|noaddr/.test(flags),
        // `[slot->-node]` is a slot that is being moved; its owner lists it as well.
        slots: slots.filter((range) => !range.startsWith("[")).map(bounds),
      };
    });
}

function bounds(range: string): readonly [number, number] {
  const [first, last = first] = range.split("-").map(Number) as [number, number?];
  return [first, last];
}
