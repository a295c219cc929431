import { execFile } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client, defineTask, Worker } from "@carillon/sdk";
import { deliver } from "@carillon/sdk/http";
import { eventually, freePort, type RedisServer, startRedis } from "@carillon/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { pack } from "../../scripts/lib/packages.mjs";
import { SILENT } from "../helpers.js";
import { published } from "./installed.js";

/* The files of docs/frameworks.md, word for word, with the packages as users get them and the newest of each framework. */

const execute = promisify(execFile);
const text = (path: string) => readFile(new URL(path, import.meta.url), "utf8");
const NEWEST = [
  "next@16",
  "react@19",
  "react-dom@19",
  "express@5",
  "fastify@5",
  "hono@4",
  "@hono/node-server@2",
];
const TOOLS = ["typescript@5.9", "esbuild", "zod@4", "ioredis@6", "miniflare@4", "deno@2", "bun@1"];
const TYPES = ["node@22", "express@5", "react@19"].map((name) => `@types/${name}`);
const PATIENCE = 900_000;
const KEY = "the key of this test, long enough";
const TOKEN = "the-token-of-an-admin";

let home = "";
let redis: RedisServer;
const bin = (name: string) => join(home, "node_modules", ".bin", name);
const write = async (path: string, content: string) => {
  await mkdir(dirname(join(home, path)), { recursive: true });
  await writeFile(join(home, path), content);
};

async function run(command: string, args: string[], env: Record<string, string> = {}): Promise<void> {
  const all = { ...process.env, NODE_OPTIONS: "", NEXT_TELEMETRY_DISABLED: "1", ...env };
  await execute(command, args, { cwd: home, env: all, maxBuffer: 2 ** 26 }).catch((error) => {
    throw new Error(`${command}: ${error.stdout}${error.stderr}`);
  });
}

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "carillon-frameworks-"));
  redis = await startRedis();
  await write("package.json", JSON.stringify({ private: true, type: "module" }));
  const own = published(/^(packages\/(core|store|sdk|ops)|apps\/console)$/);
  const tarballs = await pack(own, home);
  await run("npm", ["install", "--no-audit", "--no-fund", ...NEWEST, ...TOOLS, ...TYPES, ...tarballs]);
  const page = await text("../../docs/frameworks.md");
  for (const [, path = "", code = ""] of page.matchAll(/^```ts\n\/\/ (\S+)\n([\s\S]*?)^```/gm))
    await write(path, code);
  const types = [
    `serve({ types: [implement(report, () => ({ pages: 4 }))], signingKey: process.env.CARILLON_SIGNING_KEY })`,
  ];
  const imports = `import { implement, serve } from "@carillon/sdk/serve";\nimport { report } from "./lib/contract.ts";\n`;
  await write("deno.ts", `${imports}Deno.serve({ port: Number(process.env.PORT) }, ${types});\n`);
  await write("bun.ts", `${imports}Bun.serve({ port: process.env.PORT, fetch: ${types} });\n`);
  await cp(fileURLToPath(new URL("builders/miniflare.mjs", import.meta.url)), join(home, "miniflare.mjs"));
}, PATIENCE);
afterAll(async () => {
  await redis?.stop();
  await rm(home, { recursive: true, force: true });
});

let namespaces = 0;
/** Runs a server until `use` has ended, and then asks it to stop. @returns its exit code */
async function serving(
  command: string,
  args: string[],
  use: (url: string) => Promise<void>,
): Promise<number | null> {
  const port = String(await freePort());
  const env = { REDIS_URL: redis.url, CARILLON_SIGNING_KEY: KEY, OPS_TOKEN: TOKEN, PORT: port };
  const server = execFile(command, args, { cwd: home, env: { ...process.env, NODE_OPTIONS: "", ...env } });
  let said = "";
  for (const stream of [server.stdout, server.stderr]) stream?.on("data", (chunk) => (said += chunk));
  const ended = once(server, "exit");
  try {
    const url = `http://127.0.0.1:${port}`;
    await eventually(() => fetch(url), { timeoutMs: 120_000 }).catch(() => expect.fail(said));
    await use(url);
  } finally {
    server.kill();
  }
  return (await ended)[0];
}

