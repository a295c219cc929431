#!/usr/bin/env node
import { run } from "./program.js";

// A closed stderr must not end the process either.
process.stderr.on("error", () => {});
const code = await run(process.argv.slice(2), process);
// Flushes all output first. Without the exit, ioredis keeps the process for two seconds when it closes a connection
// that never opened.
for (const stream of [process.stdout, process.stderr])
  await new Promise((resolve) => stream.write("", resolve));
process.exit(code);
