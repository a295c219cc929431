#!/usr/bin/env node
// npm links this file when it installs, before anything is built.
import * as module from "node:module";

// Node.js 22.8 and newer keep the compiled modules for the next start.
module.enableCompileCache?.();
await import("../bundle/main.js");
