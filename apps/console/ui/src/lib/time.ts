import type { Voice } from "@carillon/ops/words";
import { useSyncExternalStore } from "react";

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

export const LOCAL_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
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

const formats = new Map<string, Intl.DateTimeFormat>();

function format(at: number, timeZone: string, options: Intl.DateTimeFormatOptions): string {
  const key = timeZone + JSON.stringify(options);
  const known = formats.get(key) ?? new Intl.DateTimeFormat("en-GB", { timeZone, ...options });
  formats.set(key, known);
  return known.format(at);
}

const CLOCK = { hour: "2-digit", minute: "2-digit" } as const;
const DAY = { weekday: "short", day: "numeric", month: "short" } as const;

/** `09:00:05` today, `Tue 24 Nov, 09:00` on other days, with the year if it is another one. Seconds only if there are any. */
export function shortTime(at: number, timeZone: string, today: number): string {
  const clock = format(at, timeZone, at % 60_000 === 0 ? CLOCK : { ...CLOCK, second: "2-digit" });
  const day = (of: number) => format(of, timeZone, { dateStyle: "short" });
  if (day(at) === day(today)) return clock;
  const year = (of: number) => format(of, timeZone, { year: "numeric" });
  const date = format(at, timeZone, year(at) === year(today) ? DAY : { ...DAY, year: "numeric" });
  return `${date}, ${clock}`;
}

/** `Tue, 24 Nov 2026, 09:00:05 CET`; without the zone if it is not `named`. */
export function fullTime(at: number, timeZone: string, named = true): string {
  return format(at, timeZone, {
    ...DAY,
    year: "numeric",
    ...CLOCK,
    second: "2-digit",
    ...(named ? { timeZoneName: "short" } : {}),
  });
}

/** How sentences of `@carillon/ops/words` are shown on pages. */
export function useVoice(): Voice {
  const [timeZone, today] = [useZone(), useNow()];
  return { surface: "pages", time: (at) => shortTime(at, timeZone, today) };
}

/** A date of the zone, or a part of one. */
export function dateText(at: number, timeZone: string, parts: Intl.DateTimeFormatOptions): string {
  return format(at, timeZone, parts);
}

/** `2026-11-24`, by the calendar of the zone. */
export function dayOf(at: number, timeZone: string): string {
  return new Intl.DateTimeFormat("sv-SE", { timeZone }).format(at);
}

/** Start of a day as of `dayOf`, for the viewer's zone and UTC; undefined if it is not one. */
export function startOf(day: string, timeZone: string): number | undefined {
  const at = Date.parse(`${day}T00:00${timeZone === "UTC" ? "Z" : ""}`);
  return Number.isNaN(at) ? undefined : at;
}

/** The time of a `datetime-local` input, UTC ms, in the viewer's zone or UTC. */
export function typedTime(text: string, timeZone: string): number {
  return Date.parse(timeZone === "UTC" ? `${text}Z` : text);
}

/** A time as an input shows it: the inverse of `typedTime`. */
export function fieldTime(at: number, timeZone: string): string {
  const offset = timeZone === "UTC" ? 0 : new Date(at).getTimezoneOffset() * 60_000;
  return new Date(at - offset).toISOString().slice(0, 16);
}

export function isoTime(at: number): string {
  return new Date(at).toISOString();
}
