import { type ReactNode, useContext, useEffect } from "react";
import { Link } from "wouter";
import { ApiError, Unreachable } from "../lib/api.js";
import { IsBeside } from "../lib/beside.js";
import type { Answer } from "../lib/query.js";
import { useStanding } from "../lib/standing.js";
import { Button } from "./button.js";
import { Prose } from "./time.js";

/** Head of a page; the title of the window is its own after the state. Buttons are its children. */
export function PageHead({
  title,
  badge,
  children,
}: {
  title: string;
  badge?: ReactNode;
  children?: ReactNode;
}) {
  const text = [...useStanding().texts, title, "Carillon"].join(" · ");
  const isBeside = useContext(IsBeside);
  useEffect(() => {
    if (!isBeside) document.title = text;
  }, [text, isBeside]);
  const Title = isBeside ? "h2" : "h1";
  return (
    <div className="page-head">
      <Title className="any">{title}</Title>
      {badge}
      <div className="end">{children}</div>
    </div>
  );
}

/** A part of a page with a heading. */
export function Panel({ title, end, children }: { title: ReactNode; end?: ReactNode; children: ReactNode }) {
  return (
    <section className="panel">
      <header>
        <h2>{title}</h2>
        {end === undefined ? null : <div className="end">{end}</div>}
      </header>
      {children}
    </section>
  );
}

/** An error: its message, with the remedy, and a button if it can be tried again. */
export function ErrorNote({ error, onRetry }: { error: unknown; onRetry?: (() => unknown) | undefined }) {
  const text = error instanceof Error ? error.message : String(error);
  const { code } = error instanceof ApiError ? error : {};
  return (
    <div className="note" data-tone="bad" role="alert">
      <span>
        <Prose of={text} />
      </span>
      {code ? <code className="small">{code}</code> : null}
      {onRetry ? (
        <Button look="plain" onClick={() => void onRetry()}>
          Try again
        </Button>
      ) : null}
    </div>
  );
}

/**
 * Shows an answer of the API once it has arrived; an error together with the last known data, or with `failed`. `title` is that of a page
 * whose head comes with the answer. The answer to the question before is dimmed and inert: nothing can be chosen or done on it.
 */
export function Loaded<T>({
  of,
  title,
  failed,
  children,
}: {
  of: Answer<T>;
  title?: string;
  failed?: ReactNode;
  children: (data: T) => ReactNode;
}) {
  const shown = of.data ?? of.former;
  if (shown === undefined)
    return (
      <>
        {title === undefined ? null : <PageHead title={title} />}
        {of.error ? (
          <>
            <ErrorNote error={of.error} onRetry={of.error instanceof Unreachable ? undefined : of.refetch} />
            {failed}
          </>
        ) : (
          <div className="loading" role="status">
            <span className="unseen">Loading…</span>
          </div>
        )}
      </>
    );
  const isFormer = of.data === undefined;
  return (
    <>
      {of.error && !(of.error instanceof Unreachable) ? (
        <ErrorNote error={of.error} onRetry={of.refetch} />
      ) : null}
      <div className="answer" aria-busy={isFormer} inert={isFormer}>
        {children(shown)}
      </div>
    </>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return <p className="empty">{children}</p>;
}

/** A list, or a text if there is no item. */
export function Rows<Item>(props: {
  of: readonly Item[];
  none: string | undefined;
  children: (item: Item, index: number) => ReactNode;
}) {
  const { of, none, children } = props;
  return of.length === 0 ? <Empty>{none}</Empty> : <ul className="rows">{of.map(children)}</ul>;
}

export function Row({ href, name, children }: { href: string; name: string; children: ReactNode }) {
  return (
    <li>
      <Link href={href} data-row>
        {name}
      </Link>
      {children}
    </li>
  );
}

/** A button that reads the next page, while there is one. */
export function More({ of, children }: { of: Pages; children: string }) {
  if (!of.hasNextPage) return null;
  return (
    <p className="body">
      <Button look="plain" onClick={() => void of.fetchNextPage()}>
        {children}
      </Button>
    </p>
  );
}

interface Pages {
  readonly hasNextPage: boolean;
  readonly fetchNextPage: () => unknown;
}

export function TableHead({ of }: { of: readonly string[] }) {
  return (
    <thead>
      <tr>
        {of.map((name) => (
          <th key={name} scope="col">
            {name}
          </th>
        ))}
      </tr>
    </thead>
  );
}

/** Scrolls wide content sideways, by keyboard too. */
export function Scroll({ label, children }: { label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled with the keyboard
    <section className="scroll" aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}

/** The error of a handler: a text of any length. */
export function ErrorText({ text }: { text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a long one is scrolled with the keyboard
    <pre className="error" tabIndex={0}>
      {text}
    </pre>
  );
}
