#!/usr/bin/env node
// npm links this file when it installs, before anything is built.
import { statSync } from "node:fs";
import * as module from "node:module";

// Node.js 22.8 and newer keep the compiled modules for the next start.
module.enableCompileCache?.();
const builtAt = (path) => statSync(new URL(path, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0;
// In a checkout, `tsc -b` makes modules that are newer than the bundle.
const sources = ["..", ...["core", "store", "sdk", "ops"].map((name) => `../../../packages/${name}`)];
const changed = Math.max(...sources.map((folder) => builtAt(`${folder}/dist/.tsbuildinfo`)));
await import(builtAt("../bundle/main.js") > changed ? "../bundle/main.js" : "../dist/main.js");
