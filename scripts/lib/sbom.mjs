import { readJson, readLock } from "./lock-file.mjs";
import { root, Trouble } from "./project.mjs";
import { run } from "./run.mjs";

const DEVELOPMENT = "cdx:npm:package:development";

/**
 * The software bill of materials of the lock file, CycloneDX. Needs no network. Development dependencies are marked as
 * such.
 */
export async function makeSbom() {
  const args = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only", "--loglevel", "error"];
  const { code, output } = await run("npm", args, { cwd: root, capture: true, timeoutMs: 60_000 });
  // Warnings about the user's settings may precede it.
  const text = output.slice(Math.max(0, output.indexOf("{")));
  if (code !== 0) throw new Trouble(`npm sbom failed: ${output.trim().slice(0, 500)}`);
  const sbom = JSON.parse(text);
  // npm uses the name of the folder as that of the project.
  sbom.metadata.component.name = readJson("package.json").name;
  // npm marks both copies of a version as development if only one of them is.
  const used = new Set(
    readLock()
      .foreign.filter(({ development }) => !development)
      .map(({ name, version }) => `${name}@${version}`),
  );
  for (const component of sbom.components.filter((one) => used.has(one["bom-ref"])))
    component.properties = component.properties?.filter(({ name }) => name !== DEVELOPMENT);
  return sbom;
}
