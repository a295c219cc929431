import type { Voice } from "@carillon/ops/words";
import { useSyncExternalStore } from "react";
import { bothTimes } from "./clock.js";

export * from "./clock.js";

/* Formats times that the server computed. The page's clock is the server's: each answer of `/me` sets it. */

let offset = 0;
let now = Date.now();
const listeners = new Set<() => void>();

export function setServerTime(serverNow: number): void {
  offset = serverNow - Date.now();
  tick();
}

function tick(): void {
  now = Math.floor((Date.now() + offset) / 1_000) * 1_000;
  for (const listener of listeners) listener();
}
setInterval(tick, 1_000);

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The server's time in whole seconds, UTC ms; renders again each second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

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
export const LOCAL_ZONE = RENAMED[browserZone] ?? browserZone;
const ZONE_KEY = "carillon-zone";
let zone = localStorage.getItem(ZONE_KEY) === "UTC" ? "UTC" : LOCAL_ZONE;
const zoneListeners = new Set<() => void>();

/** Time zone in which pages show times: the viewer's, or UTC. */
export function useZone(): string {
  return useSyncExternalStore(
    (listener) => {
      zoneListeners.add(listener);
      return () => zoneListeners.delete(listener);
    },
    () => zone,
  );
}

export function setZone(to: string): void {
  zone = to;
  localStorage.setItem(ZONE_KEY, to);
  for (const listener of zoneListeners) listener();
}

/** How sentences of `@carillon/ops/words` are shown on pages. @param own the zone of the task that they are about */
export function useVoice(own?: string): Voice {
  const [timeZone, today] = [useZone(), useNow()];
  return { surface: "pages", time: (at) => bothTimes(at, timeZone, today, own) };
}
