import { useQuery, useQueryClient } from "@tanstack/react-query";
import { CircleQuestionMark, Command } from "lucide";
import { useEffect, useRef, useState } from "react";
import { Link, Route, Switch, useLocation } from "wouter";
import { api, bindTo, ROOT, UNREACHABLE, useContact } from "../lib/api.js";
import { showBeside, useBeside } from "../lib/beside.js";
import { moveRow, pressButton, useKeys, useTypedAhead } from "../lib/keys.js";
import { later } from "../lib/later.js";
import { failsForAll, POLL_MS, startLive, usePresent } from "../lib/live.js";
import { type Me, MeContext } from "../lib/me.js";
import { setServerTime } from "../lib/time.js";
import { PAGES } from "../pages.js";
import { Boundary } from "../parts/boundary.js";
import { Button } from "../parts/button.js";
import { Opens } from "../parts/dialog.js";
import { Icon } from "../parts/icon.js";
import { Notices } from "../parts/notices.js";
import { Loaded, PageHead } from "../parts/page.js";
import { Beside } from "./beside.js";
import { Help } from "./help.js";
import { Nav, Tabs } from "./nav.js";
import { Search } from "./search.js";
import { Settings } from "./settings.js";

const Palette = later(() => import("./palette.js"));

/** Pages that `g` and a letter open. */
const GO: Readonly<Record<string, string>> = { n: "/", t: "/tasks", r: "/runs", e: "/errors", h: "/held" };
/** Letters that press the button of the open task or run that names them. */
const PRESS = ["r", "p", "e", "f"];

export function App() {
  const me = useQuery<Me, Error>({
    queryKey: ["/me", {}],
    refetchInterval: ({ state }) => (failsForAll(state.error) ? POLL_MS.alone : POLL_MS.live),
    meta: { live: false },
    queryFn: ({ signal }) => api("GET", "/me", { signal }),
  });
  const client = useQueryClient();
  useEffect(() => {
    if (me.data) setServerTime(me.data.now);
  }, [me.data]);
  const isKnown = me.data !== undefined;
  useEffect(() => (isKnown ? startLive(client) : undefined), [isKnown, client]);
  return (
    <Loaded of={me}>
      {(known) => {
        bindTo(ownerOf(known.owners));
        return (
          <MeContext value={known}>
            <Shell me={known} />
          </MeContext>
        );
      }}
    </Loaded>
  );
}

