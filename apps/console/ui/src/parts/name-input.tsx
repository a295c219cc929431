import type { InputTo } from "@carillon/ops";
import { type ComponentProps, useId, useState } from "react";
import { useCall, useLater } from "../lib/query.js";

type Kind = InputTo<"names.list">["of"];

interface Props extends ComponentProps<"input"> {
  /** Name of the field. Queues, owners, tags and types that exist are suggested; nothing for other fields. */
  of: string;
  /** Whether the field holds several names, with spaces or commas between them. */
  many?: boolean;
}

/** A field for a name. Asks for suggestions once it has the focus. */
export function NameInput({ of, many = false, ...input }: Props) {
  const id = useId();
  const [text, setText] = useState<string>();
  const head = many ? (/^.*[\s,]/.exec(text ?? "")?.[0] ?? "") : "";
  const names = useSuggestions(of, text?.slice(head.length));
  const read = ({ currentTarget }: { currentTarget: HTMLInputElement }) => setText(currentTarget.value);
  if (!isKind(of)) return <input className="input" {...input} />;
  return (
    <>
      <input
        className="input"
        maxLength={many ? 500 : 128}
        autoComplete="off"
        list={id}
        onFocus={read}
        onInput={read}
        {...input}
      />
      <datalist id={id}>
        {names.map((name) => (
          <option key={name} value={head + name} />
        ))}
      </datalist>
    </>
  );
}

/** Names that exist and begin with a text. @param starts undefined: not asked yet */
export function useSuggestions(of: string, starts: string | undefined): readonly string[] {
  const calm = useLater(starts);
  const input = isKind(of) && calm !== undefined ? { of, starts: calm } : undefined;
  const { data, former } = useCall("names.list", input, { refresh: false, maxAge: 30 });
  // Names that exist, whatever was typed: the field, or its caller, shows those that begin with it.
  return (data ?? former)?.names ?? [];
}

function isKind(of: string): of is Kind {
  return ["queue", "owner", "tag", "type"].includes(of);
}
