import type { AnswerTo, InputTo, OperationName } from "@carillon/ops";
import { type ReactElement, type ReactNode, useState } from "react";
import { type FieldOf, type FormField, formOf, readField, useMay } from "../lib/forms.js";
import { useMe } from "../lib/me.js";
import { useZone } from "../lib/time.js";
import type { Undo } from "../lib/undo.js";
import { labelOf, nameOf } from "../words.js";
import { Button } from "./button.js";
import { Check, Confirm, Field, Select, TextField, TimeField } from "./confirm.js";
import { JsonField } from "./json-field.js";

/** A control, where it differs from the field's declaration. */
interface Look {
  /** Default: the field's name. */
  label?: string;
  /** Default: its description; "": none. */
  hint?: string;
  /** Its text when the dialog opens; for an object, its value. */
  first?: unknown;
  /** Whether this dialog requires it, though the operation does not. */
  required?: boolean;
  /** Texts of its choices; "": none of them. */
  choices?: Readonly<Record<string, string>>;
  /** Whether it is a time that has passed. */
  past?: boolean;
}

type Typed = Readonly<Record<string, unknown>>;
type Controls<Field> = readonly (Field | ReactElement | false | undefined)[];

interface Question<Field extends string, Input, Answer> {
  title: string;
  /** Text of the button that acts. */
  act?: string;
  danger?: boolean;
  /** Fields of the input that are not asked for. */
  given?: Partial<Input>;
  /** Fields of which the person gives one, chosen before the others; `all` becomes true. */
  scopes?: readonly Field[] | undefined;
  /** Further fields of scopes. */
  within?: Readonly<{ [Name in Field]?: Field }>;
  /** Names of the fields that it asks for, and other controls. Default: all. */
  fields?: Controls<Field> | ((typed: Typed) => Controls<Field>);
  looks?: Readonly<{ [Name in Field]?: Look }>;
  /** `first`: nothing is done before its effect is shown. */
  shows?: "first";
  /** Notice after the action. */
  says?: string;
  /** Takes the action back, if its input and answer do not tell it. */
  undo?: Undo;
  onDone?(output: Answer): void;
  /** Error of another action of the dialog. */
  error?: unknown;
  /** The text above the fields. */
  children?: ReactNode;
}

type Asks<Name extends OperationName> = Question<FieldOf<Name>, InputTo<Name>, AnswerTo<Name>> & {
  does: Name;
};

/**
 * The dialog of an operation: a control for each field of its input, as its schema describes it. It shows the effect if the operation has
 * a dry run, and is for reading alone for those who may not call it.
 */
export function Ask<Name extends OperationName>(props: Asks<Name> & { onClose: () => void }): ReactNode;
export function Ask(props: Question<string, object, unknown> & { does: OperationName; onClose: () => void }) {
  const { does, act = "Save", given = {}, scopes, within = {}, looks = {}, shows = true, ...rest } = props;
  const { children, fields, ...dialog } = rest;
  const all = formOf(does).fields;
  const zone = useZone();
  const { wide } = useMe();
  const may = useMay(does);
  const [scope, setScope] = useState(scopes?.[0]);
  const [typed, setTyped] = useState<Typed>(() =>
    Object.fromEntries(Object.entries(looks).map(([name, look]) => [name, look?.first])),
  );
  const isAsked = (name: string) => name !== "dryRun" && !Object.hasOwn(given, name);
  const asked = (typeof fields === "function" ? fields(typed) : fields) ?? Object.keys(all).filter(isAsked);
  const ofScope = scope === undefined || scope === "all" ? [] : [within[scope], scope];
  const controls = [...ofScope, ...asked].filter((one) => one !== undefined && one !== false);
  const names = controls.filter((one) => typeof one === "string");
  const values = names.map((name) => [name, readField(all[name]!, typed[name], zone)] as const);
  const input = { ...given, ...(scope === "all" && { all: true }), ...Object.fromEntries(values) };
  const isRequired = (name: string, { kind, nullable, required = false } = all[name]!) =>
    name === scope || looks[name]?.required === true || (required && !nullable && kind !== "array");
  const isComplete = values.every(([name, value]) => !isRequired(name) || (value ?? "") !== "");
  const text = (name: string) => looks[name]?.label ?? labelOf(name);
  const options = scopes?.filter((one) => wide || one !== "all").map((one) => [one, text(one)]);
  return (
    <Confirm
      {...dialog}
      act={act}
      does={does}
      // The fields are those of the schema, and the server checks their values.
      input={input as InputTo<typeof does>}
      shows={Object.hasOwn(all, "dryRun") && may && isComplete && shows}
      busy={!may}
    >
      {children}
      {options && scope ? (
        <Field label="What">
          <Select value={scope} options={Object.fromEntries(options)} onSet={setScope} />
        </Field>
      ) : null}
      {controls.map((name) =>
        typeof name !== "string" ? (
          name
        ) : (
          <Control
            key={name}
            name={name}
            names={names}
            field={all[name]!}
            look={{ ...looks[name], label: text(name), required: isRequired(name) }}
            readOnly={!may}
            value={typed[name]}
            onSet={(to) => setTyped({ ...typed, [name]: to })}
          />
        ),
      )}
    </Confirm>
  );
}

interface ControlProps {
  name: string;
  /** All names: an object shows the refusals that are about none of the others. */
  names: readonly string[];
  field: FormField;
  look: Look & { label: string; required: boolean };
  readOnly: boolean;
  value: unknown;
  onSet: (to: unknown) => void;
}

function Control({ name, names, field, look, readOnly, value, onSet }: ControlProps) {
  const zone = useZone();
  const { kind, of, about, choices = [] } = field;
  const { label, required } = look;
  const labelled = { path: name, label, hint: (look.hint ?? about) || undefined };
  const input = { required, readOnly, value: String(value ?? ""), onSet };
  switch (kind) {
    case "object": {
      const isIts = (path: string) => !names.some((one) => one !== name && one === path.split(/[.[]/)[0]);
      return <JsonField {...labelled} path={isIts} value={value} onEdit={onSet} />;
    }
    case "boolean":
      return <Check label={label} checked={value === true} onSet={onSet} />;
    case "time":
      return <TimeField {...labelled} {...input} label={`${label} (${zone})`} isAhead={!look.past} />;
    case "choice": {
      const options = look.choices ?? Object.fromEntries(choices.map((one) => [one, nameOf(one)]));
      return (
        <Field {...labelled}>
          <Select value={input.value} options={options} onSet={onSet} />
        </Field>
      );
    }
    default: {
      const isList = kind === "array";
      return (
        <TextField {...labelled} {...input} of={of} many={isList} rows={isList && !of ? 12 : undefined} />
      );
    }
  }
}

/** A button that opens the dialog of an operation, for those who may call it. @param text the dialog's title if it has no other */
export function AskButton<Name extends OperationName>(props: Asks<Name> & { text?: string; look?: string }) {
  const { text = props.title, look = "", ...asks } = props;
  const [isOpen, setOpen] = useState(false);
  if (!useMay(asks.does)) return null;
  return (
    <>
      <Button look={look} onClick={() => setOpen(true)}>
        {text}
      </Button>
      {isOpen ? <Ask {...asks} onClose={() => setOpen(false)} /> : null}
    </>
  );
}
