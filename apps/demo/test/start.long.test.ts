import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { eventually, freePort } from "@carillon/testing";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ownRedis } from "../../../test/helpers.js";

const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));
const CLI = fileURLToPath(new URL("../../cli/bin/carillon.js", import.meta.url));

// The last test counts its connections.
const redis = ownRedis({ appendonly: true });
let demo: ChildProcess;
let output = "";

beforeAll(async () => {
  demo = spawn(process.execPath, [MAIN], {
    env: {
      ...process.env,
      REDIS_URL: redis.url,
      CARILLON_NAMESPACE: "demo-test",
      CARILLON_CONSOLE_PORT: String(await freePort()),
      CARILLON_TOKEN: "a-token-for-this-test",
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  demo.stdout?.on("data", (chunk) => {
    output += chunk;
  });
});
afterAll(async () => {
  demo.kill("SIGKILL");
});

it("the demo shows claims and runs, and Ctrl-C ends all its processes", async () => {
  await eventually(() => expect(output).toMatch(/node-\d +claimed +system\/console-check/));
  await eventually(() => expect(output).toMatch(/worker-\d +succeeded +system\/console-check/));
  // The first runs may come before these.
  const [, address, ask] = await eventually(() => {
    const said = /Console: (\S+)[\s\S]+CLI: npx carillon (.+)\n/.exec(output);
    if (!said) throw new Error(`no address yet:\n${output}`);
    return said as unknown as [string, string, string];
  });
  const { origin } = new URL(address);
  expect((await fetch(`${origin}/health`)).status).toBe(200);
  expect(spawnSync(process.execPath, [CLI, ...ask.split(" ")], { encoding: "utf8" }).stdout).toMatch(
    /console-check/,
  );

  const ended = new Promise((resolve) => demo.once("exit", resolve));
  demo.kill("SIGINT");
  expect(await ended).toBe(0);
  // No server or node is left.
  await expect(fetch(`${origin}/health`)).rejects.toThrow();
  const admin = new Redis(redis.url);
  const clients = String(await admin.client("LIST"))
    .trim()
    .split("\n").length;
  admin.disconnect();
  expect(clients).toBe(1);
});
