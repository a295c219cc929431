import { duration, type Voice } from "@carillon/ops/words";
import { bothTimes } from "./clock.js";
import { kept, store } from "./store.js";

export * from "./clock.js";

/* Formats times that the server computed. The page's clock is the server's: each answer of `/me` sets it. */

let offset = 0;
const now = store(Date.now());

export function setServerTime(serverNow: number): void {
  offset = serverNow - Date.now();
  tick();
}

function tick(): void {
  now.set(Math.floor((Date.now() + offset) / 1_000) * 1_000);
}
setInterval(tick, 1_000);

/** The server's time in whole seconds, UTC ms; renders again each second. */
export const useNow = now.useValue;

/** Present names of zones that browsers still call by their former ones. */
const RENAMED: Readonly<Record<string, string>> = {
  "Asia/Calcutta": "Asia/Kolkata",
  "Asia/Katmandu": "Asia/Kathmandu",
  "Asia/Rangoon": "Asia/Yangon",
  "Asia/Saigon": "Asia/Ho_Chi_Minh",
  "Europe/Kiev": "Europe/Kyiv",
  "America/Buenos_Aires": "America/Argentina/Buenos_Aires",
  "America/Godthab": "America/Nuuk",
};
const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const local = RENAMED[browserZone] ?? browserZone;

/** Time zone in which pages show times: the viewer's, or UTC. */
export const zone = kept("carillon-zone", [local, "UTC"]);
export const useZone = zone.useValue;

interface Span {
  readonly started?: number | undefined;
  readonly finished?: number | undefined;
}

/** The duration of a run. Undefined: it never started, or is not over. */
export function tookText({ started, finished }: Span): string | undefined {
  return started === undefined || finished === undefined ? undefined : duration(finished - started);
}

/** How sentences of `@carillon/ops/words` are shown on pages. @param own the zone of the task that they are about */
export function useVoice(own?: string): Voice {
  const [timeZone, today] = [useZone(), useNow()];
  return { surface: "pages", time: (at) => bothTimes(at, timeZone, today, own) };
}
