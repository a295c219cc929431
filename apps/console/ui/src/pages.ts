import type { ComponentType } from "react";
import type { PagePath } from "../../src/page-paths.js";
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
const BY_PATH: Record<PagePath, Omit<Page, "path">> = {
  "/": { nav: words.now.title, Page: Now },
  "/tasks": { nav: words.list.title, Page: later(() => import("./pages/tasks.js")) },
  "/tasks/new": { Page: Edit },
  "/tasks/:queue/:owner/:id/edit": { Page: Edit },
  "/tasks/:queue/:owner/:id": { Page: later(() => import("./pages/task.js")) },
  "/runs": { nav: words.runs_.title, Page: later(() => import("./pages/runs.js")) },
  "/runs/:id": { Page: later(() => import("./pages/run.js")) },
  "/load": { nav: words.load.title, Page: later(() => import("./pages/load.js")) },
  "/freezes": { nav: words.freezes.title, Page: later(() => import("./pages/freezes.js")) },
  "/resume": { Page: later(() => import("./pages/resume.js")) },
  "/alerts": { nav: words.alerts.title, Page: later(() => import("./pages/alerts.js")) },
  "/backfills": { nav: words.backfills.title, Page: later(() => import("./pages/backfills.js")) },
  "/calendars": {
    ...{ nav: words.calendars.title, namespace: true },
    Page: later(() => import("./pages/calendars.js")),
  },
  "/sets": { nav: words.sets.title, namespace: true, Page: later(() => import("./pages/sets.js")) },
  "/system": {
    ...{ nav: words.system.title, gap: true, namespace: true },
    Page: later(() => import("./pages/system.js")),
  },
  "/doctor": { nav: words.doctor.title, namespace: true, Page: later(() => import("./pages/doctor.js")) },
  "/tokens": {
    ...{ nav: words.tokens.title, namespace: true, admin: true },
    Page: later(() => import("./pages/tokens.js")),
  },
  "/rules": { nav: words.rules.title, namespace: true, Page: later(() => import("./pages/rules.js")) },
  "/owners/:owner": { Page: later(() => import("./pages/owner.js")) },
  "/changes": { nav: words.changes.title, Page: later(() => import("./pages/changes.js")) },
};

export const PAGES = Object.entries(BY_PATH).map(([path, page]): Page => ({ path, ...page }));
