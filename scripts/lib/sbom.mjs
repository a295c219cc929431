import { readJson } from "./lock-file.mjs";
import { root, Trouble } from "./project.mjs";
import { run } from "./run.mjs";

/** The software bill of materials of the lock file, CycloneDX. Needs no network. What is for development only says so. */
export async function makeSbom() {
  const args = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only", "--loglevel", "error"];
  const { code, output } = await run("npm", args, { cwd: root, capture: true, timeoutMs: 60_000 });
  // Warnings about the user's own settings may stand before it.
  const text = output.slice(Math.max(0, output.indexOf("{")));
  if (code !== 0) throw new Trouble(`npm sbom failed: ${output.trim().slice(0, 500)}`);
  const sbom = JSON.parse(text);
  // npm takes the folder's name for the project's.
  sbom.metadata.component.name = readJson("package.json").name;
  return sbom;
}
