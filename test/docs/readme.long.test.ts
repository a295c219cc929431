import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client } from "@carillon/sdk";
import { eventually, type RedisServer, redisBinary, startRedis } from "@carillon/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";

/* "An app of your own" in README.md, word for word, with the packages as users get them, and a registry that has none of them. */

const PATIENCE = 300_000;
const root = fileURLToPath(new URL("../..", import.meta.url));
const text = readFileSync(join(root, "README.md"), "utf8");
const section = /\n## An app of your own\n([\s\S]*?)\n## /.exec(text)?.[1] ?? "";
const shown = section.replace(/<!-- from then on[\s\S]*?-->/g, "");
const blocks = [...shown.matchAll(/^```(\w*)\n([\s\S]*?)^```/gm)];
const blocksIn = (language: string) =>
  blocks.flatMap(([, one, code]) => (one === language ? [code ?? ""] : []));

const [setUp = "", dev = "", start = ""] = blocksIn("sh");
const [output = ""] = blocksIn("");
/** The folder that the README names. */
const FOLDER = "../my-app";

let home = "";
let registry: Server;
let servers: Record<"stock" | "durable", RedisServer>;
let env: NodeJS.ProcessEnv = {};
let child: ChildProcess | undefined;
let said = "";

beforeAll(async () => {
  env = { ...process.env, NODE_OPTIONS: "", REDIS_URL: "", CARILLON_REDIS_SERVER: await redisBinary() };
  home = mkdtempSync(join(tmpdir(), "carillon-readme-"));
  registry = createServer((_, response) => response.writeHead(404).end("{}")).listen(0, "127.0.0.1");
  await once(registry, "listening");
  const { port } = registry.address() as AddressInfo;
  writeFileSync(join(home, ".npmrc"), `@carillon:registry=http://127.0.0.1:${port}/\n`);
  expect(setUp.split(FOLDER)).toHaveLength(3);
  await promisify(execFile)("sh", ["-ec", setUp.replaceAll(FOLDER, home)], { cwd: root, env });
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
  registry.close();
  await Promise.all(Object.values(servers ?? {}).map((server) => server.stop()));
  rmSync(home, { recursive: true, force: true });
});

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
