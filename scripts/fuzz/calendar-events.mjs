// Random texts in systemd's OnCalendar grammar; a few of them broken.
export const EVENT_ZONES = [
  "UTC",
  "UTC",
  "Europe/Paris",
  "America/New_York",
  "America/Sao_Paulo",
  "Asia/Kolkata",
  "Australia/Lord_Howe",
  "Pacific/Apia",
];

const SHORTHANDS = [
  "minutely",
  "hourly",
  "daily",
  "weekly",
  "monthly",
  "quarterly",
  "semiannually",
  "yearly",
];
const DAYS = ["Mon", "tue", "Wednesday", "Thu", "FRI", "Sat", "sunday"];

/** @param random returns numbers from 0 to below 1 */
export function randomEvent(random) {
  const below = (n) => Math.floor(random() * n);
  const chance = (p) => random() < p;
  const between = (min, max) => min + below(max - min + 1);
  const pad = (n) => (chance(0.5) ? String(n).padStart(2, "0") : String(n));

  const component = (min, max) => {
    const a = between(min, max);
    const b = between(min, max);
    const step = chance(0.3) ? `/${between(1, Math.max(1, Math.ceil((max - min) / 2)))}` : "";
    if (chance(0.4)) return `${pad(Math.min(a, b))}..${pad(Math.max(a, b))}${step}`;
    return `${pad(a)}${step}`;
  };
  const chain = (min, max, star) => {
    if (chance(star)) return chance(0.2) ? `*/${between(1, max - min)}` : "*";
    return Array.from({ length: 1 + below(3) }, () => component(min, max)).join(",");
  };
  const weekdays = () =>
    Array.from({ length: 1 + below(3) }, () => {
      const a = below(7);
      const b = below(7);
      return chance(0.4) ? `${DAYS[Math.min(a, b)]}..${DAYS[Math.max(a, b)]}` : DAYS[a];
    }).join(",");
  const date = () => {
    const mark = chance(0.15) ? "~" : "-";
    const day = mark === "~" ? chain(1, 28, 0.2) : chain(1, 31, 0.4);
    const year = chance(0.5) ? `${chance(0.7) ? "*" : component(1990, 2060)}-` : "";
    return `${year}${chain(1, 12, 0.6)}${mark}${day}`;
  };
  const seconds = () => (chance(0.1) ? `${below(60)}.${between(1, 999)}` : chain(0, 59, 0.2));
  const time = () => `${chain(0, 23, 0.3)}:${chain(0, 59, 0.3)}${chance(0.4) ? `:${seconds()}` : ""}`;

  if (chance(0.02)) return SHORTHANDS[below(SHORTHANDS.length)];
  const parts = [chance(0.4) ? weekdays() : "", chance(0.7) ? date() : "", chance(0.7) ? time() : ""];
  const text = parts.filter(Boolean).join(" ") || "*-*-*";
  return chance(0.05) ? broken(text, below) : text;
}

/** Breaks a text: one character removed, added, or replaced. */
function broken(text, below) {
  const at = below(text.length);
  const other = "0123456789*/-~.:, aZ"[below(20)];
  return [
    text.slice(0, at) + text.slice(at + 1),
    text.slice(0, at) + other + text.slice(at),
    text.slice(0, at) + other + text.slice(at + 1),
  ][below(3)];
}
