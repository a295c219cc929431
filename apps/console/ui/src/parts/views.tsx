import { useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { words } from "../words.js";
import { Button } from "./button.js";

const w = words.views;
const KEY = "carillon-views";

interface View {
  readonly name: string;
  /** Address of a page with its filters. */
  readonly to: string;
}

/** The views that were saved in this browser. Others get one as what it is: an address. */
export function savedViews(): readonly View[] {
  return JSON.parse(localStorage.getItem(KEY) ?? "[]") as View[];
}

/** The saved filters of the open page, and a field that saves the current ones under a name. */
export function Views() {
  const [path] = useLocation();
  const [params] = useSearchParams();
  const [views, setViews] = useState(savedViews);
  const [name, setName] = useState("");
  const store = (to: readonly View[]) => {
    localStorage.setItem(KEY, JSON.stringify(to));
    setViews(to);
  };
  return (
    <details className="small">
      <summary>{w.title}</summary>
      <ul className="rows">
        {views
          .filter(({ to }) => to.startsWith(`${path}?`))
          .map((view) => (
            <li key={view.name}>
              <Link href={view.to}>{view.name}</Link>
              <Button
                look="plain end"
                aria-label={w.remove(view.name)}
                onClick={() => store(views.filter((one) => one !== view))}
              >
                ×
              </Button>
            </li>
          ))}
      </ul>
      <form
        className="inline"
        onSubmit={(event) => {
          event.preventDefault();
          store([...views.filter((one) => one.name !== name), { name, to: `${path}?${params}` }]);
          setName("");
        }}
      >
        <input
          className="input"
          aria-label={w.name}
          placeholder={w.name}
          required
          maxLength={60}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <Button type="submit" disabled={params.size === 0}>
          {w.save}
        </Button>
      </form>
    </details>
  );
}
