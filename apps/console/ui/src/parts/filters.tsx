import { useSearchParams } from "wouter";
import { useMe } from "../lib/me.js";
import { changed } from "../lib/request.js";
import { labelOf } from "../words.js";
import { Button } from "./button.js";
import { NameInput } from "./name-input.js";

interface Props<Name extends string> {
  names: readonly Name[];
  /** Text of the button. */
  act?: string;
}

/** Labels of fields that have another than their name. */
const LABELS: Readonly<Record<string, string>> = {
  task: "Task id",
  note: "Pause note",
  text: "Name, type, error",
  took: "Took at least, 30s",
};

/** Fields that are kept in the address. A token that is bound to owners has no choice of an owner here. */
export function Filters<Name extends string>({ names, act = "Filter" }: Props<Name>) {
  const { wide } = useMe();
  const [params, setParams] = useSearchParams();
  return (
    <form
      className="filters"
      key={params.toString()}
      onSubmit={(event) => {
        event.preventDefault();
        const typed = Object.fromEntries(new FormData(event.currentTarget)) as Record<string, string>;
        setParams(changed(typed));
      }}
    >
      {names
        .filter((name) => wide || name !== "owner")
        .map((name) => [name, LABELS[name] ?? labelOf(name)] as const)
        .map(([name, label]) => (
          <NameInput
            key={name}
            of={name}
            name={name}
            size={Math.max(9, label.length)}
            maxLength={500}
            aria-label={label}
            placeholder={label}
            defaultValue={params.get(name) ?? ""}
          />
        ))}
      <Button type="submit">{act}</Button>
    </form>
  );
}
