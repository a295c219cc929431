import { CarillonError, quote } from "../../errors.js";
import { windowsZone } from "./windows.js";

/**
 * Accepted zone names: those of the IANA database, in their own spelling. Intl alone accepts more: any case, and
 * abbreviations from ICU's past (`PST`, `IST` is Kolkata there) that mean different zones to different people.
 */
const LEGACY = new Set(
  "ACT AET AGT ART AST BET BST CAT CNT CST CTT EAT ECT IET IST JST MIT NET NST PLT PNT PRT PST SST VST".split(
    " ",
  ),
);
/** Aliases that are not spelled `Area/City_Name`; Intl does not tell how an alias is spelled. */
const ODD = new Set(
  (
    "CET CST6CDT Cuba EET EST EST5EDT Egypt Eire GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST Hongkong Iceland Iran " +
    "Israel Jamaica Japan Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland Portugal ROC ROK " +
    "Singapore Turkey UCT Universal W-SU WET Zulu Etc/GMT Etc/GMT0 Etc/Greenwich Etc/UCT Etc/UTC Etc/Universal Etc/Zulu " +
    "Antarctica/DumontDUrville Antarctica/McMurdo America/Argentina/ComodRivadavia Brazil/DeNoronha Chile/EasterIsland " +
    "Mexico/BajaNorte Mexico/BajaSur Australia/ACT Australia/LHI Australia/NSW America/Knox_IN"
  ).split(" "),
);
/**
 * Intl accepts any case, and these names do not look like cities, so their other spellings are refused by this list.
 */
const ODD_NAMES = new Set([...ODD].map((name) => name.toLowerCase()));
const SHAPE = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+){0,2}$/;
const CITY = /^(?:US|(?!Us\/)[A-Z][a-z]+)(?:\/[A-Z][a-z]+(?:[_-](?:[A-Z][a-z]*|of|es|au))*){1,2}$/;
const OFFSET = /^Etc\/GMT[+-]\d{1,2}$/;
const MAX_KNOWN = 2_000;

const known = new Map<string, string | undefined>();
let canonical: Map<string, string> | undefined;

/** Names by their lower case. */
function canonicalNames(): Map<string, string> {
  canonical ??= new Map(Intl.supportedValuesOf("timeZone").map((name) => [name.toLowerCase(), name]));
  return canonical;
}

/** The zone's name as it is stored (`UTC` for any spelling of that), or undefined when there is no such zone. */
export function knownZone(name: string): string | undefined {
  if (typeof name !== "string" || name.length > 64) return undefined;
  if (known.has(name)) return known.get(name);
  const found = lookUp(name);
  // Names come from callers: without a bound, invalid ones would fill the memory.
  if (known.size >= MAX_KNOWN) known.clear();
  known.set(name, found);
  return found;
}

function lookUp(name: string): string | undefined {
  if (name.toLowerCase() === "utc") return "UTC";
  if (!SHAPE.test(name) || LEGACY.has(name) || name.startsWith("SystemV/")) return undefined;
  if (!intlKnows(name)) return undefined;
  const own = canonicalNames().get(name.toLowerCase());
  if (own !== undefined) return own === name ? name : undefined;
  if (ODD_NAMES.has(name.toLowerCase())) return ODD.has(name) ? name : undefined;
  return OFFSET.test(name) || CITY.test(name) ? name : undefined;
}

function intlKnows(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Whether a zone is always UTC, for the fast path. */
export function isUtc(zone: string): boolean {
  return /^(?:UTC|GMT|Zulu|UCT|Universal|Greenwich|Etc\/(?:UTC|GMT|UCT|Zulu|Universal|Greenwich))$/.test(
    zone,
  );
}

/** @throws `INVALID_TIMEZONE` */
export function requireZone(name: string, field: string): string {
  const zone = knownZone(name);
  if (zone !== undefined) return zone;
  const given = String(name).slice(0, 64);
  const near = nearestZone(given) ?? windowsZone(given);
  throw new CarillonError("INVALID_TIMEZONE", `${quote(name)} is not a timezone.`, {
    field,
    remedy: near
      ? `Did you mean ${near}?`
      : "Use an IANA name such as Europe/Paris, America/New_York or UTC; offsets and abbreviations are not zones.",
  });
}

/** The zone that another spelling means: any case, spaces, or a city alone. Undefined if there is none. */
function nearestZone(name: string): string | undefined {
  const plain = name.trim().toLowerCase().replace(/\s+/g, "_");
  const listed = canonicalNames().get(plain);
  if (listed !== undefined) return listed;
  // Intl lists some zones by an old name only: Asia/Calcutta, not Asia/Kolkata.
  const parts = plain
    .split(/([/_-])/)
    .map((part) => (SMALL.has(part) ? part : part.replace(/^[a-z]/, upper)));
  const written = knownZone(parts.join(""));
  if (written !== undefined) return written;
  if (!/^[a-z_-]{3,}$/.test(plain)) return undefined;
  return [...canonicalNames()].find(([lower]) => lower.endsWith(`/${plain}`))?.[1];
}

const SMALL = new Set(["of", "es", "au"]);
const upper = (letter: string) => letter.toUpperCase();

/** Places of zones that are named like abbreviations, and a place that usually is meant. */
const ABBREVIATIONS: Readonly<Record<string, string>> = {
  EST: "America/New_York",
  MST: "America/Denver",
  HST: "Pacific/Honolulu",
  CET: "Europe/Berlin",
  MET: "Europe/Berlin",
  EET: "Europe/Helsinki",
  WET: "Europe/Lisbon",
};

/** The reason why a valid zone is probably not the intended one, and its remedy. Undefined for other zones. */
export function zoneDoubt(name: string): readonly [what: string, remedy: string] | undefined {
  const place = Object.hasOwn(ABBREVIATIONS, name) ? ABBREVIATIONS[name] : undefined;
  if (place !== undefined) {
    return [
      `${name} is an abbreviation, with the clock changes of no certain place: EST, for example, has none.`,
      `Give a place, such as ${place}.`,
    ];
  }
  const [, sign, hours] = /^Etc\/GMT([+-])(\d+)$/.exec(name) ?? [];
  if (hours === undefined || hours === "0") return undefined;
  const [is, other] = sign === "+" ? ["−", "-"] : ["+", "+"];
  return [
    `${name} is UTC${is}${hours}: the sign of these names is reversed.`,
    `For UTC${sign === "+" ? "+" : "−"}${hours} write Etc/GMT${other}${hours}; or give a place, which has clock changes.`,
  ];
}
