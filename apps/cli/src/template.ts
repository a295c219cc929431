import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { misuse } from "./failure.js";

/** Beside `bundle` as well as `dist`. */
const TEMPLATE = new URL("../template/", import.meta.url);

/** Versions of foreign packages with which the template is tested. */
const OTHERS = { tsx: "^4.23.15", zod: "^4.6.7" };
const DEV_OTHERS = { "@types/node": "^20.19.43", typescript: "^7.0.2" };

/** Writes an app into a new or empty folder. @throws `INVALID_OPTION` if something is in it */
export function writeApp(path: string): void {
  const folder = resolve(path);
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw misuse("folder", `${path} is not empty.`, "Name one that does not exist yet.");
  mkdirSync(folder, { recursive: true });
  cpSync(TEMPLATE, folder, { recursive: true });
  // npm packs no file of this name.
  writeFileSync(join(folder, ".gitignore"), "node_modules\n");
  writeFileSync(
    join(folder, "package.json"),
    `${JSON.stringify(manifest(basename(folder)), undefined, 2)}\n`,
  );
}

function manifest(name: string): object {
  const { version } = JSON.parse(readFileSync(new URL("../package.json", TEMPLATE), "utf8")) as {
    version: string;
  };
  const ours = (...names: string[]) =>
    Object.fromEntries(names.map((one) => [`@carillon/${one}`, `^${version}`]));
  return {
    name:
      name
        .toLowerCase()
        .replace(/[^a-z0-9._-]+/g, "-")
        .replace(/^[._-]+/, "") || "app",
    private: true,
    type: "module",
    scripts: {
      dev: "carillon dev src/tasks.ts",
      start: "tsx src/main.ts",
      test: "node --import tsx --test test/*.test.ts",
      check: "tsc",
    },
    dependencies: { ...ours("scheduler", "sdk"), ...OTHERS },
    devDependencies: { ...ours("cli", "testing"), ...DEV_OTHERS },
    engines: { node: ">=20.19" },
  };
}
