import type { AnswerTo, InputTo, OperationName } from "@carillon/ops";
import { cloneElement, type ReactElement, type ReactNode, useId } from "react";
import { call } from "../lib/api.js";
import { ahead } from "../lib/meant.js";
import { useAct } from "../lib/query.js";
import { fieldTime, useNow, useZone } from "../lib/time.js";
import { done, type Undo, undoOf } from "../lib/undo.js";
import { forget } from "../lib/unsaved.js";
import { Button, Chips } from "./button.js";
import { CopyAs } from "./copy-as.js";
import { Dialog } from "./dialog.js";
import { Effect, isNothing, useDry } from "./effect.js";
import { type FieldPath, Form, useRefusal } from "./form.js";
import { NameInput } from "./name-input.js";
import { ErrorNote } from "./page.js";
import { Prose } from "./time.js";

interface Props<Name extends OperationName> {
  title: string;
  /** Text of the button that acts. */
  act: string;
  danger?: boolean;
  wide?: boolean;
  /** The operation that it calls: its button waits while that is in progress, and its error is shown. */
  does: Name;
  input: InputTo<Name>;
  /**
   * Shows the effect first, by a dry run: `true` once the input is complete; `first`: nothing is done before it is shown.
   */
  shows?: boolean | "first";
  /** Notice after the action. */
  says?: string;
  /** Takes the action back, if its input and answer do not tell it. */
  undo?: Undo;
  onDone?: (output: AnswerTo<Name>) => void;
  /** Error of another action of the dialog. */
  error?: unknown;
  /** Whether it is not possible yet. */
  busy?: boolean;
  onClose: () => void;
  children?: ReactNode;
}

/** A dialog that asks for confirmation, then acts. It stays open until that is done, so that an error appears in it. */
export function Confirm<Name extends OperationName>(props: Props<Name>) {
  const { title, act, danger, wide, error, busy, shows, children, ...how } = props;
  const { does, input, onClose } = how;
  const dry = useDry(does, shows ? input : undefined);
  const isMoot = dry.data === undefined ? shows === "first" : isNothing(dry.data);
  const by = useAct(({ does, input }: typeof how) => call(does, input), {
    quiet: true,
    onDone: async (output, { does, input, says, undo, onDone }) => {
      forget();
      onClose();
      onDone?.(output);
      if (says) done(says, undo ?? (await undoOf(does, input, output)));
    },
  });
  const submit = () => {
    if (!by.isPending) by.mutate(how);
  };
  const failure = error ?? by.error ?? dry.error;
  return (
    <Dialog title={title} onClose={onClose} {...(wide ? { wide } : {})}>
      <Form className="form" onSubmit={submit} refused={failure}>
        {children}
        {dry.data === undefined ? null : <Effect of={dry.data} />}
        {failure ? <ErrorNote error={failure} /> : null}
        <CopyAs name={does} input={input} />
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button
            type="submit"
            look={danger ? "danger" : "main"}
            disabled={busy || isMoot}
            // Disabled, it would lose the focus.
            aria-disabled={by.isPending}
          >
            {act}
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}

type Described = { "aria-describedby"?: string; "aria-invalid"?: boolean };

interface Labelled {
  label: string;
  hint?: string | undefined;
  /** Path in the input of the operation, as its errors name it: a refusal of it is shown here. */
  path?: FieldPath | undefined;
}

/** A control with its label. The hint, and what is wrong, describe the control; they are no part of its name. */
export function Field({ label, hint, path, children }: Labelled & { children: ReactElement<Described> }) {
  const id = useId();
  const refusal = useRefusal(path);
  const isDescribed = refusal !== undefined || hint !== undefined;
  return (
    <div className="field">
      {/* biome-ignore lint/a11y/noLabelWithoutControl: the control is the child */}
      <label>
        <span>{label}</span>
        {cloneElement(children, {
          ...(isDescribed && { "aria-describedby": id }),
          ...(refusal !== undefined && { "aria-invalid": true }),
        })}
      </label>
      {isDescribed ? (
        <span id={id} className="small">
          {refusal === undefined ? null : (
            <span className="refusal">
              <Prose of={refusal} />
            </span>
          )}
          {hint === undefined ? null : <span className="soft">{hint}</span>}
        </span>
      ) : null}
    </div>
  );
}

interface TextProps extends Labelled {
  value: string;
  required?: boolean;
  readOnly?: boolean;
  /** As of a `NameInput`. */
  of?: string | undefined;
  many?: boolean;
  /** Lines of a longer text. */
  rows?: number | undefined;
  onSet: (to: string) => void;
}

/** A text with its label. */
export function TextField({ label, hint, path, of = "", many, rows, onSet, ...input }: TextProps) {
  const given = {
    ...input,
    onChange: ({ target }: { target: { value: string } }) => onSet(target.value),
  };
  return (
    <Field label={label} hint={hint} path={path}>
      {rows ? (
        <textarea className="input" spellCheck={false} rows={rows} {...given} />
      ) : (
        <NameInput of={of} {...(many && { many })} {...given} />
      )}
    </Field>
  );
}

interface TimeProps extends Labelled {
  /** As of an input: without a zone. */
  value: string;
  required?: boolean;
  readOnly?: boolean;
  /** Whether it is to come: some times are offered. */
  isAhead?: boolean;
  onSet: (to: string) => void;
}

/** A time with its label. */
export function TimeField({ label, hint, path, isAhead, onSet, ...input }: TimeProps) {
  return (
    <>
      <Field label={label} hint={hint} path={path}>
        <input
          className="input"
          type="datetime-local"
          onChange={(event) => onSet(event.target.value)}
          {...input}
        />
      </Field>
      {isAhead ? <Ahead value={input.value} onSet={onSet} /> : null}
    </>
  );
}

const AHEAD = { hour: "In 1 h", evening: "18:00", morning: "Tomorrow 08:00", monday: "Monday 08:00" };

function Ahead({ value, onSet }: Pick<TimeProps, "value" | "onSet">) {
  const [zone, now] = [useZone(), useNow()];
  const times = ahead(fieldTime(now, zone), fieldTime(now + 3_600_000, zone));
  const names = Object.keys(times) as (keyof typeof times)[];
  return (
    <div className="chips">
      <Chips
        names={names}
        text={(name) => AHEAD[name]}
        chosen={names.find((name) => times[name] === value)}
        onPick={(name) => onSet(times[name])}
      />
    </div>
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
