import { type ComponentProps, createElement, useEffect, useRef } from "react";

const STILL = matchMedia("(prefers-reduced-motion: reduce)");
const FADE_MS = 800;

type Props<As extends "li" | "tr"> = ComponentProps<As> & {
  as: As;
  /** Its state as one text; undefined: it does not change. */
  state: string | undefined;
};

/** A row that fades once when its state becomes another one while it is shown. */
export function Changing<As extends "li" | "tr">({ as, state, ...props }: Props<As>) {
  const row = useRef<HTMLElement>(null);
  const shown = useRef(state);
  useEffect(() => {
    if (shown.current === state) return;
    shown.current = state;
    if (!STILL.matches) row.current?.animate({ backgroundColor: ["var(--changed)", "transparent"] }, FADE_MS);
  }, [state]);
  return createElement(as, { ...props, ref: row });
}
