import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@carillon/sdk";
import { eventually, startRedis } from "@carillon/testing";
import { afterEach, beforeEach, expect, it } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const CLI = join(root, "apps/cli/bin/carillon.js");
const PATIENCE = { timeoutMs: 60_000 };

let folder = "";
let child: ChildProcess | undefined;
let output = "";

beforeEach(async () => {
  // Within the repository, because the file of task types imports its packages.
  await mkdir(join(root, ".carillon"), { recursive: true });
  folder = await mkdtemp(join(root, ".carillon", "dev-"));
  output = "";
});
afterEach(async () => {
  child?.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

function start(args: string[], env: Record<string, string> = {}): ChildProcess {
  const started = spawn(process.execPath, [CLI, "dev", "--port", "0", ...args], {
    cwd: folder,
    env: { ...process.env, REDIS_URL: "", NODE_OPTIONS: "", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const stream of [started.stdout, started.stderr])
    stream?.on("data", (chunk) => {
      output += chunk;
    });
  child = started;
  return started;
}

const says = (pattern: RegExp) => eventually(() => expect(output).toMatch(pattern), PATIENCE);
const told = (pattern: RegExp) => pattern.exec(output)?.[1] ?? "";
const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** A module of one type and one task. Prints the id of its process. */
const tasks = (greeting: string, handler = "") => `
import { defineTask, task } from "@carillon/sdk";
import { z } from "zod";

console.log("worker is", process.pid);
export const greet = defineTask("greet", {
  queue: "greetings",
  payload: z.object({ name: z.string() }),
  handler: async ({ name }, { log }) => {
    ${handler}
    log("${greeting}, " + name + "!");
  },
});
export const hello = task(greet, { id: "hello", schedule: { every: "1s" }, payload: { name: "Ada" } });
`;

/** Replaces the file as editors do. */
async function save(text: string): Promise<void> {
  await writeFile(join(folder, "draft"), text);
  await rename(join(folder, "draft"), join(folder, "tasks.mjs"));
}

it("runs a file of tasks with nothing else, prints each event, and reloads; Ctrl-C leaves no process", async () => {
  await save(tasks("Hello"));
  const dev = start(["tasks.mjs"]);
  await says(
    /put +hello\n[\s\S]*enqueued +hello[\s\S]*started +hello\n +Hello, Ada!\n.*succeeded +hello +in /,
  );
  const [redisUrl, page] = [told(/Redis +(\S+)/), told(/Console +(\S+)/)];
  const { status, headers } = await fetch(page, { redirect: "manual" });
  expect({ status, signedIn: headers.has("set-cookie") }).toEqual({ status: 303, signedIn: true });

  await save("this is not JavaScript");
  await says(/SyntaxError[\s\S]*waiting +for a change in \./);
  await save(tasks("Good morning", 'throw new Error("too early");'));
  await says(/failed +hello +Error: too early/);
  await save(tasks("Good evening"));
  await says(/Good evening, Ada!\n.*succeeded/);

  const workers = [...output.matchAll(/worker is (\d+)/g)].map(([, pid]) => Number(pid));
  expect(workers).toHaveLength(3);
  const ended = once(dev, "exit");
  dev.kill("SIGINT");
  expect(await ended).toEqual([0, null]);
  expect(workers.filter(isAlive)).toEqual([]);
  await expect(fetch(page)).rejects.toThrow();
  await expect(new Client({ connection: redisUrl, connectTimeout: 500 }).list()).rejects.toThrow();
});

it("leaves no process if it is killed", async () => {
  await save(tasks("Hello"));
  const dev = start(["tasks.mjs"]);
  await says(/succeeded +hello/);
  dev.kill("SIGKILL");
  const worker = Number(told(/worker is (\d+)/));
  await eventually(() => expect(isAlive(worker)).toBe(false), PATIENCE);
  const client = new Client({ connection: told(/Redis +(\S+)/), connectTimeout: 200 });
  await eventually(() => expect(client.list()).rejects.toThrow(), PATIENCE);
  await client.close();
});

it("uses the Redis of REDIS_URL, and says what that lacks for production", async () => {
  await using redis = await stockRedis();
  await save(tasks("Hello"));
  start(["tasks.mjs"], { REDIS_URL: redis.url });
  await says(/warning +appendonly is off: a restart of Redis loses acknowledged writes/);
  await says(/succeeded +hello/);
  expect(output).toContain(`Redis    ${redis.url}\n`);
});

/** As `redis-server` without arguments. */
async function stockRedis() {
  const redis = await startRedis();
  return { url: redis.url, [Symbol.asyncDispose]: () => redis.stop() };
}

it.each([
  ["a file that is missing", "none.mjs", "", /file: there is no file none\.mjs/],
  [
    "a file without task types",
    "tasks.mjs",
    "export const a = 1;",
    / {2}error +\S*tasks\.mjs exports no task type/,
  ],
])("refuses %s", async (_title, file, text, message) => {
  await save(text);
  start([file]);
  await says(message);
});
