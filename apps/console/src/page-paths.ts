/** Addresses of the pages, all answered with one document. `ui/src/pages.ts` has what each shows, and does not compile if one is missing. */
export const PAGE_PATHS = [
  "/",
  "/tasks",
  "/tasks/new",
  "/tasks/:queue/:owner/:id",
  "/tasks/:queue/:owner/:id/edit",
  "/load",
  "/runs",
  "/runs/:id",
  "/freezes",
  "/resume",
  "/alerts",
  "/system",
  "/calendars",
  "/sets",
  "/backfills",
  "/changes",
  "/doctor",
  "/tokens",
  "/rules",
  "/owners/:owner",
] as const;

export type PagePath = (typeof PAGE_PATHS)[number];
