import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client } from "@carillon/sdk";
import { expect, it } from "vitest";
import { ownRedis } from "../../../test/helpers.js";

const redis = ownRedis({ password: "s3cret" });

/** Runs a module in a process of its own, where this package is built. */
async function run(code: string): Promise<string> {
  const cwd = fileURLToPath(new URL("..", import.meta.url));
  const args = ["--input-type=module", "--eval", `const connection = ${JSON.stringify(redis.url)};\n${code}`];
  return (await promisify(execFile)(process.execPath, args, { cwd, timeout: 60_000 })).stdout;
}

it("a client, a worker and a node that are made and not used let the process end", async () => {
  const stdout = await run(`
    import { Client, defineTask, Worker } from "@carillon/sdk";
    import { z } from "zod";
    new Client({ connection });
    new Client({ connection: connection + "," + connection });
    new Worker({ connection, types: [defineTask("a", { queue: "q", payload: z.object({}), handler() {} })] });
    console.log("made");
  `);
  expect(stdout).toBe("made\n");
});

it("a client closes itself at the end of its block", async () => {
  const stdout = await run(`
    import { Client } from "@carillon/sdk";
    const client = new Client({ connection });
    console.log((await client.list()).tasks.length);
    await client[Symbol.asyncDispose]();
  `);
  expect(stdout).toBe("0\n");
});

it("a wrong password is reported at once, not after the connect timeout", async () => {
  const client = new Client({ connection: redis.url.replace("s3cret", "wrong"), connectTimeout: 600_000 });
  await expect(client.list()).rejects.toMatchObject({ code: "REDIS_AUTH" });
  await expect(client.list()).rejects.toMatchObject({ code: "REDIS_AUTH" });
  await client.close();
});

it("a closed client reports that it is closed", async () => {
  const client = new Client({ connection: redis.url });
  await client.list();
  await client.close();
  await expect(client.list()).rejects.toMatchObject({
    code: "REDIS_UNAVAILABLE",
    message: "this client was closed. Use it before close(), or make a new one.",
  });
});

it("an import loads neither BullMQ nor what only nodes and comparisons need", async () => {
  const stdout = await run(`
    import { createRequire } from "node:module";
    await import("@carillon/sdk");
    const loaded = Object.keys(createRequire(import.meta.url).cache);
    const names = loaded.map((file) => file.split("/node_modules/").at(-1).split("/", 1)[0]);
    console.log(JSON.stringify([...new Set(names)]));
  `);
  const names = JSON.parse(stdout) as string[];
  expect(names).toContain("ioredis");
  for (const name of ["bullmq", "redlock", "bluebird", "cron-parser", "luxon", "msgpackr"])
    expect(names).not.toContain(name);
});
