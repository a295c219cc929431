import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pages, textOf } from "./pages.mjs";
import { root } from "./project.mjs";

/**
 * A text of a page that is true while nothing is published, and in a comment after it the one that takes its place, if any:
 * `<!-- until the first release -->`, text, `<!-- from then on`, text, `-->`.
 */
const SWITCH =
  /<!-- until the first release -->\n(?:(?!<!-- )[\s\S])*<!-- from then on(?: -->\n\n|\n([\s\S]*?)-->\n)/g;

/** A page as it is from the first release on. */
export const afterFirstRelease = (text) => text.replace(SWITCH, (_all, then = "") => then);

/** Makes all pages those of a project that is published. Does nothing from the second release on. */
export function writeFirstRelease() {
  for (const page of pages()) writeFileSync(join(root, page), afterFirstRelease(textOf(page)));
}
