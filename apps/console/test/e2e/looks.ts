import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Visit } from "./world.js";

/** Folder for screenshots of each page in each size and theme. Default: none are taken. */
const PICTURES = process.env["CARILLON_SCREENSHOTS"];
const FOLDER = fileURLToPath(new URL("../../../../.carillon/screenshots/", import.meta.url));

/** Each theme and each size once: contrast depends on the theme, all else on the size. Pictures are taken of all four. */
const LOOKS = (["phone", "desktop"] as const).flatMap((size) =>
  (["light", "dark"] as const)
    .map((colorScheme) => ({ size, colorScheme, isChecked: (size === "phone") === (colorScheme === "dark") }))
    .filter(({ isChecked }) => isChecked || PICTURES),
);

const WIDTHS = [320, 768, 1_024, 1_440, 2_560];
/** Gives all texts the widest of the usual fonts, which some systems have as their own. */
const WIDEST_FONT = "document.documentElement.style.setProperty('--font', 'DejaVu Sans, Verdana')";

/** Script for the page: texts that overlap others, as far as they are seen. */
const OVERLAPS = `(() => {
  const seen = [];
  const clips = new Map([[null, { left: -Infinity, right: Infinity, top: -Infinity, bottom: Infinity }]]);
  const within = (a, b) => ({
    left: Math.max(a.left, b.left), right: Math.min(a.right, b.right), top: Math.max(a.top, b.top), bottom: Math.min(a.bottom, b.bottom),
  });
  const clipOf = (of) => {
    if (clips.has(of)) return clips.get(of);
    const outer = clipOf(of.parentElement);
    const clip = getComputedStyle(of).overflowX === "visible" ? outer : within(outer, of.getBoundingClientRect());
    clips.set(of, clip);
    return clip;
  };
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { currentNode: node } = texts;
    const of = node.parentElement;
    if (node.data.trim() === "" || !of.checkVisibility() || of.closest("svg, .unseen, .u-wrap, option, textarea")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      const { left, right, top, bottom } = within(clipOf(of), rect);
      if (right - left > 2 && bottom - top > 2) seen.push({ node, text: node.data, left, right, top, bottom });
    }
  }
  const found = [];
  seen.sort((a, b) => a.top - b.top);
  for (const [i, a] of seen.entries()) for (let n = i + 1; n < seen.length && seen[n].top < a.bottom; n++) {
    const b = seen[n];
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (a.node !== b.node && wide > 2 && tall > 4) found.push(a.text + " | " + b.text);
  }
  return found.slice(0, 3);
})()`;

/** Script for the page: times that are not shown as the page shows times, outside of what is code, and of hints, which say how to type one. */
const RAW_TIMES = `(() => {
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const found = [];
  while (texts.nextNode()) {
    const { data, parentElement: of } = texts.currentNode;
    if (/\\d{4}-\\d\\d-\\d\\dT\\d/.test(data) && !of.closest("pre, code, textarea, .mono, .field .soft")) found.push(data);
  }
  return found;
})()`;

/** Opens each page once and shows it in each look. @returns what is wrong: too wide, texts that overlap, raw times, or a serious finding of axe */
export async function lookAt(
  { page, go, show, axe }: Visit,
  pages: Record<string, string>,
): Promise<string[]> {
  const wrong: string[] = [];
  if (PICTURES) mkdirSync(FOLDER, { recursive: true });
  for (const [name, path] of Object.entries(pages)) {
    await show({ size: "phone", colorScheme: "light" });
    await go(path);
    for (const look of LOOKS) {
      const shown = `${name}-${look.size}-${look.colorScheme}`;
      await show(look);
      if (look.isChecked) wrong.push(...(await axe()).map((finding) => `${shown}: ${finding}`));
      if (PICTURES) await page.screenshot({ path: join(FOLDER, `${shown}.png`), fullPage: true });
    }
    const raw = await page.evaluate<string[]>(RAW_TIMES);
    wrong.push(...raw.map((text) => `${name}: ${text}`));
    await page.evaluate(WIDEST_FONT);
    for (const width of WIDTHS) {
      await show({ size: { width, height: 900 } });
      const wide = await page.evaluate<number>(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth",
      );
      if (wide > 0) wrong.push(`${name}, ${width} px: ${wide} px too wide`);
      const found = await page.evaluate<string[]>(OVERLAPS);
      wrong.push(...found.map((texts) => `${name}, ${width} px: ${texts}`));
    }
  }
  await show({ size: "desktop", colorScheme: "light" });
  return wrong;
}
