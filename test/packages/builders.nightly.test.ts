import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { eventually, freePort, type RedisServer, startRedis } from "@carillon/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pack, publishedPackages } from "../../scripts/lib/packages.mjs";
import { NODES, runtime } from "../../scripts/lib/runtime.mjs";

/*
 * Builds a program that puts each kind of schedule, with each of these, and runs it; and serves a client with NestJS. Next.js and
 * NestJS on each supported version of Node.js. They bring hundreds of megabytes, so they are installed here and not for everybody.
 */

const execute = promisify(execFile);
const files = fileURLToPath(new URL("builders/", import.meta.url));
const BUILDERS = ["next@16", "react@19", "react-dom@19", "webpack@5", "vite@8", "rolldown@1", "esbuild"];
const NEST = ["core", "common", "platform-express"].map((name) => `@nestjs/${name}@12`);
const PATIENCE = 900_000;

let home = "";
let redis: RedisServer;

async function run(command: string, args: string[], env: Record<string, string> = {}): Promise<string> {
  const { stdout } = await execute(command, args, {
    cwd: home,
    env: { ...process.env, NODE_OPTIONS: "", NEXT_TELEMETRY_DISABLED: "1", ...env },
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}
let namespaces = 0;
/** An empty namespace, because a put of a stored task changes nothing. */
const connected = () => ({ REDIS_URL: redis.url, CARILLON_NAMESPACE: `n${++namespaces}` });

/** The next time of a task of each kind, put by a program: a number, or the text of an error. */
type Times = Record<string, number>;
async function timesOf(file: string): Promise<Times> {
  return JSON.parse(await run(process.execPath, [file], connected())) as Times;
}

/** Compares with the program that nobody built, before and after: a next time may come meanwhile, and a delay begins now. */
async function expectSameTimes(put: () => Promise<Times>): Promise<void> {
  const before = await timesOf("main.mjs");
  const found = await put();
  const after = await timesOf("main.mjs");
  // An error is a text.
  expect(found).toEqual(Object.fromEntries(Object.keys(before).map((kind) => [kind, expect.any(Number)])));
  for (const [kind, time] of Object.entries(found)) {
    expect(time, kind).toBeGreaterThanOrEqual(before[kind] as number);
    expect(time, kind).toBeLessThanOrEqual(after[kind] as number);
  }
}

/** Runs a server until `use` has ended. */
async function serving(node: string, args: string[], use: (url: string) => Promise<void>): Promise<void> {
  const port = String(await freePort());
  const env = { ...process.env, ...connected(), PORT: port };
  const server = execFile(node, args, { cwd: home, env });
  try {
    const url = `http://127.0.0.1:${port}`;
    await eventually(() => fetch(url), { timeoutMs: 120_000 });
    await use(url);
  } finally {
    server.kill();
  }
}

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "carillon-builders-"));
  redis = await startRedis();
  await writeFile(join(home, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const own = publishedPackages().filter(({ folder }) => /^packages\/(core|store|sdk)$/.test(folder));
  const tarballs = await pack(own, home);
  const others = [...BUILDERS, ...NEST, "@sentry/node@11", "reflect-metadata", "rxjs", "ioredis@6"];
  await run("npm", ["install", "--no-audit", "--no-fund", ...others, ...tarballs]);
  for (const name of ["schedules.mjs", "main.mjs", "nest.mjs", "sentry.mjs"])
    await cp(join(files, name), join(home, name));
}, PATIENCE);
afterAll(async () => {
  await redis?.stop();
  await rm(home, { recursive: true, force: true });
});

