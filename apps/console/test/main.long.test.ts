import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, openSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Client } from "@carillon/sdk";
import { eventually, freePort, startRedis } from "@carillon/testing";
import { afterEach, expect, test } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { Program } from "../../../test/program.js";

/** The built program: `npm test` builds first. */
const MAIN = fileURLToPath(new URL("../bin/carillon-console.js", import.meta.url));

const redis = sharedRedis();
const running: Program[] = [];
afterEach(async () => {
  for (const program of running.splice(0)) await program.kill();
});

function start(env: Record<string, string>): Program {
  const program = new Program("apps/console/bin/carillon-console.js", [], {
    CARILLON_CONSOLE_PORT: "0",
    ...env,
  });
  running.push(program);
  return program;
}

/** Waits for a line of the log. */
const line = (program: Program, msg: string) => program.says({ msg });

test("without a token it makes one and logs the address that signs in; SIGINT stops it", async () => {
  const program = start({ REDIS_URL: redis.url });
  const { port, url } = await line(program, "listening");
  expect(url).toBe(`http://127.0.0.1:${port}`);
  const signIn = (await line(program, "sign in"))["url"] as string;
  expect(signIn).toMatch(new RegExp(`^${url}/\\?token=[\\w-]{43}$`));
  expect((await fetch(`${url}/health`)).status).toBe(200);
  expect((await fetch(`${url}/queues/`)).status).toBe(401);
  expect((await fetch(signIn, { redirect: "manual" })).status).toBe(303);
  program.signal("SIGINT");
  expect(await program.ended).toMatchObject({ code: 0 });
});

test("with Redis down it starts, reports that, and connects later", async () => {
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  const program = start({ REDIS_URL: url, CARILLON_TOKEN: "a-token-for-this-test" });
  const console_ = (await line(program, "listening"))["url"] as string;
  await line(program, "the board could not be updated");
  const headers = { authorization: "Bearer a-token-for-this-test" };
  const answer = await fetch(`${console_}/queues/api/queues`, { headers });
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({ error: { code: "REDIS_UNAVAILABLE" } });

  const late = await startRedis({ port });
  try {
    const client = new Client({ connection: url });
    await client.put({ id: "a", type: "t", queue: "q", schedule: { every: "1h" } });
    await client.close();
    await eventually(async () => {
      const found = await fetch(`${console_}/queues/api/job-schedulers`, { headers });
      expect(await found.json()).toMatchObject({ schedulers: [{ id: "system/a" }] });
    });
  } finally {
    await late.stop();
  }
});

test("SIGTERM stops it cleanly", async () => {
  const program = start({ REDIS_URL: redis.url, CARILLON_TOKEN: "a-token-for-this-test" });
  const { url } = await line(program, "listening");
  await fetch(`${url}/health`); // leaves a kept-alive connection behind
  program.signal("SIGTERM");
  expect(await program.ended).toMatchObject({ code: 0 });
  await line(program, "stopped");
});

test("SIGTERM stops it even if nobody reads its log", async () => {
  const program = start({ REDIS_URL: redis.url, CARILLON_TOKEN: "a-token-for-this-test" });
  await line(program, "the board is ready");
  program.child.stdout?.destroy();
  program.signal("SIGTERM");
  expect(await program.ended).toMatchObject({ code: 0 });
});

test.runIf(existsSync("/dev/full"))("a log that cannot be written neither stops nor blocks it", async () => {
  const port = await freePort();
  const child = spawn(process.execPath, [MAIN], {
    env: { PATH: process.env["PATH"], CARILLON_CONSOLE_PORT: String(port), REDIS_URL: redis.url },
    stdio: ["ignore", openSync("/dev/full", "w"), "ignore"],
  });
  const exit = once(child, "exit");
  try {
    const ready = async () => (await fetch(`http://127.0.0.1:${port}/ready`)).ok;
    await eventually(() => ready().catch(() => false));
    child.kill("SIGTERM");
    expect(await exit).toEqual([0, null]);
  } finally {
    child.kill("SIGKILL");
  }
});

test("a wrong variable ends it with 2 and one line that names variable and remedy", async () => {
  const program = start({ REDIS_URL: redis.url, CARILLON_CONSOLE_PORT: "99999" });
  const { code, stderr } = await program.ended;
  expect(code).toBe(2);
  expect(stderr).toBe(
    "carillon-console: CARILLON_CONSOLE_PORT: not a port. Use a number from 0 to 65535; 0 takes any free port.\n",
  );
});

test("a wrong Redis URL ends it with 2, without quoting it", async () => {
  const program = start({ REDIS_URL: "http://user:hunter2@localhost" });
  const { code, stderr } = await program.ended;
  expect(code).toBe(2);
  expect(stderr).toMatch(/^carillon-console: REDIS_URL: not a Redis URL\. Use redis:/);
  expect(stderr).not.toContain("hunter2");
});

test("a taken port ends it with 2 and one line that says what to do", async () => {
  const program = start({ REDIS_URL: redis.url, CARILLON_CONSOLE_PORT: String(redis.port) });
  const { code, stderr } = await program.ended;
  expect(code).toBe(2);
  expect(stderr).toMatch(
    /^carillon-console: CARILLON_CONSOLE_PORT: cannot listen: .*EADDRINUSE.* 0 takes any free port\.\n$/,
  );
});

test("a host that does not exist ends it with 2", async () => {
  const program = start({ REDIS_URL: redis.url, CARILLON_HOST: "no-such-host.invalid" });
  const { code, stderr } = await program.ended;
  expect(code).toBe(2);
  expect(stderr).toMatch(
    /^carillon-console: CARILLON_HOST: cannot listen: .*no-such-host\.invalid\. Use an address of this machine.*\n$/,
  );
});

test("SIGTERM ends it at once while Redis is down", async () => {
  const program = start({
    REDIS_URL: `redis://127.0.0.1:${await freePort()}`,
    CARILLON_TOKEN: "a-token-for-this-test",
  });
  await line(program, "the board could not be updated");
  const begun = performance.now();
  program.signal("SIGTERM");
  expect(await program.ended).toMatchObject({ code: 0 });
  expect(performance.now() - begun).toBeLessThan(5_000);
});

test.each([
  [["--help"], 0, /REDIS_URL/],
  [["nosuch"], 2, /got "nosuch"/],
])("it takes no arguments: %j ends with %d", (args, code, says) => {
  const env = { PATH: process.env["PATH"], REDIS_URL: redis.url, CARILLON_CONSOLE_PORT: "0" };
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], { env, encoding: "utf8" });
  expect(status).toBe(code);
  expect(code === 0 ? stdout : stderr).toMatch(says);
});
