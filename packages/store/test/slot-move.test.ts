import { type RedisCluster, type RedisServer, startCluster } from "@carillon/testing";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Bench } from "./bench.js";
import { QUEUES, SCENARIOS, type Scenario, type Sent, sending } from "./writing.js";

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster({ masters: 3 });
});
afterAll(() => cluster.stop());

/** Answers of both masters to a script that is sent while the slot of its keys moves. */
interface Answers {
  readonly source: string;
  readonly target: string;
}

/** Sends a script while the slot of its keys moves, and takes the move back. @param half moves half of the keys first */
async function duringMove({ script, keys, args }: Sent, half: boolean): Promise<Answers> {
  const slot = cluster.slotOf(keys[0] as string);
  const from = await cluster.masterOf(slot);
  const to = cluster.nodes.find((node) => node !== from) as RedisServer;
  const [source, target] = [new Redis(from.url), new Redis(to.url)];
  const setSlot = (redis: Redis, ...how: string[]) => redis.call("CLUSTER", "SETSLOT", slot, ...how);
  const migrate = (redis: Redis, { host, port }: RedisServer, moved: string[]) =>
    moved.length > 0 && redis.call("MIGRATE", host, port, "", 0, 5_000, "KEYS", ...moved);
  const call = (redis: Redis) =>
    script.resident
      ? redis.fcall(script.resident.name, keys.length, ...keys, ...args)
      : redis.eval(script.lua, keys.length, ...keys, ...args);
  const run = (redis: Redis) => call(redis).then(String, (error: Error) => error.message);
  try {
    const [sourceId, targetId] = await Promise.all(
      [source, target].map((one) => one.call("CLUSTER", "MYID")),
    );
    await setSlot(target, "IMPORTING", String(sourceId));
    await setSlot(source, "MIGRATING", String(targetId));
    const all = (await source.call("CLUSTER", "GETKEYSINSLOT", slot, 1_000)) as string[];
    const moved = half ? all.filter((_, i) => i % 2 === 0) : [];
    await migrate(source, to, moved);
    const atSource = await run(source);
    const asked = target.asking();
    const atTarget = run(target);
    await asked;
    const answers = { source: atSource, target: await atTarget };
    await setSlot(source, "STABLE");
    await migrate(target, from, moved);
    await setSlot(target, "STABLE");
    return answers;
  } finally {
    source.disconnect();
    target.disconnect();
  }
}

const REFUSED = /^(ASK|TRYAGAIN|MOVED) /;

it.each(SCENARIOS.map((one) => [one.script, one.title, one] as const))(
  "a script is refused as a whole while its slot moves: %s (%s)",
  async (_, __, { script, before, act }) => {
    const bench = await Bench.open(cluster.url, { queues: QUEUES });
    let sent = 0;
    const tryIt = async (one: Sent) => {
      sent += 1;
      for (const half of [false, true]) {
        const was = await bench.dump();
        const { source, target } = await duringMove(one, half);
        expect(await bench.dump()).toEqual(was);
        expect(source).toMatch(REFUSED);
        expect(target).toMatch(REFUSED);
      }
    };
    try {
      await before?.(bench);
      await sending(bench, script, tryIt, () => act(bench));
      expect(sent).toBeGreaterThan(0);
    } finally {
      await bench.close();
    }
  },
);

it("without the key that never exists, a pause is half done", async () => {
  const bench = await Bench.open(cluster.url);
  const { script, act } = SCENARIOS.find((one) => one.script === "pause") as Scenario;
  await bench.put({ id: "t", alertIf: { noSuccessFor: "1h" } });
  // Then each key exists that the script declares besides.
  await bench.trigger("t", "one");
  let tried = false;
  await sending(
    bench,
    script,
    async (one) => {
      if (tried) return;
      tried = true;
      const was = await bench.dump();
      const { source } = await duringMove({ ...one, keys: one.keys.slice(0, -1) }, false);
      expect(source).not.toMatch(REFUSED);
      expect(await bench.dump()).not.toEqual(was);
    },
    () => act(bench),
  );
  await bench.close();
});
