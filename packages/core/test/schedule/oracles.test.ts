import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { isCarillonError } from "../../src/errors.js";
import {
  canonicalSchedule,
  compileSchedule,
  type DstChoice,
  type Schedule,
} from "../../src/schedule/index.js";

interface OracleCase {
  id: string;
  source: string;
  expr: string;
  base: string;
  timezone: string;
  canonical?: string;
  next?: string[];
  /** The answer of systemd, if it differs: it passes over an hour that comes twice. */
  systemd?: string[];
  error?: boolean | string;
  exhausted?: boolean;
}

function load(name: string): OracleCase[] {
  const text = readFileSync(new URL(`../fixtures/${name}.jsonl`, import.meta.url), "utf8");
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as OracleCase);
}

/** Each property of a case, as the engine answers it. */
function answer(
  syntax: "cron" | "calendar",
  { expr, base, timezone, next = [], canonical }: OracleCase,
  dst?: DstChoice,
) {
  const schedule: Schedule =
    syntax === "cron" ? { cron: expr, timezone, dst } : { calendar: expr, timezone, dst };
  const compiled = compileSchedule(schedule);
  const times: string[] = [];
  let after = Date.parse(base);
  // Asks for one more than expected, to see whether the schedule is exhausted.
  for (let i = 0; i <= next.length; i++) {
    const time = compiled.next(after);
    if (time === undefined)
      return { times, exhausted: true, canonical: canonical && canonicalSchedule(schedule) };
    if (i < next.length) times.push(new Date(time).toISOString().replace(".000Z", "Z"));
    after = time;
  }
  return { times, exhausted: false, canonical: canonical && canonicalSchedule(schedule) };
}

describe.each(["cron", "calendar"] as const)("%s oracle", (syntax) => {
  const cases = load(syntax);
  const valid = cases.filter((c) => c.error === undefined);
  const invalid = cases.filter((c) => c.error !== undefined);

  test("has at least one case", () => {
    expect(valid.length).toBeGreaterThan(500);
    expect(invalid.length).toBeGreaterThan(30);
  });

  test(`${valid.length} cases answer as recorded`, () => {
    const wrong = valid.flatMap((c) => {
      const expected = { times: c.next, exhausted: c.exhausted ?? false, canonical: c.canonical };
      let actual: unknown;
      try {
        actual = answer(syntax, c);
      } catch (error) {
        actual = String(error);
      }
      return JSON.stringify(actual) === JSON.stringify(expected) ? [] : [{ case: c, actual }];
    });
    expect(wrong).toEqual([]);
  });

  test(`${invalid.length} cases are refused with a code`, () => {
    const accepted = invalid.filter(({ expr, timezone }) => {
      try {
        compileSchedule(syntax === "cron" ? { cron: expr, timezone } : { calendar: expr, timezone });
        return true;
      } catch (error) {
        return !isCarillonError(error, "INVALID_SCHEDULE") && !isCarillonError(error, "INVALID_TIMEZONE");
      }
    });
    expect(accepted).toEqual([]);
  });
});

test("systemd passes over an hour that comes twice, as dst.overlap first does", () => {
  const differing = load("calendar").filter(({ systemd }) => systemd !== undefined);
  expect(differing.length).toBeGreaterThan(50);
  for (const one of differing)
    expect([one.id, answer("calendar", one, { overlap: "first" }).times]).toEqual([one.id, one.systemd]);
});
