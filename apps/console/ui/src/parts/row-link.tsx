import { type ReactNode, useEffect, useRef } from "react";
import { Link } from "wouter";
import { useBeside } from "../lib/beside.js";

interface Props {
  /** Address of the page of a task or run. */
  href: string;
  className?: string;
  children: ReactNode;
}

/** The main link of a row of a list, whose page `j` and `k` show beside the list. */
export function RowLink({ href, ...props }: Props) {
  const isChosen = useBeside() === href;
  const link = useRef<HTMLAnchorElement>(null);
  // After a reload, or when the row is scrolled into view again, the keyboard goes on where it was.
  useEffect(() => {
    const { activeElement, body } = document;
    if (isChosen && (activeElement === body || activeElement?.id === "main"))
      link.current?.focus({ preventScroll: true });
  }, [isChosen]);
  return <Link ref={link} href={href} data-row={href} aria-current={isChosen || undefined} {...props} />;
}
