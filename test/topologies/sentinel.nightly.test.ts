import { startSentinel } from "@carillon/testing";
import { test } from "vitest";
import { Site } from "./site.js";

test("Sentinels, by REDIS_URL alone; they fail over while a task rings", async () => {
  const group = await startSentinel({ appendonly: true, password: "b:e/l@l", sentinelPassword: "to+w&er" });
  const env = { REDIS_URL: group.url };
  const site = await Site.open({ node: env, app: env });
  try {
    await site.story(() => group.failover());
  } finally {
    await site.close();
    await group.stop();
  }
});
