import { Link, useLocation } from "wouter";
import { ROOT } from "../lib/api.js";
import { useMe } from "../lib/me.js";
import { navOf } from "../pages.js";

/** The pages, and Bull Board. */
export function Nav({ onGo }: { onGo: () => void }) {
  const me = useMe();
  const [location] = useLocation();
  const isCurrent = (path: string) => (path === "/" ? location === "/" : location.startsWith(path));
  return (
    <nav className="nav" aria-label="Pages">
      <ul>
        {navOf(me).map(({ path, nav, gap }) => (
          <li key={path} className={gap ? "gap" : undefined}>
            <Link href={path} onClick={onGo} aria-current={isCurrent(path) ? "page" : undefined}>
              {nav}
            </Link>
          </li>
        ))}
        {me.bullBoard === undefined ? null : (
          <li>
            <a href={`${ROOT}${me.bullBoard}`}>Bull Board</a>
          </li>
        )}
      </ul>
    </nav>
  );
}
