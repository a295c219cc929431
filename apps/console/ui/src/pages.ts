import type { ComponentType } from "react";
import { later } from "./lib/later.js";
import type { PageProps } from "./lib/page-props.js";
import { Now } from "./pages/now/now.js";
import { words } from "./words.js";

interface Page {
  /** Route, below the root of the console. The server answers each of these addresses with the same document. */
  readonly path: string;
  /** Its name in the navigation; absent: not listed there. */
  readonly nav?: string;
  /** Whether it begins a group of the navigation. */
  readonly gap?: boolean;
  /** Whether it concerns the whole namespace: hidden from a token that is bound to owners. */
  readonly namespace?: boolean;
  /** Whether only admins may see what it shows. */
  readonly admin?: boolean;
  readonly Page: ComponentType<PageProps>;
}

/** The pages that the navigation shows to a person. */
export function navOf({ wide, define }: { wide: boolean; define: boolean }): readonly Page[] {
  return PAGES.filter(
    ({ nav, namespace, admin }) => nav !== undefined && (wide || !namespace) && (define || !admin),
  );
}

const Edit = later(() => import("./pages/edit.js"));

/** The pages, in the order of the navigation. All but the first are loaded later. */
export const PAGES: readonly Page[] = [
  { path: "/", nav: words.nav.now, Page: Now },
  { path: "/tasks", nav: words.nav.tasks, Page: later(() => import("./pages/tasks.js")) },
  { path: "/tasks/new", Page: Edit },
  { path: "/tasks/:queue/:owner/:id/edit", Page: Edit },
  { path: "/tasks/:queue/:owner/:id", Page: later(() => import("./pages/task.js")) },
  { path: "/runs", nav: words.nav.runs, Page: later(() => import("./pages/runs.js")) },
  { path: "/runs/:id", Page: later(() => import("./pages/run.js")) },
  { path: "/timeline", nav: words.nav.timeline, Page: later(() => import("./pages/timeline.js")) },
  { path: "/freezes", nav: words.nav.freezes, Page: later(() => import("./pages/freezes.js")) },
  { path: "/resume", Page: later(() => import("./pages/resume.js")) },
  { path: "/alerts", nav: words.nav.alerts, Page: later(() => import("./pages/alerts.js")) },
  { path: "/backfills", nav: words.nav.backfills, Page: later(() => import("./pages/backfills.js")) },
  {
    ...{ path: "/calendars", nav: words.nav.calendars, namespace: true },
    Page: later(() => import("./pages/calendars.js")),
  },
  { path: "/sets", nav: words.nav.sets, namespace: true, Page: later(() => import("./pages/sets.js")) },
  {
    ...{ path: "/system", nav: words.nav.system, gap: true, namespace: true },
    Page: later(() => import("./pages/system.js")),
  },
  {
    ...{ path: "/doctor", nav: words.nav.doctor, namespace: true },
    Page: later(() => import("./pages/doctor.js")),
  },
  {
    ...{ path: "/access", nav: words.nav.access, namespace: true, admin: true },
    Page: later(() => import("./pages/access.js")),
  },
  {
    ...{ path: "/rules", nav: words.nav.rules, namespace: true },
    Page: later(() => import("./pages/rules.js")),
  },
  { path: "/owners/:owner", Page: later(() => import("./pages/owner.js")) },
  { path: "/changes", nav: words.nav.changes, Page: later(() => import("./pages/changes.js")) },
];
