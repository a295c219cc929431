import { isDeepStrictEqual } from "node:util";
import { installed, readJson, readLock } from "../lib/lock-file.mjs";
import { root } from "../lib/project.mjs";
import { run } from "../lib/run.mjs";
import { makeSbom } from "../lib/sbom.mjs";

/** Allowed in what users install. */
const LICENCES = [
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
  "MIT-0",
  // The licence of fonts.
  "OFL-1.1",
];
/** Allowed only for building and testing. */
const DEVELOPMENT_LICENCES = [...LICENCES, "MPL-2.0", "Python-2.0", "Unlicense"];
/** Packages without a licence in the manifest; a person has read it. */
const READ = { busboy: "MIT", spawndamnit: "MIT", streamsearch: "MIT" };

/**
 * Packages that may run code during installation, with the reason. Everything works without (`npm ci
 * --ignore-scripts`).
 */
const INSTALL_SCRIPTS = {
  esbuild: "checks its native build",
  "msgpackr-extract": "chooses a native build for BullMQ's msgpackr",
};
const AT_INSTALL = ["preinstall", "install", "postinstall"];

/**
 * Packages that must have one exact version wherever they are named, because we rely on their internals or their exact
 * behaviour.
 */
const PINNED = ["bullmq", "redlock", "@biomejs/biome"];

const HASH = /^sha512-[A-Za-z0-9+/]{86}==$/;
const VERSION = /^\d+\.\d+\.\d+(-[\w.-]+)?(\+[\w.-]+)?$/;

const KINDS = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"];

/** Checks of third-party packages: known, unchanged, licensed, no install scripts. Needs no network. */
export const supplyChainSteps = /** @type {import("../lib/run.mjs").Step[]} */ ([
  ["lock file", checkLockFile],
  ["origin of packages", () => verdict(originProblems(readLock()))],
  ["install scripts", () => verdict(scriptProblems(readLock(), installed))],
  ["licences", () => verdict(licenceProblems(readLock(), installed))],
  ["pinned versions", () => verdict(pinProblems(readLock()))],
  ["SBOM", checkSbom],
]);

function verdict(problems) {
  return { code: problems.length === 0 ? 0 : 1, output: problems.join("\n") };
}

/** npm's own check, then what npm accepts: a range that was changed in a manifest, or removed from it. */
async function checkLockFile() {
  const args = ["ls", "--all", "--package-lock-only", "--json", "--loglevel", "error"];
  const { code, output } = await run("npm", args, { cwd: root, capture: true, timeoutMs: 60_000 });
  const tree = JSON.parse(output.slice(Math.max(0, output.indexOf("{"))) || "{}");
  const said = code === 0 ? [] : (tree.problems ?? [output]);
  const lock = readLock();
  return verdict([
    ...said,
    ...lock.ours.flatMap(([at, entry]) => manifestProblems(at, entry, readJson(at, "package.json"))),
  ]);
}

function manifestProblems(at, entry, manifest) {
  return ["version", ...KINDS]
    .filter((field) => !isDeepStrictEqual(entry[field] ?? {}, manifest[field] ?? {}))
    .map((field) => `${at || "."}: ${field} of package.json and package-lock.json differ. Run npm install.`);
}

/** Each package comes from the user's registry only, with a hash, not from a URL. */
export function originProblems({ foreign, links }) {
  const wrong = foreign.flatMap(({ at, version, resolved, integrity }) => [
    ...(resolved === undefined ? [] : [`${at}: resolved names an address: ${resolved}`]),
    ...(HASH.test(integrity ?? "") ? [] : [`${at}: no sha512 integrity`]),
    ...(VERSION.test(version ?? "") ? [] : [`${at}: ${version} is no version`]),
  ]);
  const outside = links.filter(
    ([, { resolved }]) => !/^(apps|packages|scripts)\/[\w-]+$/.test(resolved ?? ""),
  );
  return [...wrong, ...outside.map(([at, { resolved }]) => `${at}: links to ${resolved}`)];
}

export function scriptProblems({ foreign }, manifestOf) {
  return foreign.flatMap(({ at, name, hasInstallScript }) => {
    const scripts = manifestOf(at)?.scripts ?? {};
    const runs = AT_INSTALL.filter((script) => scripts[script] !== undefined);
    if ((!hasInstallScript && runs.length === 0) || Object.hasOwn(INSTALL_SCRIPTS, name)) return [];
    return [`${at}: runs code when it is installed (${runs.join(", ") || "says the lock file"}).`];
  });
}

export function licenceProblems({ foreign }, manifestOf) {
  return foreign.flatMap((entry) => {
    const { at, name, development } = entry;
    const manifest = manifestOf(at);
    if (manifest && manifest.version !== entry.version) {
      return [`${at}: ${manifest.version} is installed, ${entry.version} is in the lock file. Run npm ci.`];
    }
    const licence = READ[name] ?? textOf(manifest?.license ?? entry.license);
    const allowed = development ? DEVELOPMENT_LICENCES : LICENCES;
    return isAllowed(licence, allowed) ? [] : [`${at}: ${licence ?? "no licence"} is not on the list.`];
  });
}

function textOf(licence) {
  return typeof licence === "object" ? licence?.type : licence;
}

/** `A OR B` needs one of them, `A AND B` both. More complex expressions need a person. */
function isAllowed(expression, allowed) {
  const words = (expression ?? "").replace(/^\((.*)\)$/, "$1");
  const parts = (text, by) => text.split(` ${by} `);
  return parts(words, "OR").some((choice) => parts(choice, "AND").every((one) => allowed.includes(one)));
}

/** Whether the package is installed under its own name. Aliases such as `bullmq-5` are used by tests only. */
function isNamed(at, name) {
  return at.endsWith(`node_modules/${name}`);
}

export function pinProblems({ ours, foreign }) {
  return PINNED.flatMap((name) => {
    const versions = [
      ...new Set(foreign.filter(({ at }) => isNamed(at, name)).map(({ version }) => version)),
    ];
    const many = versions.length === 1 ? [] : [`${name}: ${versions.join(", ") || "none"} in the lock file.`];
    const loose = ours.flatMap(([at, entry]) =>
      KINDS.map((kind) => entry[kind]?.[name])
        .filter((range) => range !== undefined && range !== versions[0])
        .map((range) => `${at || "."}: asks for ${name} ${range}, not ${versions[0]}.`),
    );
    return [...many, ...loose];
  });
}

async function checkSbom() {
  const { bomFormat, components } = await makeSbom();
  return verdict([
    ...(bomFormat === "CycloneDX" ? [] : [`bomFormat is ${bomFormat}`]),
    ...sbomProblems(readLock(), components),
  ]);
}

/**
 * The SBOM has every package that is present at run time, with version and hash, and not marked as a development
 * dependency.
 */
export function sbomProblems({ foreign }, components) {
  const known = new Map(components.map((component) => [component["bom-ref"], component]));
  return foreign
    .filter(({ development }) => !development)
    .flatMap(({ name, version }) => {
      const component = known.get(`${name}@${version}`);
      if (component === undefined) return [`${name}@${version} is missing.`];
      const development = component.properties?.some((one) => one.name === "cdx:npm:package:development");
      if (development) return [`${name}@${version} is called a thing of development.`];
      return component.hashes?.length > 0 ? [] : [`${name}@${version} has no hash.`];
    });
}
