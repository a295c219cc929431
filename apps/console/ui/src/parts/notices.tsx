import { useSyncExternalStore } from "react";
import { Link } from "wouter";
import { words } from "../words.js";
import { Button } from "./button.js";
import type { Tone } from "./state.js";

interface Notice {
  readonly id: number;
  readonly tone: Tone;
  readonly text: string;
  /** The next step: the text of a link and its address. */
  readonly next?: readonly [text: string, to: string] | undefined;
}

/** Time in ms for which a notice of success is shown. Errors stay until they are closed. */
const SHOWN_MS = 8_000;
let notices: readonly Notice[] = [];
let nextId = 1;
const listeners = new Set<() => void>();

function set(to: readonly Notice[]): void {
  notices = to;
  for (const listener of listeners) listener();
}

/** Shows a text in the corner of the page; screen readers read it out. */
export function notify(tone: Tone, text: string, next?: Notice["next"]): void {
  const id = nextId++;
  set([...notices.slice(-3), { id, tone, text, next }]);
  if (tone !== "bad") setTimeout(() => close(id), SHOWN_MS);
}

interface DoneToMany {
  readonly count: number;
  /** Id of the change, if it can be undone. */
  readonly change?: string | undefined;
  readonly refused: { readonly count: number; readonly sample: readonly { readonly message: string }[] };
}

/** Tells what became of a change of many tasks. */
export function notifyOfMany(
  verb: keyof typeof words.bulk.done,
  { count, change, refused }: DoneToMany,
): void {
  const undo =
    change === undefined ? undefined : ([words.changes.undo, `/settings/changes?undo=${change}`] as const);
  notify("ok", words.bulk.done[verb](count), undo);
  if (refused.count > 0) notify("bad", words.effect.refused(refused.count, refused.sample[0]?.message ?? ""));
}

function close(id: number): void {
  set(notices.filter((notice) => notice.id !== id));
}

export function Notices() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => notices,
  );
  return (
    <ul className="notices" aria-live="polite">
      {shown.map(({ id, tone, text, next }) => (
        <li key={id} className="note" data-tone={tone}>
          <span>{text}</span>
          {next === undefined ? null : <Link href={next[1]}>{next[0]}</Link>}
          <Button look="plain" onClick={() => close(id)}>
            {words.close}
          </Button>
        </li>
      ))}
    </ul>
  );
}
