import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { useKeys } from "../lib/keys.js";
import { store } from "../lib/store.js";
import { Button } from "./button.js";
import type { Tone } from "./state.js";

interface Notice {
  readonly id: number;
  readonly tone: Tone;
  readonly text: string;
  /** The next step: the text of a link and its address. */
  readonly next?: readonly [text: string, to: string] | undefined;
  /** Takes back what the notice is about. */
  readonly undo?: (() => void) | undefined;
}

/** Time in ms for which a notice of success is shown, without the time under the pointer or the focus. Errors stay until they are closed. */
const SHOWN_MS = 10_000;
const notices = store<readonly Notice[]>([]);
let nextId = 1;

/** Shows a text in the corner of the page; screen readers read it out. */
export function notify(tone: Tone, text: string, more: Pick<Notice, "next" | "undo"> = {}): void {
  notices.set([...notices.get().slice(-3), { id: nextId++, tone, text, ...more }]);
}

function close(id: number): void {
  notices.set(notices.get().filter((notice) => notice.id !== id));
}

function take({ id, undo }: Notice): void {
  close(id);
  undo?.();
}

export function Notices() {
  const shown = notices.useValue();
  useKeys({
    u: () => {
      const newest = shown.findLast(({ undo }) => undo);
      if (newest) take(newest);
    },
  });
  return (
    <ul className="notices" aria-live="polite">
      {shown.map((notice) => (
        <Shown key={notice.id} notice={notice} />
      ))}
    </ul>
  );
}

/** The focus must not be lost with its button. */
function leave(): void {
  document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true });
}

function Shown({ notice }: { notice: Notice }) {
  const { id, tone, text, next, undo } = notice;
  const [[pointer, focus], setHeld] = useState([false, false]);
  const left = useRef(SHOWN_MS);
  useEffect(() => {
    if (tone === "bad" || pointer || focus) return;
    const since = performance.now();
    const timer = setTimeout(() => close(id), left.current);
    return () => {
      clearTimeout(timer);
      left.current -= performance.now() - since;
    };
  }, [id, tone, pointer, focus]);
  return (
    <li
      className="note"
      data-tone={tone}
      onPointerEnter={() => setHeld([true, focus])}
      onPointerLeave={() => setHeld([false, focus])}
      onFocus={() => setHeld([pointer, true])}
      onBlur={() => setHeld([pointer, false])}
    >
      <span>{text}</span>
      {next === undefined ? null : <Link href={next[1]}>{next[0]}</Link>}
      {undo === undefined ? null : (
        <Button
          aria-keyshortcuts="u"
          title="Undo (u)"
          onClick={() => {
            leave();
            take(notice);
          }}
        >
          Undo
        </Button>
      )}
      <Button
        look="plain"
        onClick={() => {
          leave();
          close(id);
        }}
      >
        Close
      </Button>
    </li>
  );
}
