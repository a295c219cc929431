import type { IconNode } from "lucide";
import { createElement } from "react";

/** An icon of Lucide in the colour of the text. The words beside it, or the label of its button, say the same. */
export function Icon({ of }: { of: IconNode }) {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true">
      {of.map(([tag, attributes], i) => createElement(tag, { key: i, ...attributes }))}
    </svg>
  );
}
