import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./project.mjs";

const CHANGELOG = join(root, "CHANGELOG.md");
/** A changelog begins after this line. */
const MARK = "<!-- releases -->\n";

/** Texts of all changesets, which say what the next release changes for users. */
export function releaseNotes() {
  const folder = join(root, ".changeset");
  const files = readdirSync(folder).filter((name) => name.endsWith(".md") && name !== "README.md");
  return files
    .map((name) =>
      readFileSync(join(folder, name), "utf8")
        .replace(/^---\n[\s\S]*?\n---\n/, "")
        .trim(),
    )
    .join("\n\n");
}

/** Writes them as the newest section of the changelog, in the place of a remark that nothing is released. */
export function addToChangelog(version, notes, day = new Date().toISOString().slice(0, 10)) {
  const [head, rest = ""] = readFileSync(CHANGELOG, "utf8").split(MARK);
  const older = rest.replace(/^\nNothing is released yet\..*\n/m, "");
  writeFileSync(CHANGELOG, `${head}${MARK}\n## ${version} (${day})\n\n${notes}\n${older}`);
}
