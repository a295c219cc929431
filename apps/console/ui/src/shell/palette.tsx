import { type RefObject, useId, useState } from "react";
import { useLocation } from "wouter";
import { ownerPath, shortName, taskPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useCall, useLater } from "../lib/query.js";
import { pagesOf } from "../pages.js";
import { Dialog } from "../parts/dialog.js";
import { useSuggestions } from "../parts/name-input.js";
import { words } from "../words.js";
import { counted } from "../words-count.js";

const w = words.palette;
/** Most entries of each kind that the server knows. */
const MOST = 6;

interface Entry {
  readonly kind: keyof typeof w.kinds;
  readonly text: string;
  /** Address of its page, or the action. */
  readonly to: string | (() => void);
}

const keyOf = ({ kind, text }: Entry) => `${kind} ${text}`;

/**
 * Goes to a task, an owner, a queue or a page, or does what the buttons at the head of the open page do: an action that the role may
 * not take has none.
 *
 * @param typed text that was typed before the field was there
 */
export default function Palette({ typed, onClose }: { typed: RefObject<string>; onClose: () => void }) {
  const id = useId();
  const [, navigate] = useLocation();
  const [text, setText] = useState("");
  const [picked, pick] = useState<string>();
  const [actions] = useState(readActions);
  const entries = useEntries(text.trim(), actions);
  // By its text: entries that the server sends later do not take its place.
  const chosen = Math.max(
    0,
    entries.findIndex((entry) => keyOf(entry) === picked),
  );
  const open = (entry = entries[chosen]) => {
    if (!entry) return;
    const { to } = entry;
    onClose();
    // After the dialog has given back the focus.
    setTimeout(() => (typeof to === "string" ? navigate(to) : to()));
  };
  const move: Readonly<Record<string, number>> = { ArrowDown: chosen + 1, ArrowUp: chosen - 1 };
  return (
    <Dialog title={w.title} onClose={onClose}>
      <input
        className="input"
        role="combobox"
        aria-label={w.label}
        aria-expanded={entries.length > 0}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={entries.length > 0 ? `${id}${chosen}` : undefined}
        placeholder={w.label}
        maxLength={128}
        value={text}
        onFocus={() => {
          setText(text + typed.current);
          typed.current = "";
        }}
        onChange={(event) => {
          setText(event.target.value);
          pick(undefined);
        }}
        onKeyDown={(event) => {
          const { [event.key]: to } = move;
          if (to === undefined && event.key !== "Enter") return;
          event.preventDefault();
          if (to === undefined) return open();
          const entry = entries.at(to % entries.length);
          if (entry) pick(keyOf(entry));
        }}
      />
      <div role="listbox" id={id} aria-label={w.title} className="palette">
        {entries.map((entry, i) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field, which keeps the focus
          <div
            key={keyOf(entry)}
            id={id + i}
            role="option"
            tabIndex={-1}
            aria-selected={i === chosen}
            onClick={() => open(entry)}
          >
            <span className="any">{entry.text}</span>{" "}
            <span className="soft small">{w.kinds[entry.kind]}</span>
          </div>
        ))}
      </div>
      <p className="soft small" role="status">
        {entries.length === 0 ? "Nothing has this in its name." : counted(entries.length, "entry", "entries")}
      </p>
    </Dialog>
  );
}

/** The buttons and links at the head of the page. */
function readActions(): Entry[] {
  const found = document.querySelectorAll<HTMLElement>("main .page-head :is(a, button:enabled)");
  const does = (element: HTMLElement) => () => {
    element.focus();
    element.click();
  };
  return [...found].map((one) => ({ kind: "action", text: one.textContent ?? "", to: does(one) }));
}

function useEntries(text: string, actions: readonly Entry[]): Entry[] {
  const me = useMe();
  const calm = useLater(text);
  const tasks = useCall("tasks.list", calm === "" ? undefined : { search: calm, limit: MOST });
  const isNew = calm === text && !tasks.isPlaceholderData;
  const named = (kind: "owner" | "queue", names: readonly string[], pathOf: (name: string) => string) =>
    names
      .filter((name) => text !== "" && name.startsWith(text))
      .slice(0, MOST)
      .map((name): Entry => ({ kind, text: name, to: pathOf(name) }));
  const owners = useSuggestions("owner", text);
  const queues = useSuggestions("queue", text);
  const fixed: Entry[] = [
    ...actions,
    ...[...pagesOf("nav", me), ...pagesOf("tab", me)].map(
      ({ path, name }): Entry => ({ kind: "page", text: name, to: path }),
    ),
    ...(me.define ? [{ kind: "page", text: words.edit.newTitle, to: "/tasks/new" } as const] : []),
  ];
  return [
    ...fixed.filter((entry) => entry.text.toLowerCase().includes(text.toLowerCase())),
    ...((isNew && tasks.data?.tasks) || []).map(
      (task): Entry => ({ kind: "task", text: shortName(task), to: taskPath(task) }),
    ),
    ...named("owner", owners, ownerPath),
    ...named("queue", queues, (name) => `/tasks?queue=${encodeURIComponent(name)}`),
  ];
}
