import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually, redisBinary, startRedis } from "@carillon/testing";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { installPacked, published } from "./installed.js";

/* The app that `carillon init` writes, and its commands, with the packages as users get them. */

const PATIENCE = 300_000;
const execute = promisify(execFile);

let home = "";
let app = "";
let child: ChildProcess | undefined;
let env: NodeJS.ProcessEnv = {};

beforeAll(async () => {
  const server = await redisBinary();
  env = { ...process.env, NODE_OPTIONS: "", REDIS_URL: "", CARILLON_REDIS_SERVER: server };
  const packages = published(/^packages\/|^apps\/(cli|console)$/);
  home = await installPacked(packages, ["@types/node", "tsx", "typescript", "zod"]);
  app = join(home, "My app");
  await execute(process.execPath, [join(home, "node_modules/.bin/carillon"), "init", "My app"], {
    cwd: home,
    env,
  });
}, PATIENCE);
afterEach(() => {
  if (child?.exitCode === null && child.signalCode === null) signal(child, "SIGKILL");
});

/** As a terminal does: to npm and all that it started. */
function signal({ pid }: ChildProcess, name: NodeJS.Signals): void {
  process.kill(-(pid as number), name);
}
afterAll(() => rm(home, { recursive: true, force: true }));

/** Runs a script of the app. Its output ends with the exit code. */
function script(name: string, more: NodeJS.ProcessEnv = {}): { output: () => string; child: ChildProcess } {
  let output = "";
  child = spawn("npm", ["run", name], { cwd: app, env: { ...env, ...more }, detached: true });
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk) => {
      output += chunk;
    });
  child.once("close", (code) => {
    output += `exit ${code}`;
  });
  return { output: () => output, child };
}
const says = (output: () => string, pattern: RegExp) =>
  eventually(() => expect(output()).toMatch(pattern), { timeoutMs: 120_000 });

it(
  "its types, and its test in virtual time, pass",
  async () => {
    await says(script("check").output, /exit 0$/);
    const { output } = script("test");
    await says(output, /exit \d+$/);
    expect(output()).toMatch(/pass 1\n[\s\S]*fail 0\n[\s\S]*exit 0$/);
  },
  PATIENCE,
);

it(
  "npm run dev runs its task within seconds; Ctrl-C ends it",
  async () => {
    const { output, child } = script("dev");
    await says(output, /started +hello\n +Hello, Ada!\n.*succeeded +hello/);
    signal(child, "SIGINT");
    await says(output, /stopping[\s\S]*exit \w+$/); // npm ends by the signal too
  },
  PATIENCE,
);

it(
  "npm start runs it on a Redis of one's own, and refuses one that loses data",
  async () => {
    const redis = await startRedis({ appendonly: true });
    const stock = await startRedis();
    try {
      const { output, child } = script("start", { REDIS_URL: redis.url });
      const { output: refusal } = script("start", { REDIS_URL: stock.url });
      await says(refusal, /REDIS_UNSAFE[\s\S]*appendonly yes[\s\S]*exit 1$/);
      await eventually(
        async () => {
          const args = [join(home, "node_modules/.bin/carillon"), "--redis", redis.url, "runs", "hello"];
          const { stdout } = await execute(process.execPath, args, { env });
          expect(stdout).toContain("succeeded");
        },
        { timeoutMs: 120_000 },
      );
      const ended = once(child, "exit");
      signal(child, "SIGTERM");
      await ended;
      expect(output()).not.toContain("Error");
    } finally {
      await Promise.all([redis.stop(), stock.stop()]);
    }
  },
  PATIENCE,
);

it("writes into no folder that holds something", async () => {
  const again = execute(process.execPath, [join(home, "node_modules/.bin/carillon"), "init", "My app"], {
    cwd: home,
    env,
  });
  await expect(again).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining("My app is not empty"),
  });
});
