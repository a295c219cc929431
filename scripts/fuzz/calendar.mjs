// Random calendar events, answered by our engine and by `systemd-analyze calendar`: accepted or refused, normalised form,
// next times. Differences that are known defects of systemd are skipped by rule and counted; any other one fails.
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { randomOf } from "../lib/random.mjs";
import { EVENT_ZONES, randomEvent } from "./calendar-events.mjs";

const { values: options } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    cases: { type: "string", default: "2000" },
    verbose: { type: "boolean", default: false },
  },
});
const { canonicalSchedule, compileSchedule, isCarillonError } = await import(
  new URL("../../packages/core/dist/index.js", import.meta.url).href
);

const version = spawnSync("systemd-analyze", ["--version"], { encoding: "utf8" });
if (version.error || version.status !== 0) {
  console.error(
    "systemd-analyze is not installed here: nothing to compare with. Debian and Ubuntu have it in `systemd`.",
  );
  process.exit(3);
}

const BATCH = 40;
const COUNT = 5;
const DAY = 86_400_000;
/** Distance from a clock change below which systemd's answers cannot be trusted. */
const NEAR = 26 * 3_600_000;

const random = randomOf(Number(options.seed));
const pick = (list) => list[Math.floor(random() * list.length)];

/** Asks systemd about many expressions: `{ canonical, next }`, or undefined for one that it refuses. */
function askSystemd(expressions, base) {
  const args = ["calendar", `--iterations=${COUNT}`, `--base-time=@${base / 1_000}`, "--", ...expressions];
  const env = { ...process.env, TZ: "UTC", LC_ALL: "C", SYSTEMD_COLORS: "0" };
  const { stdout, stderr } = spawnSync("systemd-analyze", args, {
    encoding: "utf8",
    env,
    maxBuffer: 1 << 26,
  });
  const answers = new Map();
  for (const [, expression] of stderr.matchAll(/^Failed to determine next elapse for '(.*)':/gm)) {
    answers.set(expression, { canonical: "", next: [], stuck: true });
  }
  for (const block of stdout.split(/\n\s*\n/)) {
    const lines = block.split("\n").map((line) => /^\s*([^:]+): (.*)$/.exec(line));
    const value = (name) => lines.find((line) => line?.[1] === name)?.[2];
    const canonical = value("Normalized form");
    if (canonical === undefined) continue;
    const times = lines
      .filter((line) => line !== null)
      .filter(([, name]) => /^(Next elapse|Iter\. #\d+)$/.test(name))
      .map(([, , text]) => text);
    const next = times
      .filter((text) => text !== "never")
      .map((text) => Date.parse(`${text.slice(4, 14)}T${text.slice(15, 23)}Z`));
    // Without an original form, it is the normalised one.
    answers.set(value("Original form") ?? canonical, { canonical, next, exhausted: times.includes("never") });
  }
  return answers;
}

function askUs(expression, base) {
  try {
    const schedule = { calendar: expression };
    // systemd passes over the second pass of an hour that comes twice.
    const compiled = compileSchedule({ ...schedule, dst: { overlap: "first" } });
    const next = [];
    for (let t = compiled.next(base); t !== undefined && next.length < COUNT; t = compiled.next(t)) {
      // systemd prints whole seconds.
      next.push(Math.floor(t / 1_000) * 1_000);
    }
    return { canonical: canonicalSchedule(schedule), next, exhausted: next.length < COUNT };
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    return { error };
  }
}

const formats = new Map();
function offsetAt(utc, timeZone) {
  let format = formats.get(timeZone);
  if (!format) {
    format = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });
    formats.set(timeZone, format);
  }
  return Date.parse(`${format.format(utc).replace(" ", "T")}Z`) - utc;
}

function nearClockChange(utc, zone) {
  return zone !== "UTC" && offsetAt(utc - NEAR, zone) !== offsetAt(utc + NEAR, zone);
}

/**
 * Reason why a difference is no fault of ours, or undefined.
 *
 * - `sub-millisecond`: our times are milliseconds; finer seconds are refused, with a reason.
 * - `shrinking-month`: in a list of days from the end of the month, systemd takes 3 off the largest day for each entry
 *   (28, 25, 22, …) instead of once, and refuses what is beyond.
 * - `infinite-loop`: systemd finds itself going in circles around a clock change, and says so (EDEADLK).
 * - `contradicts-itself`: systemd passes over a time that it names itself when asked from a second before it, or with
 *   each open repetition written as the range that it is (`26/13` as `26..52/13`): of minutes it makes 26, 39, 52 and
 *   65, which is minute 5 of the next hour.
 * - `clock-change`: the first time that differs, or the one before it, lies near a clock change. systemd searches local
 *   time with mktime, which shifts times inside of a gap and forgets which pass of an overlap it was in.
 * - `gives-up`: systemd stops after a fixed number of steps, and says never of sparse dates that do come.
 */
