import { useSearchParams } from "wouter";
import { useMe } from "../lib/me.js";
import { Button } from "./button.js";
import { NameInput } from "./name-input.js";

interface Props<Name extends string> {
  names: readonly Name[];
  labels: Readonly<Record<Name, string>>;
  /** Text of the button. */
  act: string;
}

/** Fields that are kept in the address. A token that is bound to owners has no choice of an owner here. */
export function Filters<Name extends string>({ names, labels, act }: Props<Name>) {
  const { wide } = useMe();
  const [params, setParams] = useSearchParams();
  return (
    <form
      className="filters"
      key={params.toString()}
      onSubmit={(event) => {
        event.preventDefault();
        const now = new URLSearchParams(params);
        for (const [name, value] of new FormData(event.currentTarget)) {
          if (value === "") now.delete(name);
          else now.set(name, String(value));
        }
        setParams(now);
      }}
    >
      {names
        .filter((name) => wide || name !== "owner")
        .map((name) => (
          <NameInput
            key={name}
            of={name}
            name={name}
            size={Math.max(9, labels[name].length)}
            maxLength={500}
            aria-label={labels[name]}
            placeholder={labels[name]}
            defaultValue={params.get(name) ?? ""}
          />
        ))}
      <Button type="submit">{act}</Button>
    </form>
  );
}
