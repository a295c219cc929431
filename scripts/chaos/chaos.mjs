// npm run chaos: see docs/chaos.md. What it imports must be installed and built first.
import { main } from "../lib/project.mjs";
import { setUp } from "../lib/setup.mjs";

await main(async () => {
  await setUp();
  const { chaos } = await import("./command.mjs");
  return chaos(process.argv.slice(2));
});
process.exit();
