import { operatorOf } from "@carillon/ops";
import { eventually } from "@carillon/testing";
import { afterAll, afterEach, beforeAll, describe, expect } from "vitest";
import { storeMarkup } from "./markup.js";
import { problems, startWorld, type World } from "./world.js";

const binary = process.env["CARILLON_CHROMIUM"];
if (!binary) console.warn("apps/console/test/e2e is skipped: there is no Chromium. Set CARILLON_CHROMIUM.");

const PAGES = {
  now: "/",
  tasks: "/tasks",
  task: "/tasks/q/system/fails",
  beside: "/tasks#/tasks/q/system/fails",
  // The runs of the backfill, which are in the past.
  durations: `/tasks/q/system/past?from=${Date.UTC(2023, 11, 31)}&to=${Date.UTC(2024, 0, 2)}`,
  set: "/tasks/q/system/in-set",
  edit: "/tasks/q/system/fails/edit",
  new: "/tasks/new",
  runs: "/runs",
  load: "/load",
  errors: "/errors",
  held: "/held",
  resume: "/resume?owner=acme",
  backfills: "/runs?filter=backfills",
  trends: "/runs?filter=trends",
  system: "/system",
  calendars: "/settings/calendars",
  sets: "/settings/sets",
  rules: "/settings/rules",
  alerts: "/settings/alerts",
  owner: "/?owner=in-disguise",
  // Those of one task: other tests make more than fit on the page.
  changes: "/settings/changes?task=in-disguise/in-disguise",
  tokens: "/settings/tokens",
};
/** The world of the file that runs in this process. */
export let world: World;
/** Addresses of all pages, by name. */
export let pages: Record<string, string>;
/** Minute of an hour in which no test of the file runs: tasks are due then. */
export let minute: string;
const later = () => ({ cron: `${minute} * * * *`, timezone: "UTC" });

export const put = (id: string, more: object = {}) =>
  world.client.put({ id, queue: "q", type: "ok", schedule: later(), ...more } as never);
export const settled = async (id: string) =>
  eventually(async () => (await world.client.runs.list(id)).some(({ state }) => state === "final"));

/** Tests of the console's pages in a browser, in a world of their own: each page has something to show. */
export function inABrowser(name: string, tests: () => void): void {
  describe.skipIf(!binary)(`in a browser: ${name}`, () => {
    beforeAll(furnish);
    afterAll(() => world?.stop());
    afterEach(() => expect(problems.splice(0)).toEqual([]));
    tests();
  });
}

async function furnish(): Promise<void> {
  minute = String((new Date().getUTCMinutes() + 30) % 60).padStart(2, "0");
  world = await startWorld(binary!);
  await put("fine");
  await put("fails", { type: "bad", description: `<i>one</i>${"x".repeat(490)}` });
  await put("slow", { type: "slow" });
  await put("lonely", { type: "nobody", queue: "alone" });
  await put("paused", { owner: "acme", tags: ["tenant"] });
  await put("single", { schedule: { at: "2099-01-01T00:00:00Z" } });
  await put("bounded", { schedule: { ...later(), start: "2099-01-01T00:00:00Z" } });
  await world.client.pause("acme/paused", { note: "until <b>Friday</b>" });
  await world.client.trigger("fails");
  await world.client.trigger("fine");
  await Promise.all([settled("fails"), settled("fine")]);
  await operatorOf(world.client).calendars.put({ name: "holidays", entries: ["2030-12-25"] });
  const inSet = { id: "in-set", queue: "q", type: "ok", schedule: { manual: true } } as const;
  const set = { set: "billing", version: "1.4", tasks: [inSet] };
  await operatorOf(world.client).sets.apply(set, { by: "deploy 42" });
  await world.client.put({ ...inSet, priority: 5 }, { by: "ann" });
  await operatorOf(world.client).freezes.put({ owner: "globex", note: "an audit" });
  pages = { ...PAGES, ...(await storeMarkup(world.client)) };
}

/** Rows for the pages of backfills and tokens. */
export async function furnishAll(): Promise<void> {
  const { backfills, tokens } = operatorOf(world.client);
  await put("past", { schedule: { every: "1m" }, overlap: "allow" });
  await backfills.start({ id: "past", from: "2024-01-01T00:00:00Z", to: "2024-01-01T00:04:00Z" });
  await tokens.create({ name: "acme", role: "viewer", owners: ["acme"] });
}
