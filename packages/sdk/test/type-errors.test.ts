import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));
let folder: string;
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What the compiler says of a program, in a folder from which our packages are found. */
function compile(program: string): Promise<string> {
  mkdirSync(join(root, ".carillon"), { recursive: true });
  folder = mkdtempSync(join(root, ".carillon", "types-"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  writeFileSync(join(folder, "program.ts"), program);
  const options = { extends: "../../tsconfig.test.json", include: ["program.ts"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(options));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  return new Promise((resolve) => {
    execFile(process.execPath, [tsc, "-p", folder, "--pretty", "false"], (_, stdout) => resolve(stdout));
  });
}

it("a mistake in a task type with a handler is told of the handler, not of a fan-out", {
  timeout: 90_000,
}, async () => {
  const said = await compile(`
    import { defineTask } from "@carillon/sdk";
    import { z } from "zod";
    interface Row { id: string }
    const payload = z.object({});
    defineTask("rows", { queue: "q", payload, handler: async (): Promise<{ rows: Row[] }> => ({ rows: [] }) });
    defineTask("lost", { payload, handler: () => {} });
  `);
  expect(said).toContain("Index signature for type 'string' is missing in type 'Row'");
  expect(said).toContain("Property 'queue' is missing");
  expect(said).not.toContain("FanOutOptions");
});
