import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, openSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Client } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";

const PROCESSES = new URL("../dist/processes.js", import.meta.url).href;

const WORKER = fileURLToPath(new URL("../dist/worker.js", import.meta.url));

const redis = sharedRedis();

it("a child ends by itself if the demo was killed", async () => {
  const script = `
    const { Managed } = await import(${JSON.stringify(PROCESSES)});
    const env = { REDIS_URL: ${JSON.stringify(redis.url)}, CARILLON_CONSOLE_PORT: "0" };
    const one = new Managed("console", "console", "../../console/bin/carillon-console.js", env, ({ msg }) => {
      if (msg === "listening") console.log(one.child.pid);
    });
    one.start();`;
  const demo = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said] = await once(createInterface({ input: demo.stdout }), "line");
  const pid = Number(said);
  expect(isAlive(pid)).toBe(true);
  try {
    demo.kill("SIGKILL");
    await eventually(() => !isAlive(pid));
  } finally {
    if (isAlive(pid)) process.kill(pid, "SIGKILL");
  }
});

it.runIf(existsSync("/dev/full"))("a worker continues if its log cannot be written", async () => {
  const client = new Client({ connection: redis.url });
  await client.put({ id: "a", type: "redis-check", queue: "ops", payload: {}, schedule: { every: "1d" } });
  await client.trigger("a");
  const worker = spawn(process.execPath, [WORKER], {
    env: { PATH: process.env["PATH"], REDIS_URL: redis.url },
    stdio: ["ignore", openSync("/dev/full", "w"), "ignore"],
  });
  const ended = once(worker, "exit");
  try {
    const outcomes = async () => (await client.runs.list("a")).map(({ outcome }) => outcome);
    await eventually(async () => expect(await outcomes()).toEqual(["succeeded"]));
    worker.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  } finally {
    worker.kill("SIGKILL");
    await client.close();
  }
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
