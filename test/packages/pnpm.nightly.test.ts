import { execFile } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { redisBinary } from "@carillon/testing";
import { afterAll, expect, test } from "vitest";
import { pack, publishedPackages } from "../../scripts/lib/packages.mjs";
import { root } from "../../scripts/lib/project.mjs";
import { runtime } from "../../scripts/lib/runtime.mjs";

/* The app that `carillon init` writes, installed by pnpm as init and the pages say: pnpm refuses packages that would run a script. */

const execute = promisify(execFile);
const home = mkdtempSync(join(tmpdir(), "carillon-pnpm-"));
const app = join(home, "app");
afterAll(() => rmSync(home, { recursive: true }));

test("pnpm installs an app that init wrote, once it has the printed line, and runs its test", async () => {
  const pnpm = await runtime("pnpm@12");
  const env = { ...process.env, CI: "true", NODE_OPTIONS: "", CARILLON_REDIS_SERVER: await redisBinary() };
  const run = async (command: string, ...args: string[]) =>
    (await execute(command, args, { cwd: app, env, maxBuffer: 64 * 1024 * 1024 })).stdout;
  const carillon = join(root, "apps/cli/bin/carillon.js");
  const { stdout: said } = await execute(process.execPath, [carillon, "init", app], { env });
  const line = /# with pnpm first: (echo .*)$/m.exec(said)?.[1] ?? "";

  // Instead of a registry.
  const packages = publishedPackages().filter(({ folder }) => !/nestjs/.test(folder));
  const tarballs = await pack(packages, home);
  const overrides = packages.map(({ manifest }, i) => `  "${manifest.name}": "file:${tarballs[i]}"`);
  const settings = join(app, "pnpm-workspace.yaml");
  const overridden = () => appendFileSync(settings, `overrides:\n${overrides.join("\n")}\n`);

  overridden();
  await expect(run(pnpm, "install")).rejects.toMatchObject({
    stderr: expect.stringContaining("ERR_PNPM_IGNORED_BUILDS"),
  });
  await run("sh", "-ec", line);
  overridden();
  await run(pnpm, "install");
  expect(await run(pnpm, "test")).toMatch(/pass 1\n[\s\S]*fail 0\n/);
});

test.each(["packages/sdk/README.md", "docs/bundlers.md"])(
  "%s has the line for an app without tsx",
  (page) => {
    expect(readFileSync(join(root, page), "utf8")).toContain("allowBuilds: { msgpackr-extract: false }");
  },
);
