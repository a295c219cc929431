import { useState } from "react";
import { Field } from "./confirm.js";
import type { FieldPath } from "./form.js";

interface Props {
  label: string;
  hint?: string | undefined;
  /** As of a `Field`. */
  path?: FieldPath | undefined;
  /** Undefined: the field is empty. */
  value: unknown;
  onEdit: (to: unknown) => void;
}

/**
 * Any JSON. What is typed may be invalid meanwhile: `onEdit` gets valid values only, and the form is not submitted. A value that comes from
 * elsewhere replaces what was typed.
 */
export function JsonField({ label, hint, path, value, onEdit }: Props) {
  const [typed, setTyped] = useState({ text: "", of: "" });
  const text = typed.of === JSON.stringify(value) ? typed.text : (JSON.stringify(value, null, 2) ?? "");
  const isWrong = text !== "" && parsed(text) === undefined;
  const shown = isWrong ? "This is not JSON yet." : hint;
  return (
    <Field label={label} hint={shown} path={path}>
      <textarea
        className="input"
        spellCheck={false}
        required
        aria-invalid={isWrong}
        ref={(field) => field?.setCustomValidity(isWrong ? "This is not JSON yet." : "")}
        value={text}
        onChange={({ target }) => {
          const is = parsed(target.value);
          setTyped({ text: target.value, of: JSON.stringify(is ?? value) });
          if (is !== undefined) onEdit(is);
        }}
      />
    </Field>
  );
}

/** Undefined: not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
