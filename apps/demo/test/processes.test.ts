import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { eventually, type RedisServer, startRedis } from "@carillon/testing";
import { afterAll, beforeAll, expect, it } from "vitest";

const PROCESSES = new URL("../dist/processes.js", import.meta.url).href;

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis({ appendonly: true });
});
afterAll(() => redis.stop());

it("a child ends by itself where the demo was killed", async () => {
  const script = `
    const { Managed } = await import(${JSON.stringify(PROCESSES)});
    const env = { REDIS_URL: ${JSON.stringify(redis.url)}, CARILLON_CONSOLE_PORT: "0" };
    const one = new Managed("console", "console", "../../console/dist/main.js", env, ({ msg }) => {
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
    await eventually(() => !isAlive(pid), { timeoutMs: 15_000 });
  } finally {
    if (isAlive(pid)) process.kill(pid, "SIGKILL");
  }
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
