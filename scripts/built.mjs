// node scripts/built.mjs [SCRIPT [ARGUMENT...]]: installs and builds what is missing, then runs a script that needs it.
import { main } from "./lib/project.mjs";
import { run } from "./lib/run.mjs";
import { setUp } from "./lib/setup.mjs";

await main(async () => {
  await setUp();
  const [script, ...args] = process.argv.slice(2);
  return script === undefined ? 0 : (await run(process.execPath, [script, ...args])).code;
});
