import { createContext } from "react";
import { navigate, useLocationProperty } from "wouter/use-browser-location";
import { ROOT } from "./api.js";
import { useMedia } from "./store.js";

/*
 * The page of a task or run may stand beside a list. Its address is the fragment of the list's: `/tasks?tag=a#/tasks/q/owner/id?explain=1`.
 * So a reload keeps it, and another question, which is another address, begins without it.
 */

/** Pages that may stand beside a list: those of tasks and of runs, with what they keep in their address. */
const PAGE = /^(\/tasks\/[^/?]+\/[^/?]+\/[^/?]+|\/runs\/[^/?]+)(\?.*)?$/;
/** Screens with room for two pages. */
const WIDE = matchMedia("(min-width: 64rem)");
const BASE = ROOT.replace(/\/$/, "");

const fragment = () => PAGE.exec(location.hash.slice(1)) ?? [];
const pathBeside = () => fragment()[1];

/** Path of the page beside the list; undefined if there is none, or no room for it. */
export function useBeside(): string | undefined {
  const path = useLocationProperty(pathBeside);
  return useMedia(WIDE) ? path : undefined;
}

/** Shows the page of a task or run beside the list; undefined: none. Where there is no room, nothing happens. */
export function showBeside(to: string | undefined, options: { replace?: boolean } = { replace: true }): void {
  const { pathname, search } = location;
  if (WIDE.matches) navigate(pathname + search + (to === undefined ? "" : `#${to}`), options);
}

const usePath = () => BASE + (useLocationProperty(pathBeside) ?? "");
const useSearch = () => useLocationProperty(() => fragment()[2] ?? "");

const go: typeof navigate = (to, options) => {
  const path = String(to).slice(BASE.length);
  if (PAGE.test(path)) showBeside(path, options ?? {});
  // The list of a task that is deleted: its filters stay.
  else if (to === location.pathname) showBeside(undefined);
  else navigate(to, options);
};

/** A router of its own for the page beside the list: its links to tasks and runs lead on there, all others leave the list. */
export const besideRouter = {
  base: BASE,
  hook: (): [string, typeof navigate] => [usePath(), go],
  searchHook: useSearch,
};

/** Whether a part is shown beside a list, rather than as the page. */
export const IsBeside = createContext(false);
