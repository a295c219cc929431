import { density, theme } from "../lib/looks.js";
import { zone } from "../lib/time.js";
import { labelOf } from "../words.js";

/** Time zone, colours and height of rows, kept in this browser. */
export function Settings() {
  return (
    <>
      <Choice name="Times in" of={zone} />
      <Choice name="Colours" of={theme} text={labelOf} />
      <Choice name="Rows" of={density} text={(rows) => `${labelOf(rows)} rows`} />
    </>
  );
}

interface Props<Value extends string> {
  name: string;
  of: { readonly choices: readonly Value[]; useValue(): Value; set(to: Value): void };
  /** Default: the values themselves. */
  text?: (value: Value) => string;
}

function Choice<Value extends string>({ name, of, text = String }: Props<Value>) {
  return (
    <select
      className="input"
      aria-label={name}
      title={name}
      value={of.useValue()}
      onChange={({ target }) => of.set(target.value as Value)}
    >
      {[...new Set(of.choices)].map((value) => (
        <option key={value} value={value}>
          {text(value)}
        </option>
      ))}
    </select>
  );
}
