import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { VERSION } from "@carillon/scheduler";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { installPacked, published } from "./installed.js";

const execute = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const PROGRAM = new URL("consumer/main.ts", import.meta.url);
const PACKAGES = published(/^packages\//);

/** The TypeScript version that `overrides` in package.json gives to this tool: one from before the native compiler. */
const attw = createRequire(import.meta.url).resolve("@arethetypeswrong/core");
const COMPILERS = {
  "5.9": createRequire(attw).resolve("typescript/lib/tsc.js"),
  "7.0": join(root, "node_modules/typescript/bin/tsc"),
};
type Compiler = keyof typeof COMPILERS;

const STRICT = {
  target: "es2022",
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  types: ["node"],
};

/** The older compiler needs seconds for each project. */
const PATIENCE = 300_000;

let home = "";
const modules = () => join(home, "node_modules");

beforeAll(async () => {
  home = await installPacked(PACKAGES, ["@types/node"]);
}, PATIENCE);
afterAll(() => rm(home, { recursive: true, force: true }));

test("the packages contain no private key, no compiler files, and no code that depends on its path", async () => {
  const folder = join(modules(), "@carillon");
  const files = (await readdir(folder, { recursive: true })).map(String);
  expect(files).toContain(join("store", "lua", "texts.js"));
  expect(files.filter((file) => /\.(key|tsbuildinfo)$/.test(file))).toEqual([]);
  for (const file of files.filter((name) => name.endsWith(".js"))) {
    const text = await readFile(join(folder, file), "utf8");
    expect(text.match(/import\.meta|PRIVATE KEY/), file).toBeNull();
  }
});

/** Ways to compile a project: by which compiler, and with which type of package and options. */
type Way = [compiler: Compiler, name: string, type: string, options: object];

const WAYS: Way[] = [
  ["7.0", "ESM, nodenext", "module", { module: "nodenext" }],
  ["7.0", "CommonJS, nodenext", "commonjs", { module: "nodenext" }],
  ["7.0", "bundler", "module", { module: "esnext", moduleResolution: "bundler" }],
  ["5.9", "ESM, nodenext", "module", { module: "nodenext" }],
  ["5.9", "CommonJS, node20", "commonjs", { module: "node20" }],
  ["5.9", "CommonJS, node10", "commonjs", { module: "commonjs", moduleResolution: "node10" }],
];
const REFUSED: Way = ["5.9", "CommonJS, node16", "commonjs", { module: "node16" }];

const projectOf = ([compiler, name]: Way) => `${compiler} ${name}`.replace(/\W+/g, "-");

/** Compiles projects of one program, all of a compiler in one process. Returns its messages about each project. */
async function compile(ways: readonly Way[]): Promise<(way: Way) => string[]> {
  for (const way of ways) {
    const [compiler, , type, options] = way;
    const project = join(home, projectOf(way));
    await mkdir(project, { recursive: true });
    await cp(PROGRAM, join(project, "main.ts"));
    await writeFile(join(project, "package.json"), JSON.stringify({ type }));
    // The native compiler checks all declarations at once, with the same result for ours.
    const compilerOptions = { ...STRICT, skipLibCheck: compiler === "5.9", ...options };
    await writeFile(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["main.ts"] }));
  }
  let output = "";
  for (const [compiler, file] of Object.entries(COMPILERS)) {
    const projects = ways.filter(([one]) => one === compiler).map(projectOf);
    if (projects.length === 0) continue;
    const args = [file, "-b", "-f", "--pretty", "false", ...projects];
    const { stdout } = await execute(process.execPath, args, { cwd: home }).catch((error) => error);
    output += stdout;
  }
  // An indented line continues the one before. A message about declarations concerns all ways.
  const lines = output.split("\n").filter((line) => /^\S/.test(line));
  const concerns = (way: Way) => (line: string) => line.startsWith(`${projectOf(way)}/`);
  return (way) => lines.filter((line) => concerns(way)(line) || !ways.some((one) => concerns(one)(line)));
}

/** Runs of the same text in the same kind of package have the same result. */
const results = new Map<string, Promise<unknown>>();

async function run(way: Way): Promise<unknown> {
  const program = join(home, projectOf(way), "main.js");
  const key = `${way[2]} ${await readFile(program, "utf8")}`;
  const env = { ...process.env, NODE_OPTIONS: "" };
  const result =
    results.get(key) ??
    execute(process.execPath, [program], { env }).then(({ stdout }) => JSON.parse(stdout) as unknown);
  results.set(key, result);
  return result;
}

describe("a program in TypeScript compiles, and runs", () => {
  let problems: (way: Way) => string[];
  beforeAll(async () => {
    problems = await compile([...WAYS, REFUSED]);
  }, PATIENCE);

  test.each(WAYS.map((way): [string, Way] => [`${way[0]}, ${way[1]}`, way]))(
    "TypeScript %s",
    async (_title, way) => {
      expect(problems(way)).toEqual([]);
      expect(await run(way)).toEqual({ result: { rang: 3 }, version: VERSION, time: true });
    },
    PATIENCE,
  );

  test("CommonJS with node16 is refused by TypeScript alone, as docs/bundlers.md says", async () => {
    const imports = (await readFile(PROGRAM, "utf8")).match(/"@carillon\//g);
    expect(problems(REFUSED).join("\n").match(/TS\d+/g)).toEqual(imports?.map(() => "TS1479"));
    expect(await run(REFUSED)).toMatchObject({ result: { rang: 3 } });
  });

  test(
    "with ioredis 5",
    async () => {
      const ioredis = join(modules(), "ioredis");
      await rm(ioredis);
      await symlink(join(root, "node_modules/ioredis-5"), ioredis);
      const [way] = WAYS as [Way];
      expect((await compile([way]))(way)).toEqual([]);
      results.clear();
      expect(await run(way)).toMatchObject({ result: { rang: 3 } });
    },
    PATIENCE,
  );
});
