import type { ComponentProps } from "react";

interface Props extends ComponentProps<"button"> {
  /** Further classes. */
  look?: string;
}

export function Button({ look, ...props }: Props) {
  return <button type="button" className={look ? `button ${look}` : "button"} {...props} />;
}

interface ChipsProps<Name extends string> {
  names: readonly Name[];
  text: (name: Name) => string;
  /** Undefined: none is pressed. */
  chosen: Name | undefined;
  disabled?: readonly Name[];
  onPick: (name: Name) => void;
}

/** Buttons of which one is pressed. */
export function Chips<Name extends string>({ names, text, chosen, disabled, onPick }: ChipsProps<Name>) {
  return names.map((name) => (
    <button
      key={name}
      type="button"
      className="chip"
      aria-pressed={chosen === name}
      disabled={disabled?.includes(name)}
      onClick={() => onPick(name)}
    >
      {text(name)}
    </button>
  ));
}
