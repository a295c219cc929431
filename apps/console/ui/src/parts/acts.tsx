import { Ellipsis } from "lucide";
import { type FocusEvent, type KeyboardEvent, useId, useLayoutEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { Button } from "./button.js";
import { Icon } from "./icon.js";

export interface Act {
  readonly text: string;
  /** A function, or the address of a page. */
  readonly does: string | (() => void);
  /** The key that does it too. */
  readonly key?: string;
  /** Window of an address outside of the pages. */
  readonly window?: "_self" | "_blank";
  /** Whether something is lost. */
  readonly danger?: boolean;
}

/** Acts of a page. The first one is its main button; the others stand in a menu, those that lose something last. */
export function Acts({ of }: { of: readonly (Act | false | undefined)[] }) {
  const [main, ...rest] = of.filter((act) => act !== undefined && act !== false);
  const last = rest.toSorted((a, b) => Number(a.danger ?? false) - Number(b.danger ?? false));
  if (main === undefined) return null;
  const look = typeof main.does === "string" ? "" : main.danger ? " danger" : " main";
  return (
    <>
      <One act={main} className={`button${look}`} />
      {last.length > 1 || last[0]?.danger ? (
        <Menu of={last} />
      ) : (
        last.map((act) => <One key={act.text} act={act} className="button" />)
      )}
    </>
  );
}

interface OneProps {
  act: Act;
  className?: string;
  role?: "menuitem";
  tabIndex?: -1;
  /** Called before it is done. */
  onPick?: () => void;
}

function One({ act: { text, does, key, window }, onPick, ...props }: OneProps) {
  const shared = { ...props, ...(key && { "aria-keyshortcuts": key }), children: text };
  if (typeof does !== "string") {
    const press = () => {
      onPick?.();
      does();
    };
    return <button type="button" onClick={press} {...shared} />;
  }
  if (window === undefined) return <Link href={does} onClick={onPick} {...shared} />;
  return <a href={does} target={window} rel="noreferrer" onClick={onPick} {...shared} />;
}

function itemsIn(menu: Element | null): readonly HTMLElement[] {
  return [...(menu?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
}

/** A button that opens a menu, which keys move through: arrows, Home, End, the first letter, Escape and Tab. */
function Menu({ of }: { of: readonly Act[] }) {
  const id = useId();
  const root = useRef<HTMLDivElement>(null);
  /** Place of the item that has the focus when it opens; undefined: it is closed. */
  const [opened, open] = useState<number>();
  const isOpen = opened !== undefined;
  const close = () => {
    // By its key, an item is picked while the menu is closed: the focus stays where it is.
    if (isOpen) root.current?.querySelector("button")?.focus();
    open(undefined);
  };
  useLayoutEffect(() => {
    if (opened !== undefined) itemsIn(root.current).at(opened)?.focus();
  }, [opened]);
  const press = (event: KeyboardEvent) => {
    const { key, ctrlKey, metaKey, altKey } = event;
    const all = itemsIn(root.current);
    const here = all.findIndex((item) => item.matches(":focus"));
    const moves: Record<string, number> = { ArrowDown: here + 1, ArrowUp: here < 0 ? -1 : here - 1 };
    const to = isOpen ? { ...moves, Home: 0, End: -1 }[key] : moves[key];
    if (to !== undefined) {
      if (isOpen) all.at(to % all.length)?.focus();
      else open(to);
    } else if (!isOpen || ctrlKey || metaKey || altKey) return;
    else if (key === "Escape") close();
    else if (key === "Tab") return close();
    else if (/^\S$/.test(key)) {
      const begins = ({ textContent }: Element) => textContent?.toLowerCase().startsWith(key.toLowerCase());
      [...all.slice(here + 1), ...all].find(begins)?.focus();
    } else return;
    event.preventDefault();
  };
  const leave = ({ relatedTarget }: FocusEvent) => {
    if (!root.current?.contains(relatedTarget)) open(undefined);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys are those of the button and of the menu in it
    <div className="menu" ref={root} onKeyDown={press} onBlur={leave}>
      <Button
        look="icon"
        aria-label="More to do"
        title="More to do"
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => (isOpen ? close() : open(0))}
      >
        <Icon of={Ellipsis} />
      </Button>
      <div role="menu" id={id} aria-label="More to do" hidden={!isOpen}>
        {of.map((act) => (
          <One
            key={act.text}
            act={act}
            role="menuitem"
            tabIndex={-1}
            onPick={close}
            {...(act.danger && { className: "bad" })}
          />
        ))}
      </div>
    </div>
  );
}
