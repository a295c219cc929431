import { useEffect, useRef, useState } from "react";
import { useLocation, useSearchParams } from "wouter";
import { useKeys } from "../lib/keys.js";
import { changed } from "../lib/request.js";

/** Delay after the last key before the list is read, in ms. */
const PATIENCE_MS = 250;

/** The search for tasks: on their page it filters while typing, elsewhere Enter opens that page. */
export function Search() {
  const field = useRef<HTMLInputElement>(null);
  const [location, navigate] = useLocation();
  const [params, setParams] = useSearchParams();
  const onList = location === "/tasks";
  const asked = onList ? (params.get("search") ?? "") : "";
  const [text, setText] = useState(asked);
  useEffect(() => setText(asked), [asked]);
  useKeys({ "/": () => field.current?.select() });

  useEffect(() => {
    if (!onList || text === asked) return;
    const timer = setTimeout(() => {
      setParams(changed({ search: text }), { replace: true });
    }, PATIENCE_MS);
    return () => clearTimeout(timer);
  }, [text, asked, onList, setParams]);

  return (
    <search>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!onList) navigate(`/tasks?${new URLSearchParams({ search: text })}`);
        }}
      >
        <input
          ref={field}
          className="input"
          type="search"
          aria-label="Search tasks"
          placeholder="Search tasks  /"
          value={text}
          maxLength={128}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") field.current?.blur();
          }}
        />
      </form>
    </search>
  );
}
