import { operatorOf } from "@carillon/ops";
import { Scheduler } from "@carillon/scheduler";
import { Client, defineTask, Worker } from "@carillon/sdk";
import { startRedis } from "@carillon/testing";
import { expect, it } from "vitest";
import { z } from "zod";
import { SILENT } from "../helpers.js";

/** Commands that a provider may forbid; here an ACL does. */
const FORBIDDEN = ["CONFIG", "CLIENT", "SCRIPT", "WAIT", "SLOWLOG", "ACL", "MONITOR", "DEBUG", "FUNCTION"];

it("a Redis without the commands that providers forbid runs tasks, and doctor names what it could not read", async () => {
  const redis = await startRedis({
    appendonly: true,
    acl: `user default on nopass ~* &* +@all ${FORBIDDEN.map((name) => `-${name.toLowerCase()}`).join(" ")}`,
  });
  const connection = redis.url;
  let run = () => {};
  const ran = new Promise<void>((resolve) => {
    run = resolve;
  });
  const ring = defineTask("ring", {
    queue: "bells",
    payload: z.object({}),
    handler: async () => run(),
  });
  const node = new Scheduler({ connection, logger: SILENT });
  const worker = new Worker({ connection, types: [ring], logger: SILENT });
  const client = new Client({ connection });
  try {
    await Promise.all([node.start(), worker.start()]);
    await client.put({ id: "bell", type: "ring", queue: "bells", schedule: { every: "1s" }, payload: {} });
    await ran;
    const { state, skipped } = await operatorOf(client).health.doctor();
    expect(state).toBe("healthy");
    expect(skipped).toEqual([expect.stringMatching(/^slow commands: .*slowlog/)]);
  } finally {
    await worker.stop();
    await node.stop();
    await client.close();
    await redis.stop();
  }
});
