import { ExternalLink } from "lucide";
import { useEffect } from "react";
import { Link, useLocation } from "wouter";
import { ROOT } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { useStanding } from "../lib/standing.js";
import { pagesOf } from "../pages.js";
import { Icon } from "../parts/icon.js";

/** The pages, with what waits in them, and Bull Board. The icon of the window shows the state. */
export function Nav({ onGo }: { onGo: () => void }) {
  const me = useMe();
  const [location] = useLocation();
  const { failing, held, mark } = useStanding();
  useEffect(() => {
    document.querySelector("link[rel=icon]")?.setAttribute("href", `${ROOT}carillon.svg?state=${mark}`);
  }, [mark]);
  const roomOf = (path: string) => path.split("/")[1];
  const waits: Readonly<Record<string, readonly [number, string]>> = {
    "/errors": [failing, `${failing.toLocaleString("en")} failing`],
    "/held": [held, `${held.toLocaleString("en")} held`],
  };
  return (
    <nav className="nav" aria-label="Pages">
      <ul>
        {pagesOf("nav", me).map(({ path, name, icon }) => {
          const [count = 0, text] = waits[path] ?? [];
          return (
            <li key={path}>
              <Link
                href={path}
                onClick={onGo}
                aria-current={roomOf(path) === roomOf(location) ? "page" : undefined}
              >
                <Icon of={icon} />
                {name}
                {count > 0 ? (
                  <span className="count" title={text}>
                    {count.toLocaleString("en")}
                  </span>
                ) : null}
              </Link>
            </li>
          );
        })}
        {me.bullBoard === undefined ? null : (
          <li>
            <a href={`${ROOT}${me.bullBoard}`}>
              <Icon of={ExternalLink} />
              Bull Board
            </a>
          </li>
        )}
      </ul>
    </nav>
  );
}

/** The tabs of the settings, on each of them. */
export function Tabs() {
  const me = useMe();
  const [location] = useLocation();
  if (!location.startsWith("/settings/")) return null;
  return (
    <nav className="chips tabs" aria-label="Settings">
      {pagesOf("tab", me).map(({ path, name }) => (
        <Link key={path} className="chip" href={path} aria-current={path === location ? "page" : undefined}>
          {name}
        </Link>
      ))}
    </nav>
  );
}
