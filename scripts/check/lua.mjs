import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../lib/project.mjs";

const LUA = join(root, "packages", "store", "lua");
const SCRIPTS = join(root, "packages", "store", "src", "scripts.ts");

/** Scripts are read by name at run time: a wrong name, or a file that nothing loads, shows up here. */
export async function checkLuaNames() {
  const source = readFileSync(SCRIPTS, "utf8");
  const present = readdirSync(LUA, { recursive: true })
    .map(String)
    .filter((file) => file.endsWith(".lua"))
    .sort();
  const used = [...libraries(source), ...transitions(source)].sort();
  const problems = [
    ...present.filter((file) => !used.includes(file)).map((file) => `${file}: nothing loads it.`),
    ...used.filter((file) => !present.includes(file)).map((file) => `${file}: loaded, but not there.`),
    ...present
      .filter((file) => !hasHeader(file))
      .map((file) => `${file}: its first line is not a comment that says what it does.`),
  ];
  if (used.length === 0) problems.push(`No script names were found in ${SCRIPTS}.`);
  return { code: problems.length === 0 ? 0 : 1, output: problems.join("\n") };
}

/** `read("lib/index.lua")` */
function libraries(source) {
  return [...source.matchAll(/read\("([\w/-]+\.lua)"\)/g)].map((match) => match[1]);
}

/** The keys of `const SCRIPTS = { claim: […], "read-due": […] }`. */
function transitions(source) {
  const table = /const SCRIPTS = \{([\s\S]*?)\n\}/.exec(source)?.[1] ?? "";
  return [...table.matchAll(/^ {2}"?([\w-]+)"?:/gm)].map((match) => `${match[1]}.lua`);
}

function hasHeader(file) {
  return readFileSync(join(LUA, file), "utf8").startsWith("--");
}