/** Puts a good task and a bad one by the app's route. */
async function expectPuts(url: string): Promise<void> {
  const id = `t${++namespaces}`;
  const put = (cron: string) => {
    const headers = { "Content-Type": "application/json" };
    return fetch(`${url}/reports`, {
      method: "POST",
      headers,
      body: JSON.stringify({ id, cron, tenant: "acme" }),
    });
  };
  const good = await put("0 9 * * *");
  expect([good.status, await good.json()]).toEqual([200, expect.objectContaining({ outcome: "created" })]);
  const bad = await put("0 25 * * *");
  expect([bad.status, await bad.text()]).toEqual([400, expect.stringContaining("25")]);
}

/** Delivers a run to an app: by a worker, as users do. */
async function expectDelivery(url: string): Promise<void> {
  const contract = defineTask("report", { queue: "reports", payload: z.object({ tenant: z.string() }) });
  const common = { connection: redis.url, namespace: `delivered-${++namespaces}` };
  const worker = new Worker({
    ...common,
    types: [deliver(contract, { url, signingKey: KEY })],
    logger: SILENT,
  });
  const client = new Client(common);
  const settled = once(worker, "settled");
  await worker.start();
  const { run: id } = await client.enqueue(contract, { tenant: "acme" });
  await settled;
  expect(await client.runs.get(id as string)).toMatchObject({ outcome: "succeeded", result: { pages: 4 } });
  await worker.stop();
  await client.close();
  expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(401);
}

test("the files for Express, Fastify and Hono compile", async () => {
  const options = ["--strict", "--noEmit", "--skipLibCheck", "--module", "nodenext", "--target", "es2023"];
  await run(bin("tsc"), [...options, "express.ts", "fastify.ts", "hono.ts"]);
});

test.each(["express", "fastify", "hono"])(
  "%s: a put, a 400 for bad input, and an end without an open handle",
  async (name) => {
    await run(bin("esbuild"), [`${name}.ts`, "carillon.ts", "--format=esm", "--outdir=."]);
    const code = await serving(process.execPath, [`${name}.js`], async (url) => {
      await expectPuts(url);
      if (name === "hono") await expectDelivery(`${url}/api/carillon`);
    });
    expect(code).toBe(0);
  },
);

test.each<[string, () => Promise<[string, string[]]>]>([
  [
    "workerd",
    async () => {
      const options = ["--bundle", "--format=esm", "--external:cloudflare:workers", "--outfile=workers.mjs"];
      await run(bin("esbuild"), ["worker.ts", ...options]);
      return [process.execPath, ["miniflare.mjs"]];
    },
  ],
  ["Deno", async () => [bin("deno"), ["run", "-A", "--no-lock", "--node-modules-dir=manual", "deno.ts"]]],
  ["Bun", async () => [bin("bun"), ["bun.ts"]]],
])("%s runs what a worker delivers", async (_, start) => {
  await serving(...(await start()), expectDelivery);
});

test(
  "Next.js is built without REDIS_URL, puts, runs what a worker delivers, and has the console, compressed",
  async () => {
    await write(
      "app/layout.tsx",
      "export default ({ children }: any) => <html><body>{children}</body></html>;\n",
    );
    const files = ["app", "lib/*.ts", "next.config.ts"];
    const compilerOptions = {
      strict: true,
      skipLibCheck: true,
      moduleResolution: "bundler",
      module: "esnext",
      lib: ["dom", "es2023"],
    };
    const include = ["next-env.d.ts", "app/**/*.ts", "app/**/*.tsx", ...files.slice(1)];
    await write(
      "tsconfig.json",
      JSON.stringify({ compilerOptions: { ...compilerOptions, paths: { "@/*": ["./*"] } }, include }),
    );
    const next = join(home, "node_modules", "next", "dist", "bin", "next");
    await run(process.execPath, [next, "build"], { REDIS_URL: "" });
    await serving(process.execPath, [next, "start"], async (url) => {
      await expectPuts(url);
      await expectDelivery(`${url}/api/carillon`);
      const page = await fetch(`${url}/ops/carillon`, {
        headers: { Accept: "text/html", "Accept-Encoding": "gzip" },
      });
      expect(page.headers.get("content-encoding")).toBe("gzip");
      expect(await page.text()).toContain('action="/ops/carillon/login"');
      const headers = { Authorization: `Bearer ${TOKEN}` };
      const tasks = await fetch(`${url}/ops/carillon/api/v1/tasks`, { headers });
      expect([tasks.status, await tasks.text()]).toEqual([200, expect.stringContaining('"reports"')]);
    });
  },
  PATIENCE,
);
