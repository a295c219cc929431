import { describe, expect, it } from "vitest";
import * as check from "../../scripts/check/supply-chain.mjs";
import { readLock } from "../../scripts/lib/lock-file.mjs";

const INTEGRITY = `sha512-${"A".repeat(86)}==`;
const sound = { at: "node_modules/a", name: "a", version: "1.2.3", integrity: INTEGRITY, license: "MIT" };
const lockOf = (entry: object, rest: object = {}) => ({
  ours: [],
  links: [],
  foreign: [{ ...sound, ...entry }],
  ...rest,
});
const none = () => undefined;

/** Each of these faults must be reported: a check that finds nothing checks nothing. */
describe("the supply-chain checks", () => {
  it("accept a sound package, and ours", () => {
    for (const lock of [lockOf({}), readLock()]) {
      expect(check.originProblems(lock)).toEqual([]);
      expect(check.scriptProblems(lock, none)).toEqual([]);
      expect(check.licenceProblems(lock, none)).toEqual([]);
    }
    expect(check.pinProblems(readLock())).toEqual([]);
  });

  it.each([
    ["an address of another registry", { resolved: "https://registry.example/a-1.2.3.tgz" }],
    ["a git repository", { version: "1.2.3", resolved: "git+ssh://git@example.com/a.git#0123" }],
    ["a file", { resolved: "file:../a.tgz" }],
    ["no hash", { integrity: undefined }],
    ["a weak hash", { integrity: "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=" }],
    ["no version", { version: "git+https://example.com/a.git" }],
  ])("origin: %s", (_, entry) => {
    expect(check.originProblems(lockOf(entry))).toHaveLength(1);
  });

  it("origin: a link to a folder outside of the project", () => {
    const links = [["node_modules/a", { link: true, resolved: "../elsewhere" }]];
    expect(check.originProblems(lockOf({}, { links }))).toHaveLength(1);
  });

  it.each([
    ["said by the lock file", { hasInstallScript: true }, {}],
    ["said by the package alone", {}, { scripts: { postinstall: "node steal.js" } }],
    ["before it is installed", {}, { scripts: { preinstall: "node steal.js" } }],
  ])("an install script %s", (_, entry, manifest) => {
    expect(check.scriptProblems(lockOf(entry), () => manifest)).toHaveLength(1);
  });

  it.each([
    ["AGPL-3.0-only", 1],
    ["UNLICENSED", 1],
    [undefined, 1],
    ["MIT AND GPL-3.0-only", 1],
    // Allowed only for building and testing.
    ["MPL-2.0", 0],
  ])("the licence %s", (license, ofDevelopment) => {
    expect(check.licenceProblems(lockOf({ license }), none)).toHaveLength(1);
    const development = check.licenceProblems(lockOf({ license, development: true }), none);
    expect(development).toHaveLength(ofDevelopment);
  });

  it("a choice of licences, and the package's own licence before the lock file's", () => {
    expect(check.licenceProblems(lockOf({ license: "(MIT OR GPL-3.0-only)" }), none)).toEqual([]);
    const manifest = { version: "1.2.3", license: "GPL-3.0-only" };
    expect(check.licenceProblems(lockOf({}), () => manifest)).toHaveLength(1);
  });

  it("installed packages equal locked ones", () => {
    expect(check.licenceProblems(lockOf({}), () => ({ version: "1.2.4", license: "MIT" }))).toHaveLength(1);
  });

  it.each([
    ["a range", [["apps/a", { dependencies: { bullmq: "^6.7.0" } }]], [{ version: "6.7.0" }]],
    ["another version", [["apps/a", { devDependencies: { bullmq: "6.6.0" } }]], [{ version: "6.7.0" }]],
    ["two versions", [], [{ version: "6.7.0" }, { version: "6.6.0" }]],
    ["none", [], []],
  ])("a pinned package: %s", (_, ours, versions) => {
    const foreign = versions.map((version) => ({
      ...sound,
      at: "node_modules/bullmq",
      name: "bullmq",
      ...version,
    }));
    const told: string[] = check.pinProblems({ ours, foreign });
    expect(told.filter((line) => line.includes("bullmq"))).toHaveLength(1);
  });

  it("the SBOM: a package that is missing, of another version, without a hash, or not marked as required", () => {
    const component = { "bom-ref": "a@1.2.3", hashes: [{}], properties: [] as object[] };
    const problems = (components: object[]) => check.sbomProblems(lockOf({}), components);
    expect(problems([component])).toEqual([]);
    expect(problems([])).toHaveLength(1);
    expect(problems([{ ...component, "bom-ref": "a@1.2.4" }])).toHaveLength(1);
    expect(problems([{ ...component, hashes: [] }])).toHaveLength(1);
    const development = [{ name: "cdx:npm:package:development", value: "true" }];
    expect(problems([{ ...component, properties: development }])).toHaveLength(1);
  });
});
