import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { eventually, freePort, type RedisServer, startRedis } from "@carillon/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pack, publishedPackages } from "../../scripts/lib/packages.mjs";

/*
 * Builds a program that puts each kind of schedule, with each of these, and runs it. Next.js brings hundreds of megabytes, so they
 * are installed here and not for everybody.
 */

const execute = promisify(execFile);
const files = fileURLToPath(new URL("builders/", import.meta.url));
const BUILDERS = ["next@16", "react@19", "react-dom@19", "webpack@5", "vite@8", "rolldown@1", "esbuild"];
const PATIENCE = 900_000;

let home = "";
let redis: RedisServer;
/** A next time of each kind: an error would be a text. */
let expected: object;

async function run(command: string, args: string[], env: Record<string, string> = {}): Promise<string> {
  const { stdout } = await execute(command, args, {
    cwd: home,
    env: { ...process.env, NODE_OPTIONS: "", NEXT_TELEMETRY_DISABLED: "1", ...env },
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}
const connected = (namespace: string) => ({ REDIS_URL: redis.url, CARILLON_NAMESPACE: namespace });

describe("a program that is built by", () => {
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), "carillon-builders-"));
    redis = await startRedis();
    await writeFile(join(home, "package.json"), JSON.stringify({ private: true, type: "module" }));
    const own = publishedPackages().filter(({ folder }) => /^packages\/(core|store|sdk)$/.test(folder));
    const tarballs = await Promise.all(own.map((one) => pack(one, home)));
    await run("npm", ["install", "--no-audit", "--no-fund", ...BUILDERS, "ioredis@6", ...tarballs]);
    for (const name of ["schedules.mjs", "main.mjs"]) await cp(join(files, name), join(home, name));
    const route = join(home, "app", "put");
    await mkdir(route, { recursive: true });
    await cp(join(files, "route.mjs"), join(route, "route.js"));
    const layout = "export default ({ children }) => <html><body>{children}</body></html>;\n";
    await writeFile(join(home, "app", "layout.js"), layout);
    const plain = JSON.parse(await run(process.execPath, ["main.mjs"], connected("plain"))) as object;
    expected = Object.fromEntries(Object.keys(plain).map((kind) => [kind, expect.any(Number)]));
    expect(plain).toEqual(expected);
  }, PATIENCE);
  afterAll(async () => {
    await redis?.stop();
    await rm(home, { recursive: true, force: true });
  });

  test.each([
    ["esbuild", ["main.mjs", "--bundle", "--platform=node", "--outfile=esbuild.cjs"], "esbuild.cjs"],
    ["rolldown", ["main.mjs", "--platform=node", "--format=cjs", "--file=rolldown.cjs"], "rolldown.cjs"],
    ["vite", ["build", "--ssr", "main.mjs", "--outDir=vite", "--config=vite.config.mjs"], "vite/main.mjs"],
    ["webpack", [], "webpack/main.cjs"],
  ])(
    "%s puts each kind of schedule",
    async (name, args, output) => {
      await writeFile(join(home, "vite.config.mjs"), "export default { ssr: { noExternal: true } };\n");
      if (name === "webpack") {
        await writeFile(join(home, "webpack.mjs"), WEBPACK);
        await run(process.execPath, ["webpack.mjs"]);
      } else await run(join(home, "node_modules", ".bin", name), args);
      expect(JSON.parse(await run(process.execPath, [output], connected(name)))).toEqual(expected);
    },
    PATIENCE,
  );

  test.each([
    ["its default", []],
    ["webpack", ["--webpack"]],
  ])(
    "Next.js with %s puts each kind of schedule, and is built without REDIS_URL",
    async (name, flags) => {
      const next = join(home, "node_modules", "next", "dist", "bin", "next");
      await rm(join(home, ".next"), { recursive: true, force: true });
      await run(process.execPath, [next, "build", ...flags], { REDIS_URL: "" });
      const port = await freePort();
      const namespace = name.replaceAll(" ", "-");
      const server = execFile(process.execPath, [next, "start", "-p", String(port)], {
        cwd: home,
        env: { ...process.env, ...connected(namespace) },
      });
      try {
        const answer = await eventually(() => fetch(`http://127.0.0.1:${port}/put`), { timeoutMs: 120_000 });
        expect(await answer.json()).toEqual(expected);
      } finally {
        server.kill();
      }
    },
    PATIENCE,
  );
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
