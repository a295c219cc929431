import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "../../store/test/bench.js";
import { BatchSize } from "../src/claim/batch-size.js";
import { type Claims, claimsOn, idsOf } from "./claiming.js";

/** First and least size of a claim's batch. */
const [FIRST, FEWEST] = [40, 10];

describe("the size of a batch", () => {
  const redis = sharedRedis();
  let bench: Bench;
  /** Time for which a commit blocks Redis, in ms. */
  let took: number;
  let committed: number[];
  let node: Claims;
  beforeEach(async () => {
    bench = await Bench.open(redis.url);
    committed = [];
    const { claims } = bench.store;
    const { commit } = claims;
    claims.commit = async (...all) => {
      committed.push(all[1].length);
      return { ...(await commit.apply(claims, all)), took };
    };
    node = claimsOn(bench);
    await bench.putAll(
      QUEUE,
      idsOf(300).map((id) => ({ id })),
    );
    await bench.clock.set(START + 10_000);
  });
  afterEach(async () => {
    await bench.close();
  });

  /** Sizes of all commits but the last, until nothing is due. */
  async function sizes(ms: number): Promise<number[]> {
    took = ms;
    const { decided } = await node.claim(QUEUE);
    expect(decided).toHaveLength(300);
    expect(committed[0]).toBe(FIRST);
    return committed.slice(0, -1);
  }

  it("grows if commits block Redis for a short time", async () => {
    expect(Math.max(...(await sizes(2)))).toBeGreaterThan(FIRST);
  });

  it("shrinks if a commit blocks Redis for long", async () => {
    expect(Math.min(...(await sizes(30)))).toBe(FEWEST);
  });

  it("does not depend on how long the answers take, which other clients delay", async () => {
    await bench.close();
    bench = await Bench.open(redis.url);
    await bench.putAll(
      QUEUE,
      idsOf(300).map((id) => ({ id })),
    );
    await bench.clock.set(START + 10_000);
    let elapsed = 0;
    const { claims } = bench.store;
    const { commit } = claims;
    const seen: { took: number; tasks: number }[] = [];
    claims.commit = async (...all) => {
      const answer = await commit.apply(claims, all);
      elapsed += 1_000;
      seen.push({ took: answer.took, tasks: all[1].length });
      return answer;
    };
    expect((await claimsOn(bench, () => elapsed).claim(QUEUE)).decided).toHaveLength(300);
    expect(seen.every(({ took }) => took > 0 && took < 1_000)).toBe(true);
    expect(seen[0]?.tasks).toBe(FIRST);
  });
});

it("a batch that is not full does not raise the size", () => {
  const size = new BatchSize();
  for (let i = 0; i < 10; i++) size.learn(1, FIRST - 1);
  expect(size.current).toBe(FIRST);
});
