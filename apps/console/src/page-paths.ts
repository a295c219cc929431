/** Addresses of the pages, all answered with one document. `ui/src/pages.ts` has what each shows, and does not compile if one is missing. */
export const PAGE_PATHS = [
  "/",
  "/tasks",
  "/tasks/new",
  "/tasks/:queue/:owner/:id",
  "/tasks/:queue/:owner/:id/edit",
  "/runs",
  "/runs/:id",
  "/errors",
  "/load",
  "/held",
  "/resume",
  "/system",
  "/settings/alerts",
  "/settings/calendars",
  "/settings/rules",
  "/settings/tokens",
  "/settings/sets",
  "/settings/changes",
] as const;

export type PagePath = (typeof PAGE_PATHS)[number];

/** Former and short addresses, each with that of its page. */
export const MOVED = {
  "/settings": "/settings/alerts",
  "/freezes": "/held",
  "/alerts": "/settings/alerts",
  "/backfills": "/runs?filter=backfills",
  "/calendars": "/settings/calendars",
  "/sets": "/settings/sets",
  "/doctor": "/system",
  "/tokens": "/settings/tokens",
  "/rules": "/settings/rules",
  "/changes": "/settings/changes",
  "/owners/:owner": "/?owner=:owner",
};
