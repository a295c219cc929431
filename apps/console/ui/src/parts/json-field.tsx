import { useState } from "react";
import { words } from "../words.js";
import { Field } from "./confirm.js";

interface Props {
  label: string;
  hint?: string;
  /** The first value; undefined: the field is empty. */
  value: unknown;
  onEdit: (to: unknown) => void;
}

/** Any JSON. What is typed may be invalid meanwhile: `onEdit` gets valid values only, and the form is not submitted. */
export function JsonField({ label, hint, value, onEdit }: Props) {
  const [text, setText] = useState(() => JSON.stringify(value, null, 2) ?? "");
  const [wrong, setWrong] = useState(false);
  const shown = wrong ? words.notJson : hint;
  return (
    <Field label={label} {...(shown === undefined ? {} : { hint: shown })}>
      <textarea
        className="input"
        spellCheck={false}
        required
        aria-invalid={wrong}
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          const is = parsed(target.value);
          setWrong(is === undefined);
          target.setCustomValidity(is === undefined ? words.notJson : "");
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