describe("a program that is built by", () => {
  test.each([
    ["esbuild", ["main.mjs", "--bundle", "--platform=node", "--outfile=esbuild.cjs"], "esbuild.cjs"],
    ["rolldown", ["main.mjs", "--platform=node", "--dir=rolldown"], "rolldown/main.js"],
    ["vite", ["build", "--ssr", "main.mjs", "--outDir=vite", "--config=vite.config.mjs"], "vite/main.js"],
    ["webpack", [], "webpack/main.cjs"],
  ])(
    "%s puts each kind of schedule",
    async (name, args, output) => {
      await writeFile(join(home, "vite.config.mjs"), "export default { ssr: { noExternal: true } };\n");
      if (name === "webpack") {
        await writeFile(join(home, "webpack.mjs"), WEBPACK);
        await run(process.execPath, ["webpack.mjs"]);
      } else await run(join(home, "node_modules", ".bin", name), args);
      await expectSameTimes(() => timesOf(output));
    },
    PATIENCE,
  );

  test.each([
    ...NODES.map((major) => [major, "its default", []] as const),
    [Number.parseInt(process.versions.node, 10), "webpack", ["--webpack"]] as const,
  ])(
    "Next.js on Node.js %s with %s puts each kind of schedule, and is built without REDIS_URL",
    async (major, _name, flags) => {
      const node = await runtime(`node@${major}`);
      const route = join(home, "app", "put");
      await mkdir(route, { recursive: true });
      await cp(join(files, "route.mjs"), join(route, "route.js"));
      const layout = "export default ({ children }) => <html><body>{children}</body></html>;\n";
      await writeFile(join(home, "app", "layout.js"), layout);
      const next = join(home, "node_modules", "next", "dist", "bin", "next");
      await rm(join(home, ".next"), { recursive: true, force: true });
      await run(node, [next, "build", ...flags], { REDIS_URL: "" });
      await serving(node, [next, "start"], (url) =>
        expectSameTimes(async () => (await fetch(`${url}/put`)).json() as Promise<Times>),
      );
    },
    PATIENCE,
  );
});

test.each(NODES)(
  "NestJS on Node.js %s answers errors of the SDK with their status",
  async (major) => {
    const node = await runtime(`node@${major}`);
    await serving(node, ["nest.mjs"], async (url) => {
      const put = (schedule: object) =>
        fetch(`${url}/tasks`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ id: "a", type: "bell", queue: "bells", schedule, payload: {} }),
        });
      expect((await put({ every: "1h" })).status).toBe(201);
      const refused = await put({ cron: "0 9 * * 8-9" });
      expect(refused.status).toBe(400);
      expect(await refused.json()).toMatchObject({
        statusCode: 400,
        message: expect.stringContaining("cron"),
      });
      expect((await fetch(`${url}/tasks/b`)).status).toBe(404);
    });
  },
  PATIENCE,
);

test("Sentry gets an error with class, cause and run from the middleware of docs/handlers.md", async () => {
  const page = await readFile(new URL("../../docs/handlers.md", import.meta.url), "utf8");
  const recipe = [...page.matchAll(/```ts\n([\s\S]*?)```/g)].find(([, code]) =>
    code?.includes("@sentry/node"),
  )?.[1];
  await writeFile(join(home, "recipe.ts"), recipe ?? "");
  await run(join(home, "node_modules", ".bin", "esbuild"), [
    "recipe.ts",
    "--format=esm",
    "--outfile=recipe.mjs",
  ]);
  const { id, events } = JSON.parse(await run(process.execPath, ["sentry.mjs"], connected()));
  expect(events).toHaveLength(1);
  const [{ tags, exception }] = events;
  expect(tags).toMatchObject({ type: "payment", task: "system/t", run: id, attempt: 1 });
  expect(exception.values).toMatchObject([
    { type: "Error", value: "card expired" },
    { type: "Declined", value: "no funds" },
  ]);
});

const WEBPACK = `
import { writeFileSync } from "node:fs";
import webpack from "webpack";

const options = {
  target: "node20",
  mode: "production",
  entry: "./main.mjs",
  output: { path: process.cwd() + "/webpack", filename: "main.cjs" },
};
webpack(options, (error, stats) => {
  if (error || stats.hasErrors()) throw error ?? new Error(stats.toString("errors-only"));
});
`;
