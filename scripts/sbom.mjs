// npm run sbom [-- <file>]: writes the software bill of materials (CycloneDX JSON), by default .carillon/sbom.cdx.json.
import { writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { main, root, say, stateDir } from "./lib/project.mjs";
import { makeSbom } from "./lib/sbom.mjs";

await main(async () => {
  const file = process.argv[2] ?? join(stateDir(), "sbom.cdx.json");
  const sbom = await makeSbom();
  writeFileSync(file, `${JSON.stringify(sbom, null, 2)}\n`);
  say(`${sbom.components.length} components in ${relative(root, file)}`);
  return 0;
});
