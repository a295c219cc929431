// npm run chaos: see docs/chaos.md. Its imports must be installed and built first.
import { main } from "../lib/project.mjs";
import { setUp } from "../lib/setup.mjs";

const args = process.argv.slice(2);
/** For the tests, where everything is installed and built. */
const ready = args.includes("--ready");

await main(async () => {
  if (!ready) await setUp();
  const { chaos } = await import("./command.mjs");
  return chaos(args.filter((arg) => arg !== "--ready"));
});
process.exit();
