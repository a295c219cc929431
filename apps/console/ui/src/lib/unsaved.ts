/** Forms into which something was typed that is not stored yet. */
export const unsaved = new Set<object>();

export function hasUnsaved(): boolean {
  return unsaved.size > 0;
}

/** Ends the question: the text is stored, or not wanted any more. */
export function forget(): void {
  unsaved.clear();
}

/** Whether what is shown may be left: nothing is lost, or the person agrees. @param kept forms that stay */
export function mayLeave(kept: ReadonlySet<object> = new Set()): boolean {
  const left = [...unsaved].filter((form) => !kept.has(form));
  if (left.length > 0 && !window.confirm("What you have entered is not stored. Leave it?")) return false;
  for (const form of left) unsaved.delete(form);
  return true;
}

addEventListener("beforeunload", (event) => {
  if (hasUnsaved()) event.preventDefault();
});
// The router hears of the back button too late. Not all browsers have this.
(window as { navigation?: EventTarget }).navigation?.addEventListener("navigate", (event) => {
  const { navigationType } = event as Event & { navigationType?: string };
  if (navigationType === "traverse" && event.cancelable && !mayLeave()) event.preventDefault();
});
