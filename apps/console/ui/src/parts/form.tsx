import { createContext, type ReactNode, useContext, useEffect, useLayoutEffect, useRef } from "react";
import { ApiError } from "../lib/api.js";
import { unsaved } from "../lib/unsaved.js";

interface Props {
  className?: string;
  onSubmit: () => void;
  /** Error of the server about what is entered: the field that it names shows it, and has the focus after a submit. */
  refused?: unknown;
  children: ReactNode;
}

const Refused = createContext<unknown>(undefined);

/** A field's path in the input, or a test of the paths whose refusals it shows whole. */
export type FieldPath = string | ((path: string) => boolean);

/** Refusal by the server of the field with this path of the input, or of a part of it; undefined: there is none. */
export function useRefusal(path: FieldPath | undefined): string | undefined {
  const error = useContext(Refused);
  if (!(error instanceof ApiError) || path === undefined || error.field === undefined) return undefined;
  const { field, message } = error;
  if (typeof path === "function") return path(field) ? message : undefined;
  if (field !== path && !field.startsWith(`${path}.`) && !field.startsWith(`${path}[`)) return undefined;
  return message.startsWith(`${field}: `) ? message.slice(field.length + 2) : message;
}

/**
 * A form whose content is not lost without a question: by a link, the back button, a click beside its dialog, a reload. Call `forget` once
 * it is stored.
 */
export function Form({ className, onSubmit, refused, children }: Props) {
  const mark = useRef({});
  const form = useRef<HTMLFormElement>(null);
  const isSubmitted = useRef(false);
  useLayoutEffect(() => {
    if (!refused || !isSubmitted.current) return;
    isSubmitted.current = false;
    form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [refused]);
  useEffect(() => {
    const { current } = mark;
    return () => void unsaved.delete(current);
  }, []);
  return (
    <form
      ref={form}
      className={className}
      onInput={() => {
        isSubmitted.current = false;
        unsaved.add(mark.current);
      }}
      onSubmit={(event) => {
        event.preventDefault();
        isSubmitted.current = true;
        onSubmit();
      }}
    >
      <Refused value={refused}>{children}</Refused>
    </form>
  );
}
