import { type ReactNode, useEffect, useRef } from "react";
import { unsaved } from "../lib/unsaved.js";

interface Props {
  className?: string;
  onSubmit: () => void;
  children: ReactNode;
}

/**
 * A form whose content is not lost without a question: by a link, the back button, a click beside its dialog, a reload. Call `forget` once
 * it is stored.
 */
export function Form({ className, onSubmit, children }: Props) {
  const mark = useRef({});
  useEffect(() => {
    const { current } = mark;
    return () => void unsaved.delete(current);
  }, []);
  return (
    <form
      className={className}
      onInput={() => unsaved.add(mark.current)}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      {children}
    </form>
  );
}
