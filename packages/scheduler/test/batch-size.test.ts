import { Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { type RedisServer, startRedis } from "@carillon/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Bench, QUEUE, START } from "../../store/test/bench.js";
import { BatchSize } from "../src/claim/batch-size.js";
import { type Claims, claimsOn, idsOf } from "./claiming.js";

/** First, least and largest size of a claim's batch. */
const [FIRST, FEWEST, MOST] = [40, 10, 60];

describe("the size of a batch", () => {
  let redis: RedisServer;
  let bench: Bench;
  /** The node's monotonic clock. */
  let elapsed: number;
  /** Duration of reads and commits, in ms. */
  let takes: { read: number; commit: number };
  let limits: number[];
  let node: Claims;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(async () => {
    await redis.stop();
  });
  beforeEach(async () => {
    bench = await Bench.open(redis.url);
    elapsed = 0;
    limits = [];
    const { claims } = bench.store;
    const { readDue, send } = claims;
    claims.readDue = (queue, shard, limit, ...rest) => {
      limits.push(limit);
      return readDue.call(claims, queue, shard, limit, ...rest).finally(() => {
        elapsed += takes.read;
      });
    };
    claims.send = (commit) =>
      send.call(claims, commit).finally(() => {
        elapsed += takes.commit;
      });
    node = claimsOn(bench, () => elapsed);
    for (const id of idsOf(300)) await bench.put({ id });
    await bench.clock.set(START + 10_000);
  });
  afterEach(async () => {
    await bench.close();
  });

  /** Batch sizes of all reads, until nothing is due. */
  async function sizes(read: number, commit: number): Promise<number[]> {
    takes = { read, commit };
    const { decided } = await node.claim(QUEUE);
    expect(decided).toHaveLength(300);
    expect(limits[0]).toBe(FIRST);
    return limits;
  }

  it("grows if Redis is fast", async () => {
    expect(Math.max(...(await sizes(1, 2)))).toBe(MOST);
  });

  it("shrinks if a commit blocks Redis for long", async () => {
    expect(Math.min(...(await sizes(1, 30)))).toBe(FEWEST);
  });

  it("does not shrink because of other clients: reads wait for them as well", async () => {
    const seen = await sizes(40, 42);
    expect(Math.min(...seen)).toBe(FIRST);
    expect(Math.max(...seen)).toBe(MOST);
  });

  it("does not shrink because of earlier commands of this node", async () => {
    // The reconciler settles many runs at once on the same connection.
    Object.defineProperty(internalsOf(bench.store).link, "underWay", { get: () => 20 });
    expect(Math.min(...(await sizes(1, 40)))).toBe(FIRST);
  });
});

it("a batch that is not full does not raise the size", () => {
  const size = new BatchSize();
  for (let i = 0; i < 10; i++) size.learn(1, FIRST - 1);
  expect(size.current).toBe(FIRST);
});

it("scripts that are sent and not yet answered are counted", async () => {
  const redis = await startRedis();
  const store = new Store({ connection: redis.url });
  await store.registry.queues();
  const reads = [store.claims.readDue(QUEUE, 0, 1), store.claims.readDue(QUEUE, 1, 1)];
  expect(internalsOf(store).link.underWay).toBe(2);
  await Promise.all(reads);
  expect(internalsOf(store).link.underWay).toBe(0);
  const refused = store.claims.readDue(QUEUE, 0, Number.NaN);
  expect(internalsOf(store).link.underWay).toBe(1);
  await expect(refused).rejects.toThrow();
  expect(internalsOf(store).link.underWay).toBe(0);
  await store.close();
  await redis.stop();
});
