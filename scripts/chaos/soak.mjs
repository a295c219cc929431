// npm run soak: half an hour under load and faults. Nothing is lost or run twice, the memory of nodes stays flat, and
// the data in Redis stays bounded. See docs/chaos.md.
import { main } from "../lib/project.mjs";
import { setUp } from "../lib/setup.mjs";

await main(async () => {
  await setUp();
  const { soak } = await import("./soak-command.mjs");
  return soak(process.argv.slice(2));
});
process.exit();
