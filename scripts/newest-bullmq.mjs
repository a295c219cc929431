// npm run test:bullmq [-- VERSION]: tests that depend on BullMQ, with its newest release or another one, in a copy of the last commit.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readJson } from "./lib/lock-file.mjs";
import { main, say, Trouble } from "./lib/project.mjs";
import { run } from "./lib/run.mjs";

const MANIFESTS = ["package.json", "packages/*/package.json", "apps/*/package.json"];
const TESTS = ["packages/store", "packages/sdk/test/worker", "packages/testing/test/kit", "test/stories"];

await main(async () => {
  const pinned = readJson("package.json").devDependencies.bullmq;
  const version = process.argv[2] ?? (await newest());
  if (version === pinned) {
    say(`${pinned} is the newest BullMQ, and the one that all tests run with`);
    return 0;
  }
  const copy = mkdtempSync(join(tmpdir(), "carillon-bullmq-"));
  try {
    await must("git", ["checkout-index", "--all", `--prefix=${copy}/`]);
    const { output } = await must("git", ["ls-files", ...MANIFESTS]);
    for (const file of output.trim().split("\n")) {
      const manifest = join(copy, file);
      const text = readFileSync(manifest, "utf8");
      writeFileSync(manifest, text.replace(`"bullmq": "${pinned}"`, `"bullmq": "${version}"`));
    }
    say(`testing with BullMQ ${version} in place of ${pinned}`);
    await must("npm", ["install", "--no-audit", "--no-fund"], copy);
    return (await run("npm", ["test", "--", ...TESTS], { cwd: copy })).code;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
});

async function newest() {
  const { output } = await must("npm", ["view", "bullmq", "version", "--loglevel", "error"]);
  return output.trim().split("\n").at(-1);
}

async function must(command, args, cwd) {
  const result = await run(command, args, { cwd, capture: true });
  if (result.code !== 0) throw new Trouble(`${command} ${args.join(" ")} failed:\n${result.output}`);
  return result;
}
