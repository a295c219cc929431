import { countText, displayText } from "@carillon/ops/words";
import { type RefObject, useEffect, useId, useState } from "react";
import { useLocation } from "wouter";
import { ownerPath, shortName, taskPath } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useCall, useLater } from "../lib/query.js";
import { bothTimes, useNow, useZone } from "../lib/time.js";
import { pagesOf } from "../pages.js";
import { Dialog } from "../parts/dialog.js";
import { useSuggestions } from "../parts/name-input.js";

/** Most entries of each kind that the server knows. */
const MOST = 6;

interface Entry {
  readonly kind: "action" | "page" | "task" | "owner" | "queue";
  readonly text: string;
  /** Address of its page, or the action. */
  readonly to: string | (() => void);
  /** State of a task, instead of the kind. */
  readonly says?: string | undefined;
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
  const { entries, isWhole } = useEntries(text.trim(), actions);
  // Enter before the answer is there: it opens the first entry when that comes.
  const [waits, setWaits] = useState(false);
  // By its text: entries that the server sends later do not take its place.
  const chosen = Math.max(
    0,
    entries.findIndex((entry) => keyOf(entry) === picked),
  );
  const open = (entry = entries[chosen]) => {
    setWaits(!entry && !isWhole);
    if (!entry) return;
    const { to } = entry;
    onClose();
    // After the dialog has given back the focus.
    setTimeout(() => (typeof to === "string" ? navigate(to) : to()));
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when entries come
  useEffect(() => {
    if (waits && (entries.length > 0 || isWhole)) open();
  }, [waits, entries.length, isWhole]);
  const move: Readonly<Record<string, number>> = { ArrowDown: chosen + 1, ArrowUp: chosen - 1 };
  return (
    <Dialog title="Go to, or do" onClose={onClose}>
      <input
        className="input"
        role="combobox"
        aria-label="Task, owner, queue, page or action"
        aria-expanded={entries.length > 0}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={entries.length > 0 ? `${id}${chosen}` : undefined}
        placeholder="Task, owner, queue, page or action"
        maxLength={128}
        value={text}
        onFocus={() => {
          const [more = "", enter] = typed.current.split("\n");
          setText(text + more);
          setWaits(enter !== undefined);
          typed.current = "";
        }}
        onChange={(event) => {
          setText(event.target.value);
          setWaits(false);
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
      <div role="listbox" id={id} aria-label="Go to, or do" className="palette">
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
            <span className="soft small">
              {entry.says ?? (entry.kind === "queue" ? "tasks of the queue" : entry.kind)}
            </span>
          </div>
        ))}
      </div>
      <p className="soft small" role="status">
        {entries.length > 0
          ? countText(entries.length, "entry", "entries")
          : isWhole
            ? "Nothing has this in its name."
            : "Searching…"}
      </p>
    </Dialog>
  );
}

/** The buttons and links at the head of the page and of what stands beside it, those in menus too. */
function readActions(): Entry[] {
  const found = document.querySelectorAll<HTMLElement>(
    "main .page-head :is(a, button:enabled:not([aria-haspopup]))",
  );
  const does = (element: HTMLElement) => () => {
    element.focus();
    element.click();
  };
  return [...found].map((one) => ({ kind: "action", text: one.textContent ?? "", to: does(one) }));
}

/** `isWhole`: the tasks with this text are among them. */
function useEntries(text: string, actions: readonly Entry[]): { entries: Entry[]; isWhole: boolean } {
  const me = useMe();
  const [zone, now] = [useZone(), useNow()];
  const calm = useLater(text);
  const tasks = useCall("tasks.list", calm === "" ? undefined : { search: calm, limit: MOST });
  const found = calm === text ? tasks.data?.tasks : undefined;
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
    ...(me.define ? [{ kind: "page", text: "New task", to: "/tasks/new" } as const] : []),
  ];
  const entries = [
    ...fixed.filter((entry) => entry.text.toLowerCase().includes(text.toLowerCase())),
    ...(found ?? []).map(
      (task): Entry => ({
        ...{ kind: "task", text: shortName(task), to: taskPath(task) },
        says: task.display && displayText(task.display, (at) => bothTimes(at, zone, now, task.timezone)),
      }),
    ),
    ...named("owner", owners, ownerPath),
    ...named("queue", queues, (name) => `/tasks?queue=${encodeURIComponent(name)}`),
  ];
  return { entries, isWhole: text === "" || found !== undefined || tasks.error !== null };
}
