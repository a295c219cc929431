import { inspect } from "node:util";
import { Client, defineTask, Worker } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { Redis } from "ioredis";
import { beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { ownRedis } from "../../../test/helpers.js";

const redis = ownRedis({ password: "s3cret" });
let connection: string;
beforeAll(async () => {
  connection = redis.url.replace("s3cret", "hunter2");
});

/** An error as logs and the console print it, with all its properties. */
const printed = (error: unknown) => inspect(error, { depth: Number.POSITIVE_INFINITY });

it("a refused password is not in a client's errors", async () => {
  const client = new Client({ connection, connectTimeout: 500 });
  const error = await client.list().catch((reason: unknown) => reason);
  await client.close();
  expect(printed(error)).toContain("WRONGPASS");
  expect(printed(error)).not.toContain("hunter2");
});

it("a refused password is not in a worker's errors, whichever connection fails", async () => {
  const ring = defineTask("ring", { queue: "bells", payload: z.object({}), handler: async () => {} });
  const logger = { debug() {}, info() {}, warn() {}, error: (details: object) => void errors.push(details) };
  const worker = new Worker({ connection: redis.url, types: [ring], logger });
  const errors: unknown[] = [];
  worker.on("error", (error) => errors.push(error));
  await worker.start();
  // Changes the password on the server.
  const admin = new Redis(redis.url);
  await admin.config("SET", "requirepass", "hunter2");
  await admin.call("CLIENT", "KILL", "TYPE", "NORMAL", "SKIPME", "YES");
  admin.disconnect();
  // Each connection has tried more than once.
  await eventually(() => expect(errors.length).toBeGreaterThan(5));
  await worker.stop();
  expect(printed(errors)).toContain("WRONGPASS");
  expect(printed(errors)).not.toContain("s3cret");
});
