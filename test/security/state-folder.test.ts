import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { privateDir } from "../../scripts/lib/project.mjs";

/* Files that `npm start` and the tests leave in .carillon contain payloads. */

const dir = mkdtempSync(join(tmpdir(), "carillon-state-"));
const before = process.umask(0o022);
afterAll(() => {
  process.umask(before);
  rmSync(dir, { recursive: true });
});

const mode = (name: string) => statSync(join(dir, name)).mode & 0o777;

it("other users of the machine cannot enter a state folder, new or old", () => {
  privateDir(join(dir, "new"));
  expect(mode("new")).toBe(0o700);
  mkdirSync(join(dir, "old"), { mode: 0o755 });
  privateDir(join(dir, "old"));
  expect(mode("old")).toBe(0o700);
  privateDir(join(dir, "old"));
  expect(mode("old")).toBe(0o700);
});
