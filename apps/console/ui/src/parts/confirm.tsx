import { cloneElement, type FormEvent, type ReactElement, type ReactNode, useId } from "react";
import { words } from "../words.js";
import { Dialog } from "./dialog.js";
import { ErrorNote } from "./page.js";

interface Props {
  title: string;
  /** Text of the button that acts. */
  act: string;
  danger?: boolean;
  wide?: boolean;
  /** The action: its button waits while it is in progress, and its error is shown. */
  by: { readonly isPending: boolean; readonly error: unknown };
  /** Whether it is not possible yet. */
  busy?: boolean;
  onAct: () => void;
  onClose: () => void;
  children?: ReactNode;
}

/** A dialog that asks for confirmation, then acts. It stays open until that is done, so that an error appears in it. */
export function Confirm({ title, act, danger, wide, by, busy, onAct, onClose, children }: Props) {
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!by.isPending) onAct();
  };
  return (
    <Dialog title={title} onClose={onClose} {...(wide ? { wide } : {})}>
      <form className="form" onSubmit={submit}>
        {children}
        {by.error ? <ErrorNote error={by.error} /> : null}
        <div className="actions">
          <button type="button" className="button" onClick={onClose}>
            {words.cancel}
          </button>
          <button
            type="submit"
            className={danger ? "button danger" : "button main"}
            disabled={busy}
            // Disabled, it would lose the focus.
            aria-disabled={by.isPending}
          >
            {act}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

type Described = { "aria-describedby"?: string };

/** A control with its label. The hint describes the control; it is no part of its name. */
export function Field({
  label,
  hint,
  children,
}: {
  label: string;
  hint?: string;
  children: ReactElement<Described>;
}) {
  const id = useId();
  return (
    <div className="field">
      {/* biome-ignore lint/a11y/noLabelWithoutControl: the control is the child */}
      <label>
        <span>{label}</span>
        {hint === undefined ? children : cloneElement(children, { "aria-describedby": id })}
      </label>
      {hint === undefined ? null : (
        <span id={id} className="small soft">
          {hint}
        </span>
      )}
    </div>
  );
}

interface TextProps {
  label: string;
  hint?: string;
  value: string;
  /** Most characters. Default: those of a note. */
  most?: number;
  required?: boolean;
  onSet: (to: string) => void;
}

/** A line of text with its label. */
export function TextField({ label, hint, most = 500, onSet, ...input }: TextProps) {
  return (
    <Field label={label} {...(hint === undefined ? {} : { hint })}>
      <input className="input" maxLength={most} onChange={(event) => onSet(event.target.value)} {...input} />
    </Field>
  );
}

export function Check({
  label,
  checked,
  onSet,
}: {
  label: string;
  checked: boolean;
  onSet: (to: boolean) => void;
}) {
  return (
    <label className="check">
      <input type="checkbox" checked={checked} onChange={(event) => onSet(event.target.checked)} />
      {label}
    </label>
  );
}

interface SelectProps<Value extends string> extends Described {
  value: Value;
  options: Readonly<Record<Value, string>>;
  onSet: (to: Value) => void;
}

export function Select<Value extends string>({ options, onSet, ...select }: SelectProps<Value>) {
  return (
    <select className="input" onChange={(event) => onSet(event.target.value as Value)} {...select}>
      {(Object.entries(options) as [Value, string][]).map(([name, text]) => (
        <option key={name} value={name}>
          {text}
        </option>
      ))}
    </select>
  );
}
