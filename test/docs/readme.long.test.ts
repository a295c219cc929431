import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@carillon/sdk";
import { eventually, type RedisServer, redisBinary, startRedis } from "@carillon/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { installPacked, published } from "../packages/installed.js";

/* "An app of your own" in README.md, word for word, with the packages as users get them. */

const PATIENCE = 300_000;
const text = readFileSync(fileURLToPath(new URL("../../README.md", import.meta.url)), "utf8");
const section = /\n## An app of your own\n([\s\S]*?)\n## /.exec(text)?.[1] ?? "";
const blocks = [...section.matchAll(/^```(\w*)\n([\s\S]*?)^```/gm)];
const blocksIn = (language: string) =>
  blocks.flatMap(([, one, code]) => (one === language ? [code ?? ""] : []));

const [setUp = "", dev = "", start = ""] = blocksIn("sh");
const [output = ""] = blocksIn("");
const [init, install = ""] = setUp.trim().split("\n");

let home = "";
let servers: Record<"stock" | "durable", RedisServer>;
let env: NodeJS.ProcessEnv = {};
let child: ChildProcess | undefined;
let said = "";

beforeAll(async () => {
  env = { ...process.env, NODE_OPTIONS: "", REDIS_URL: "", CARILLON_REDIS_SERVER: await redisBinary() };
  // `npm install` of what it names, from this repository instead of the registry.
  const names = install.replace("npm install ", "").split(" ");
  const others = names.filter((name) => !name.startsWith("@carillon/"));
  home = await installPacked(withDependencies(names), others);
  execFileSync("sh", ["-c", init ?? ""], { cwd: home });
  for (const code of blocksIn("ts")) {
    const file = /^\/\/ (\S+)\n/.exec(code)?.[1];
    if (file) writeFileSync(join(home, file), code);
  }
  servers = { stock: await startRedis(), durable: await startRedis({ appendonly: true }) };
}, PATIENCE);
afterEach(() => {
  if (child?.exitCode === null && child.signalCode === null) process.kill(-(child.pid as number), "SIGKILL");
});
afterAll(async () => {
  await Promise.all(Object.values(servers ?? {}).map((server) => server.stop()));
  rmSync(home, { recursive: true, force: true });
});

/** Our packages of these names, and those that they depend on. */
function withDependencies(names: readonly string[]) {
  const all = published(/./);
  const found = new Set<string>();
  const add = (name: string) => {
    const one = all.find(({ manifest }) => manifest.name === name);
    if (!one || found.has(name)) return;
    found.add(name);
    for (const dependency of Object.keys(one.manifest.dependencies ?? {})) add(dependency);
  };
  for (const name of names) add(name);
  return all.filter(({ manifest }) => found.has(manifest.name));
}

/** Runs commands as a shell does, until the test ends. */
function run(commands: string, more: NodeJS.ProcessEnv = {}): ChildProcess {
  said = "";
  child = spawn("sh", ["-c", commands], { cwd: home, env: { ...env, ...more }, detached: true });
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk) => {
      said += chunk;
    });
  return child;
}
const says = (pattern: RegExp) => eventually(() => expect(said).toMatch(pattern), { timeoutMs: 120_000 });

/** A line of the output, in which times, ports and tokens may differ. */
const shapeOf = (line: string) =>
  line
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "INSTANT")
    .replace(/^\d\d:\d\d:\d\d/, "TIME")
    .replace(/in \d.*$/, "in TIME")
    .replace(/token=\w+/, "TOKEN")
    .replace(/127\.0\.0\.1:\d+/, "ADDRESS");

it(
  "npx carillon dev runs the task within seconds, and prints the lines that the README shows",
  async () => {
    run(dev);
    await says(/succeeded/);
    const shapes = said.split("\n").map(shapeOf);
    for (const line of output.split("\n")) expect(shapes).toContain(shapeOf(line));
  },
  PATIENCE,
);

describe.each(["stock", "durable"] as const)("on a %s Redis", (kind) => {
  const url = () => ({ REDIS_URL: servers[kind].url, CARILLON_NAMESPACE: `readme-${kind}` });

  it(
    "npx carillon dev runs the task, and warns of what would lose data",
    async () => {
      run(dev, url());
      await says(/succeeded/);
      expect(said.includes("appendonly is off")).toBe(kind === "stock");
    },
    PATIENCE,
  );

  it(
    kind === "stock" ? "node app.mjs says what to do" : "node app.mjs runs the task",
    async () => {
      const program = run(start, url());
      if (kind === "stock") {
        await once(program, "exit");
        expect(said).toMatch(/appendonly is off.*appendonly yes.*unsafeRedis: warn/);
        expect(program.exitCode).toBe(1);
        return;
      }
      const client = new Client({ connection: servers.durable.url });
      await eventually(
        async () =>
          expect(await client.runs.list("acme")).toContainEqual(
            expect.objectContaining({ outcome: "succeeded" }),
          ),
        { timeoutMs: 120_000 },
      );
      await client.close();
    },
    PATIENCE,
  );
});
