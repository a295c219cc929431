// Writes texts.js: the texts of all Lua files as one module, so that nothing is read from disk at run time and any bundler works.
// The build runs this file, and so does each test run. Git ignores texts.js.
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

const SOURCES = join(import.meta.dirname, "..", "src");
const TARGET = join(import.meta.dirname, "texts.js");

/** Scripts by their name, libraries as `lib/name`, wherever their folder is. */
const files = new Map();
for (const file of readdirSync(SOURCES, { recursive: true }).map(String)) {
  if (!file.endsWith(".lua")) continue;
  const folder = basename(dirname(file));
  const name = `${folder === "lib" ? "lib/" : ""}${basename(file)}`;
  if (files.has(name)) throw new Error(`${file} and ${files.get(name)} have the same name.`);
  files.set(name, file);
}
const entries = [...files]
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(
    ([name, file]) =>
      `  ${JSON.stringify(name)}: ${JSON.stringify(readFileSync(join(SOURCES, file), "utf8"))},\n`,
  );
const wanted = `// Made by generate.mjs from the Lua files.\nexport const TEXTS = {\n${entries.join("")}};\n`;

if (present() !== wanted) {
  // Renamed into place: another process may be reading it.
  writeFileSync(`${TARGET}.${process.pid}`, wanted);
  renameSync(`${TARGET}.${process.pid}`, TARGET);
}

function present() {
  try {
    return readFileSync(TARGET, "utf8");
  } catch {
    return undefined;
  }
}
