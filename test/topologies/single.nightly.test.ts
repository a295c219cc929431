import { operatorOf } from "@carillon/ops";
import { startRedis } from "@carillon/testing";
import { expect, test } from "vitest";
import { Site } from "./site.js";

test("one server, by REDIS_URL alone", async () => {
  const redis = await startRedis({ appendonly: true });
  const env = { REDIS_URL: `${redis.url}/3` };
  const site = await Site.open({ node: env, app: env });
  try {
    await site.story();
    expect((await operatorOf(site.client).nodes.list()).nodes).toHaveLength(1);
  } finally {
    await site.close();
    await redis.stop();
  }
});