function knownDefect(expression, zone, base, theirs, ours) {
  if (ours.error) {
    return ours.error.message.includes("finer than milliseconds") ? "sub-millisecond" : undefined;
  }
  if (theirs?.stuck) return "infinite-loop";
  if (theirs === undefined) return shrinks(ours.canonical) ? "shrinking-month" : undefined;
  if (theirs.canonical !== ours.canonical) return undefined;
  const i = firstDifference(theirs.next, ours.next);
  const [their, our] = [theirs.next[i], ours.next[i]];
  const around = [their, our, i === 0 ? base : ours.next[i - 1]].filter((t) => t !== undefined);
  if (around.some((t) => nearClockChange(t, zone))) return "clock-change";
  if (our === undefined) return undefined;
  if (their !== undefined && their < our) return undefined;
  const spellings = [expression, closed(ours.canonical)];
  const again = askSystemd(spellings, our - 1_000);
  if (spellings.some((spelling) => again.get(spelling)?.next[0] === our)) return "contradicts-itself";
  return their === undefined && our - (theirs.next.at(-1) ?? base) > 400 * DAY ? "gives-up" : undefined;
}

/** The same event without open repetitions, years and days from the end aside. */
function closed(canonical) {
  const close = (chain, max) =>
    chain.replace(/(?<![\d./])(\d+)\/(\d+)(?![\d.])/g, (_, from, step) => {
      const last = Number(from) + Math.floor((max - from) / step) * step;
      return last === Number(from) ? from : `${from}..${last}/${step}`;
    });
  return canonical
    .replace(/-([^-~ ]+)([-~])(\S+)/, (_, months, mark, days) => {
      return `-${close(months, 12)}${mark}${mark === "-" ? close(days, 31) : days}`;
    })
    .replace(/ ([^: ]+):([^: ]+):([^: ]+)/, (_, hours, minutes, seconds) => {
      return ` ${close(hours, 23)}:${close(minutes, 59)}:${close(seconds, 59)}`;
    });
}

function shrinks(canonical) {
  const days = /~(\S+)/.exec(canonical)?.[1].split(",") ?? [];
  return days.some((entry, i) => entry.match(/\d+/g)?.some((n) => Number(n) > 28 - 3 * i));
}

function firstDifference(a, b) {
  let i = 0;
  while (i < a.length && i < b.length && a[i] === b[i]) i++;
  return i;
}

function same(theirs, ours) {
  if (theirs === undefined || ours.error) return theirs === undefined && ours.error !== undefined;
  return theirs.canonical === ours.canonical && JSON.stringify(theirs.next) === JSON.stringify(ours.next);
}

const counts = { cases: 0, accepted: 0, refused: 0, skipped: {}, different: 0 };
const cases = Number(options.cases);
const show = (answer) =>
  answer === undefined
    ? "refused"
    : answer.stuck
      ? "stuck"
      : answer.error
        ? `refused: ${answer.error.message}`
        : `${answer.canonical} -> ${answer.next.map((t) => new Date(t).toISOString().slice(0, 19)).join(" ") || "never"}`;

while (counts.cases < cases) {
  const base = Math.floor((Date.UTC(1990, 0, 1) + random() * 50 * 365.25 * DAY) / 1_000) * 1_000;
  const zone = pick(EVENT_ZONES);
  const batch = new Set();
  while (batch.size < Math.min(BATCH, cases - counts.cases)) {
    const event = randomEvent(random);
    batch.add(zone === "UTC" && random() < 0.5 ? event : `${event} ${zone}`);
  }
  const answers = askSystemd([...batch], base);
  for (const expression of batch) {
    counts.cases++;
    const theirs = answers.get(expression);
    const ours = askUs(expression, base);
    counts[theirs === undefined ? "refused" : "accepted"]++;
    if (same(theirs, ours)) continue;
    const rule = knownDefect(expression, zone, base, theirs, ours);
    if (rule !== undefined) {
      counts.skipped[rule] = (counts.skipped[rule] ?? 0) + 1;
      if (!options.verbose) continue;
    } else {
      counts.different++;
    }
    console.log(
      `${rule === undefined ? "DIFFERENT" : `skipped (${rule})`} ${JSON.stringify(expression)} after ${new Date(base).toISOString()}`,
    );
    console.log(`  systemd: ${show(theirs)}\n  ours:    ${show(ours)}`);
  }
}

const skipped = Object.entries(counts.skipped).map(([rule, n]) => `${rule} ${n}`);
console.log(
  `${counts.cases} cases of seed ${options.seed} against ${version.stdout.split("\n")[0]}: ${counts.accepted} accepted, ` +
    `${counts.refused} refused by it; skipped by rule: ${skipped.join(", ") || "none"}; different: ${counts.different}`,
);
process.exitCode = counts.different > 0 ? 1 : 0;
