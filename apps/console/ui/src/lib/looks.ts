import { kept } from "./store.js";

/** Colours of the pages. */
export const theme = kept("carillon-theme", ["system", "light", "dark"], "theme");
/** Height of rows. */
export const density = kept("carillon-rows", ["roomy", "dense"], "rows");

/** Height of a table's row in px, as the tokens have it. */
export function useRowHeight(): number {
  density.useValue();
  const style = getComputedStyle(document.documentElement);
  return Math.round(Number.parseFloat(style.getPropertyValue("--row")) * Number.parseFloat(style.fontSize));
}
