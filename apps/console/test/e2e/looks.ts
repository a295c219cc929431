import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Visit } from "./world.js";

/** Folder for screenshots of each page in each size and theme. Default: none are taken. */
const PICTURES = process.env["CARILLON_SCREENSHOTS"];
const FOLDER = fileURLToPath(new URL("../../../../.carillon/screenshots/", import.meta.url));

const LOOKS = (["phone", "desktop"] as const).flatMap((size) =>
  (["light", "dark"] as const).map((colorScheme) => ({ size, colorScheme })),
);

/** Opens each page once and shows it in each look. @returns what is wrong: too wide, or a serious finding of axe */
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
      const wide = await page.evaluate<number>(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth",
      );
      if (wide > 0) wrong.push(`${shown}: ${wide} px too wide`);
      // Each theme and each size once: contrast depends on the theme, all else on the size.
      const checked = (look.size === "phone") === (look.colorScheme === "dark");
      if (checked) wrong.push(...(await axe()).map((finding) => `${shown}: ${finding}`));
      if (PICTURES) await page.screenshot({ path: join(FOLDER, `${shown}.png`), fullPage: true });
    }
  }
  await show({ size: "desktop", colorScheme: "light" });
  return wrong;
}