function Shell({ me }: { me: Me }) {
  const [helps, setHelps] = useState(false);
  const [menu, setMenu] = useState(false);
  const [palette, setPalette] = useState(false);
  const typed = useTypedAhead(palette);
  const [location, navigate] = useLocation();
  const live = usePresent(useQueryClient());
  const contact = useContact();
  const main = useRef<HTMLElement>(null);
  const went = useRef(0);
  const beside = useBeside();
  const move = (by: 1 | -1) => choose(moveRow(by));
  const letter = (key: string) => () => {
    const goes = Date.now() - went.current < 1_500;
    went.current = 0;
    if (!goes) pressButton(key);
    else if (GO[key]) navigate(GO[key]);
  };
  useKeys({
    "?": () => setHelps(true),
    "Ctrl k": () => setPalette(true),
    j: () => move(1),
    k: () => move(-1),
    ...Object.fromEntries([...Object.keys(GO), ...PRESS].map((key) => [key, letter(key)])),
    g: () => {
      went.current = Date.now();
    },
  });
  const first = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when the page changes
  useEffect(() => {
    // After a link, screen readers and the keyboard continue in the new page, unless a field of it has the focus.
    if (!first.current && !main.current?.contains(document.activeElement)) main.current?.focus();
    first.current = false;
    window.scrollTo(0, 0);
  }, [location]);
  const pages = (
    <Switch>
      {PAGES.map(({ path, Page }) => (
        <Route key={path} path={path}>
          {(params) => <Page params={params as Record<string, string>} />}
        </Route>
      ))}
      <Route>
        <PageHead title="This page does not exist." />
      </Route>
    </Switch>
  );
  return (
    <div className="shell">
      <a className="skip" href={`${location}#main`} onClick={(event) => focusMain(event, main.current)}>
        Skip to the content
      </a>
      <aside className="side" aria-label="Carillon" data-open={menu || undefined}>
        <Link href="/" className="brand">
          <img src={`${ROOT}carillon.svg`} width="24" height="24" alt="" />
          Carillon
        </Link>
        <Nav onGo={() => setMenu(false)} />
        <div className="foot">
          <p className="small soft any">{`${me.name} · ${me.namespace}`}</p>
          <Settings />
          {me.signsIn ? (
            <form method="post" action={`${ROOT}logout`}>
              <Button type="submit" look="plain">
                Sign out
              </Button>
            </form>
          ) : null}
        </div>
      </aside>
      <div className="stage">
        <header className="bar">
          <Button look="nav-open" aria-expanded={menu} onClick={() => setMenu(!menu)}>
            Menu
          </Button>
          <Search />
          <Button
            look="icon"
            aria-label="Go to, or do"
            title="Go to, or do (Ctrl K)"
            onClick={() => setPalette(true)}
          >
            <Icon of={Command} />
          </Button>
          <Owner me={me} />
          <span
            className="live small soft end"
            data-live={live}
            title={
              live
                ? "Changes are shown as they happen."
                : "No events arrive, or something cannot be read: the page tries again every few seconds."
            }
          >
            {live ? "live" : "every 5 s"}
          </span>
          <Button look="icon" aria-label="Keys and help" title="Keys and help" onClick={() => setHelps(true)}>
            <Icon of={CircleQuestionMark} />
          </Button>
        </header>
        <main id="main" tabIndex={-1} ref={main} className={beside && "shared"}>
          {/* biome-ignore lint/a11y: j and k do the same */}
          <div onClick={({ target, currentTarget }) => choose(rowAt(target as Element, currentTarget))}>
            {contact === "ok" ? null : (
              <p className="note" data-tone="bad" role="alert">
                {contact === "unreachable" ? (
                  `${UNREACHABLE} This page may be out of date; it tries again by itself.`
                ) : (
                  <>
                    Your session has ended. Sign in again in another window, and go on here: nothing that you
                    have entered is lost.{" "}
                    <a href={ROOT} target="_blank" rel="noreferrer">
                      Sign in
                    </a>
                  </>
                )}
              </p>
            )}
            <Tabs />
            <Boundary key={location}>{pages}</Boundary>
          </div>
          {beside === undefined ? null : <Beside path={beside}>{pages}</Beside>}
        </main>
      </div>
      {palette ? (
        <Opens onClose={() => setPalette(false)}>
          <Palette typed={typed} onClose={() => setPalette(false)} />
        </Opens>
      ) : null}
      {helps ? <Help onClose={() => setHelps(false)} /> : null}
      <Notices />
    </div>
  );
}

/** Shows the page of a row beside its list, if it is that of a task or run. */
function choose(row: Element | null | undefined): void {
  const path = row?.getAttribute("data-row");
  if (path?.startsWith("/")) showBeside(path);
}

/** The row that a click chooses: of those on a control, in a dialog, or at the end of marking a text, none. */
function rowAt(target: Element, page: Element): Element | null | undefined {
  const isElsewhere = target.closest("a, button, input, label, select, summary") ?? !page.contains(target);
  if (isElsewhere || !getSelection()?.isCollapsed) return undefined;
  return target.closest("tr, li")?.querySelector("[data-row]");
}

/** Choice of the owner whose tasks are shown, for a token that is bound to several owners. */
function Owner({ me: { owners = [] } }: { me: Me }) {
  if (owners.length < 2) return null;
  return (
    <select
      className="input owner"
      aria-label="Owner"
      value={ownerOf(owners)}
      onChange={(event) => {
        sessionStorage.setItem(OWNER_KEY, event.target.value);
        window.location.reload();
      }}
    >
      {owners.map((owner) => (
        <option key={owner}>{owner}</option>
      ))}
    </select>
  );
}

const OWNER_KEY = "carillon-owner";

/** The owner chosen in this tab; none if there is no choice. */
function ownerOf(owners: readonly string[] = []): string | undefined {
  const chosen = sessionStorage.getItem(OWNER_KEY) ?? "";
  return owners.length < 2 ? undefined : owners.includes(chosen) ? chosen : owners[0];
}

function focusMain(event: React.MouseEvent, main: HTMLElement | null): void {
  event.preventDefault();
  main?.focus();
}
