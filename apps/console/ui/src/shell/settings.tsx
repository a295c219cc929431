import { density, theme } from "../lib/looks.js";
import { zone } from "../lib/time.js";
import { words } from "../words.js";

const w = words.shell;

/** Time zone, colours and height of rows, kept in this browser. */
export function Settings() {
  return (
    <>
      <Choice name={w.zone} of={zone} />
      <Choice name={w.theme} of={theme} texts={w.themes} />
      <Choice name={w.density} of={density} texts={w.densities} />
    </>
  );
}

interface Props<Value extends string> {
  name: string;
  of: { readonly choices: readonly Value[]; useValue(): Value; set(to: Value): void };
  /** Default: the values themselves. */
  texts?: Readonly<Record<Value, string>>;
}

function Choice<Value extends string>({ name, of, texts }: Props<Value>) {
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
          {texts?.[value] ?? value}
        </option>
      ))}
    </select>
  );
}
