import {
  Activity,
  CalendarClock,
  ChartColumn,
  CirclePause,
  type IconNode,
  Play,
  Server,
  Settings,
  TriangleAlert,
} from "lucide";
import type { ComponentType } from "react";
import type { PagePath } from "../../src/page-paths.js";
import { later } from "./lib/later.js";
import type { PageProps } from "./lib/page-props.js";
import { Now } from "./pages/now/now.js";

interface Page {
  /** Route, below the root of the console. The server answers each of these addresses with the same document. */
  readonly path: string;
  /** Its name and icon, if it is an entry of the navigation. */
  readonly nav?: string;
  readonly icon?: IconNode;
  /** Its name, if it is a tab of the settings. */
  readonly tab?: string;
  /** Whether it concerns the whole namespace: hidden from a token that is bound to owners. */
  readonly namespace?: boolean;
  /** Whether only admins may see what it shows. */
  readonly admin?: boolean;
  readonly Page: ComponentType<PageProps>;
}

/** The pages of the navigation, or the tabs of the settings, that a person may see. */
export function pagesOf(kind: "nav" | "tab", { wide, define }: { wide: boolean; define: boolean }) {
  return PAGES.flatMap(({ [kind]: name, path, icon = [], namespace, admin }) =>
    name !== undefined && (wide || !namespace) && (define || !admin) ? [{ path, name, icon }] : [],
  );
}

const Edit = later(() => import("./pages/edit.js"));

/** The pages, in the order of the navigation and of the tabs. All but the first are loaded later. */
const BY_PATH: Record<PagePath, Omit<Page, "path">> = {
  "/": { nav: "Now", icon: Activity, Page: Now },
  "/tasks": { nav: "Tasks", icon: CalendarClock, Page: later(() => import("./pages/tasks.js")) },
  "/tasks/new": { Page: Edit },
  "/tasks/:queue/:owner/:id/edit": { Page: Edit },
  "/tasks/:queue/:owner/:id": { Page: later(() => import("./pages/task.js")) },
  "/runs": { nav: "Runs", icon: Play, Page: later(() => import("./pages/runs.js")) },
  "/runs/:id": { Page: later(() => import("./pages/run.js")) },
  "/errors": { nav: "Errors", icon: TriangleAlert, Page: later(() => import("./pages/errors.js")) },
  "/load": { nav: "Load", icon: ChartColumn, Page: later(() => import("./pages/load.js")) },
  "/held": { nav: "Held", icon: CirclePause, Page: later(() => import("./pages/held.js")) },
  "/resume": { Page: later(() => import("./pages/resume.js")) },
  "/system": {
    ...{ nav: "System", icon: Server, namespace: true },
    Page: later(() => import("./pages/system.js")),
  },
  "/settings/alerts": {
    ...{ nav: "Settings", icon: Settings, tab: "Alerts" },
    Page: later(() => import("./pages/alerts.js")),
  },
  "/settings/calendars": {
    ...{ tab: "Calendars", namespace: true },
    Page: later(() => import("./pages/calendars.js")),
  },
  "/settings/rules": {
    ...{ tab: "Rules", namespace: true },
    Page: later(() => import("./pages/rules.js")),
  },
  "/settings/tokens": {
    ...{ tab: "Tokens", namespace: true, admin: true },
    Page: later(() => import("./pages/tokens.js")),
  },
  "/settings/sets": {
    ...{ tab: "Sets", namespace: true },
    Page: later(() => import("./pages/sets.js")),
  },
  "/settings/changes": { tab: "Changes", Page: later(() => import("./pages/changes.js")) },
};

export const PAGES = Object.entries(BY_PATH).map(([path, page]): Page => ({ path, ...page }));
