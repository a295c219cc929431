import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { operatorOf } from "@carillon/ops";
import { Client } from "@carillon/sdk";
import { type RedisServer, startRedis } from "@carillon/testing";
import { afterAll, beforeAll, expect, it } from "vitest";

/* The blocks of docs/schedules-as-code.md, word for word, in their order. */

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Within the repository, because the blocks import its packages. */
const home = join(root, ".carillon", "schedules-as-code");
const text = readFileSync(join(root, "docs", "schedules-as-code.md"), "utf8");
const blocksIn = (language: string) =>
  [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```/gm)].flatMap(([, one, code = ""]) =>
    one === language ? [code] : [],
  );
const [first = "", staging = "", pull = ""] = blocksIn("sh");
const stripsTypes = Boolean((process.features as { typescript?: unknown }).typescript);

let redis: RedisServer;
let client: Client;
beforeAll(async () => {
  redis = await startRedis({ appendonly: true });
  client = new Client({ connection: redis.url });
  rmSync(home, { recursive: true, force: true });
  mkdirSync(join(home, "bin"), { recursive: true });
  writeFileSync(join(home, "package.json"), '{"type":"module"}');
  // Nobody answers the question of `carillon apply` here.
  const program = join(root, "apps", "cli", "dist", "main.js");
  const shim = `#!/bin/sh\n[ "$1" = apply ] && set -- "$@" --yes\nexec "${process.execPath}" "${program}" "$@"\n`;
  writeFileSync(join(home, "bin", "carillon"), shim);
  chmodSync(join(home, "bin", "carillon"), 0o755);
  for (const [i, code] of blocksIn("ts").entries()) {
    const file = /^\/\/ (\S+)\.ts\n/.exec(code)?.[1] ?? `program-${i}`;
    mkdirSync(dirname(join(home, file)), { recursive: true });
    // They are plain JavaScript: a Node.js without TypeScript runs them too.
    writeFileSync(join(home, `${file}.js`), code.replace("redis://localhost:6379", redis.url));
    if (stripsTypes) writeFileSync(join(home, `${file}.ts`), code);
  }
});
afterAll(async () => {
  await client.close();
  await redis.stop();
  rmSync(home, { recursive: true });
});

/** Runs commands as a shell does, until one fails. */
function run(commands: string, namespace = "carillon"): string {
  const PATH = `${join(home, "bin")}:${process.env["PATH"]}`;
  const env = { ...process.env, NODE_OPTIONS: "", REDIS_URL: redis.url, CARILLON_NAMESPACE: namespace, PATH };
  return execFileSync("sh", ["-ec", commands], { cwd: home, env, encoding: "utf8" });
}

it("plan, apply, drift and sets do what the page shows, from the shell and from a program", async () => {
  const said = run(first);
  expect(said).toMatch(/\+ create system\/invoices in queue billing\n(.*\n)* {2}at 06:00.*Europe\/Berlin/);
  expect(said).toMatch(/### Schedules of billing 42: 2 create/);
  expect(said).toMatch(
    /\napplied billing 42: 2 create.*\n(.*\n)*No drift in billing\.\nSET .*\nbilling +2 +42 /,
  );
  expect(await client.get("refunds")).toMatchObject({ state: "scheduled", retry: { attempts: 3 } });
  await client.put({ id: "invoices", type: "invoice", queue: "billing", schedule: { every: "1h" } });
  expect((await client.get("invoices")).set).toMatchObject({ drift: { at: expect.any(Number) } });
  run(`"${process.execPath}" program-1.js`);
  expect(await client.get("invoices")).toMatchObject({
    set: { name: "billing" },
    schedule: { cron: "0 6 1 * *" },
  });
});

it("an environment changes defaults and tasks, and leaves tasks out", async () => {
  run(staging, "staging");
  const other = new Client({ connection: redis.url, namespace: "staging" });
  expect((await other.list()).tasks).toMatchObject([
    { id: "invoices", state: "paused", schedule: { every: "1h" } },
    { id: "reminders", state: "scheduled" },
  ]);
  await other.close();
});

it("pull writes a file that plans as unchanged, and one that a new set adopts", async () => {
  await client.put({ id: "welcome", type: "mail", queue: "mail", schedule: { manual: true } });
  run(pull);
  expect(run("carillon plan --config pulled.json --exit-code")).toBe("billing 42: 2 unchanged\n");
  const adopt = /`(carillon apply --config .* --adopt '\*')`/.exec(text)?.[1] ?? "";
  if (!stripsTypes) run("sed 's/^import .*//; s/defineConfig//' mail.config.ts > mail.config.mjs");
  run(stripsTypes ? adopt : adopt.replace(".ts", ".mjs"));
  expect((await operatorOf(client).sets.list()).sets.map(({ name }) => name)).toEqual(["billing", "mail"]);
});
