import { formatInstant } from "../../words/times.js";
import { TimesExcluder } from "../exclude/excluder.js";
import { AtOnce } from "../interval/at-once.js";
import { parseJitter } from "../jitter.js";
import { INSTANT, parseInstant, storedInstant } from "../text/instant.js";
import type { AtSchedule } from "../types.js";
import type { Kind } from "./kind.js";

/** A single time. */
export const at: Kind<AtSchedule, typeof INSTANT> = {
  key: "at",
  example: "2026-01-31T09:00:00Z",
  takes: [],
  shape: INSTANT,
  normalise: (value) => ({ at: storedInstant(value, "schedule.at") }),
  compile: (schedule) => ({ compiled: once(schedule), zone: "UTC", grain: 1 }),
  exclude(spec) {
    const times = once(spec);
    const excluders = [new TimesExcluder(times)];
    return { wholeDays: false, on: () => excluders, times: () => times };
  },
  label: (spec) => String(spec.at),
  canonical: textOf,
  describe: (spec) => `once, at ${textOf(spec)}`,
  lint({ jitter }, warn) {
    if (jitter === undefined || !("part" in parseJitter(jitter))) return;
    const message = "A single time has no gap to another, of which the jitter could be a part.";
    warn("JITTER_IGNORED", message, "Give the jitter as a duration, such as 10s, or leave it out.");
  },
};

function once(spec: AtSchedule): AtOnce {
  return new AtOnce(parseInstant(spec.at, "schedule.at"));
}

function textOf(spec: AtSchedule): string {
  return formatInstant(parseInstant(spec.at, "schedule.at"));
}
