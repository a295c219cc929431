import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { operatorOf } from "@carillon/ops";
import { VERSION } from "@carillon/scheduler";
import { eventually } from "@carillon/testing";
import { build } from "esbuild";
import { expect, test } from "vitest";
import { PATIENCE, type Program, Stand } from "../seeds/harness.js";

const stand = Stand.use();
const entry = (name: string) => fileURLToPath(new URL(`bundles/${name}.ts`, import.meta.url));

/** The banner from docs/bundlers.md. */
const BANNER =
  'import { createRequire as makeRequire } from "node:module"; const require = makeRequire(import.meta.url);';

/** Bundles outside of the checkout, where neither our packages nor our files can be found. */
async function bundle(format: "esm" | "cjs"): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "carillon-bundles-"));
  stand.later(() => rm(folder, { recursive: true }));
  const { warnings } = await build({
    entryPoints: ["client", "worker", "node"].map(entry),
    bundle: true,
    platform: "node",
    target: "node20",
    format,
    outdir: folder,
    outExtension: { ".js": format === "esm" ? ".mjs" : ".cjs" },
    ...(format === "esm" ? { banner: { js: BANNER } } : {}),
    logLevel: "silent",
  });
  expect(warnings.map(({ text }) => text)).toEqual([]);
  return folder;
}

test.each([
  ["esm", "mjs"],
  ["cjs", "cjs"],
] as const)(
  "bundles of client, worker and node work: %s",
  async (format, extension) => {
    const folder = await bundle(format);
    const [client, worker, node] = ["client", "worker", "node"].map((name) =>
      stand.program(join(folder, `${name}.${extension}`)),
    ) as [Program, Program, Program];
    // A program that fails at its start ends; the others run until they are killed.
    const early = Promise.race([worker.ended, node.ended]).then(({ stderr }) => {
      throw new Error(`ended early: ${stderr}`);
    });
    early.catch(() => {}); // killed at the end of the test
    expect(await client.toItsEnd()).toMatchObject({ code: 0, stderr: "" });

    const observer = stand.client();
    const done = eventually(async () => {
      const [run] = (await observer.runs.list("bell")).filter(({ outcome }) => outcome === "succeeded");
      expect(run?.result).toEqual({ rang: 3 });
    }, PATIENCE);
    await Promise.race([done, early]);
    expect((await operatorOf(observer).nodes.list()).nodes).toMatchObject([{ version: VERSION }]);
  },
  60_000,
);

/** Modules in the bundle of a single import, without BullMQ, which brings its own cron-parser. */
async function modulesOf(contents: string): Promise<string[]> {
  const { metafile } = await build({
    stdin: { contents, resolveDir: fileURLToPath(new URL(".", import.meta.url)) },
    bundle: true,
    write: false,
    metafile: true,
    platform: "node",
    format: "esm",
    conditions: ["carillon-source"],
    external: ["bullmq", "ioredis", "pino"],
  });
  return Object.values(metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs));
}

test("no bundle contains cron-parser", async () => {
  const library = /node_modules\/(?:cron-parser|luxon)\//;
  const has = async (contents: string) => (await modulesOf(contents)).some((path) => library.test(path));
  expect(await has('export * from "@carillon/core";')).toBe(false);
  expect(await has('export { Client, Worker } from "@carillon/sdk";')).toBe(false);
  expect(await has('export * from "@carillon/sdk/schedule";')).toBe(false);
});
