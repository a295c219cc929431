import { type RefObject, useEffect, useLayoutEffect, useRef } from "react";

type Keys = Readonly<Record<string, (event: KeyboardEvent) => void>>;

/**
 * Calls a handler for a key, unless a field has the focus, a dialog is open, or a modifier is held. `Ctrl k`: with Control or Command, in
 * fields too.
 */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const isHeld = event.ctrlKey || event.metaKey;
      const handler = latest.current[isHeld ? `Ctrl ${event.key}` : event.key];
      if (!handler || event.altKey || event.defaultPrevented) return;
      const target = event.target as HTMLElement;
      if (!isHeld && target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]"))
        return;
      if (document.querySelector("[role=dialog], [role=menu]:not([hidden])")) return;
      event.preventDefault();
      handler(event);
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, []);
}

/**
 * Keeps what is typed while a dialog opens whose field is not there yet: without it, it would be lost, or taken for the keys of the page.
 * @param opens whether the dialog is open, or about to be
 */
export function useTypedAhead(opens: boolean): RefObject<string> {
  const typed = useRef("");
  // At once: the next key may already come before the browser paints.
  useLayoutEffect(() => {
    typed.current = "";
    if (!opens) return;
    const listen = (event: KeyboardEvent) => {
      const { key, target, ctrlKey, metaKey, altKey } = event;
      if (ctrlKey || metaKey || altKey || (target as HTMLElement).closest("[role=dialog]")) return;
      if (key === "Backspace") typed.current = typed.current.slice(0, -1);
      else if (key.length === 1) typed.current += key;
      else if (key === "Enter") typed.current += "\n";
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    document.addEventListener("keydown", listen, true);
    return () => document.removeEventListener("keydown", listen, true);
  }, [opens]);
  return typed;
}

/** Moves the focus among the rows of a page: the links with `data-row`. @returns the row that has it then */
export function moveRow(by: 1 | -1): HTMLElement | undefined {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")].filter(
    (row) => row.closest(".beside") === null,
  );
  const has = (row: HTMLElement) => (row.closest("li, tr") ?? row).contains(document.activeElement);
  const focused = rows.findLastIndex(has);
  const at = focused === -1 ? rows.findIndex((row) => row.ariaCurrent !== null) : focused;
  const next = at === -1 ? (by === 1 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by));
  rows[next]?.focus();
  return rows[next];
}

/** Presses the button that names a key as its own, beside the list if there is one; none of a former answer. */
export function pressButton(key: string): void {
  const buttons = [...document.querySelectorAll<HTMLElement>(`main [aria-keyshortcuts="${key}"]`)];
  buttons.findLast((button) => button.closest("[inert]") === null)?.click();
}
