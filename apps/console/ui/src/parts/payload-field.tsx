import {
  type FormField,
  formOf,
  type Payload,
  shownIn,
  typedIn,
  valueAt,
  withValue,
} from "../lib/payload-form.js";
import { useCall, useLater } from "../lib/query.js";
import { Field } from "./confirm.js";
import { JsonField } from "./json-field.js";

const NAME = /^[\w.-]{1,128}$/;

interface Props {
  queue: string;
  type: string;
  hint?: string;
  value: unknown;
  onEdit: (to: unknown) => void;
}

/** A payload as JSON, and as a form of what its type's schema and a form can say. */
export function PayloadField({ queue, type, hint, value, onEdit }: Props) {
  const work = useLater({ queue, type });
  const isNamed = NAME.test(work.queue) && NAME.test(work.type);
  const { data } = useCall("types.get", isNamed ? work : undefined, { refresh: false });
  const schema = data?.schemas[0]?.schema;
  const fields = schema && formOf(schema, value);
  return (
    <fieldset className="schedule">
      <legend>Payload</legend>
      {fields ? <Fields of={fields} payload={value as Payload} onEdit={onEdit} /> : null}
      {schema && "maxProperties" in schema && schema.maxProperties === 0 ? (
        <p className="small soft">This type takes no payload.</p>
      ) : null}
      <JsonField label="As JSON" hint={hint} path="payload" value={value} onEdit={onEdit} />
    </fieldset>
  );
}

interface FieldsProps {
  of: readonly FormField[];
  payload: Payload;
  onEdit: (to: Payload) => void;
}

function Fields({ of, ...rest }: FieldsProps) {
  return of.map((field) => {
    const { path, kind, fields } = field;
    const name = path.at(-1) as string;
    if (kind !== "group") return <One key={name} field={field} {...rest} />;
    return (
      <fieldset key={name} className="schedule">
        <legend>{name}</legend>
        <Fields of={fields} {...rest} />
      </fieldset>
    );
  });
}

function One({ field, payload, onEdit }: Omit<FieldsProps, "of"> & { field: FormField }) {
  const { path, kind, required, hint, choices } = field;
  const value = valueAt(payload, path);
  const set = (text: string) => onEdit(withValue(payload, path, typedIn(field, text)));
  const name = path.at(-1) as string;
  const props = {
    className: "input",
    value: shownIn(field, value),
    onChange: ({ target }: { target: { value: string } }) => set(target.value),
  };
  return (
    <Field label={required ? name : `${name} (optional)`} hint={hint} path={["payload", ...path].join(".")}>
      {kind === "choice" ? (
        <select {...props}>
          {required && value !== undefined ? null : <option value="" />}
          {choices.map((choice) => (
            <option key={JSON.stringify(choice)} value={JSON.stringify(choice)}>
              {typeof choice === "boolean" ? (choice ? "yes" : "no") : String(choice)}
            </option>
          ))}
        </select>
      ) : kind === "texts" ? (
        <textarea {...props} placeholder="One per line" />
      ) : (
        <input {...props} {...(kind === "number" ? { type: "number", step: "any" } : {})} />
      )}
    </Field>
  );
}
