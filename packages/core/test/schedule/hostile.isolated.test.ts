import { expect, type MockInstance, test, vi } from "vitest";
import { parseItem } from "../../src/schedule/cron/item.js";
import { daysMatching } from "../../src/schedule/fields/day-rule.js";
import { matchesLocal, nextLocal, prevLocal } from "../../src/schedule/fields/fields.js";
import {
  compileSchedule,
  reviewSchedule,
  type Schedule,
  type ScheduleContext,
  scheduleSchema,
} from "../../src/schedule/index.js";

/*
 * Limits the cost of the worst schedules in steps, which are the same on every machine: days of a month computed, times
 * asked of an expression, items of an expression read. A step takes some 50 ns. Wall clocks asked of Intl take far
 * longer.
 */

vi.mock("../../src/schedule/cron/item.js", { spy: true });
vi.mock("../../src/schedule/fields/day-rule.js", { spy: true });
vi.mock("../../src/schedule/fields/fields.js", { spy: true });
/** `format` is a getter, which the types do not show. */
const clocks: { readonly format: unknown } = Intl.DateTimeFormat.prototype;
const format = vi.spyOn(clocks, "format", "get");
const STEPS = [daysMatching, matchesLocal, nextLocal, prevLocal, parseItem].map((step) => vi.mocked(step));

/** Counts the calls of these spies during `run`. */
function count(spies: readonly MockInstance[], run: () => void): number {
  for (const spy of spies) spy.mockClear();
  run();
  return spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0);
}

const NOW = Date.UTC(2026, 5, 15, 10);
const ZONES = Intl.supportedValuesOf("timeZone");
const many = <T>(count: number, one: (i: number) => T) => Array.from({ length: count }, (_, i) => one(i));
const zone = (i: number) => ZONES[(i * 13) % ZONES.length]!;
const date = (i: number) => new Date(Date.UTC(2020, 0, 1) + i * 86_400_000).toISOString().slice(0, 10);
const PARIS = { timezone: "Europe/Paris" };

const context: ScheduleContext = {
  calendars: new Map([
    ["dates", many(4_096, date)],
    ["rules", [...many(4_032, date), ...many(64, (i) => `*-*-* *:${i % 60}:${(i * 7) % 60}`)]],
    ["christmas", many(400, (i) => `${1_900 + i}-12-25`)],
  ]),
};
const second = { every: "1s" };
const everySecond = { cron: "* * * * * *" };

const HOSTILE: Record<string, unknown> = {
  "no such day": { cron: "0 0 30 2 *", ...PARIS },
  "no such day, ever so many times": {
    ...everySecond,
    ...PARIS,
    except: [...many(31, () => ({ cron: "0 0 30 2 *" })), second],
  },
  "leap days off": { cron: "0 0 29 2 *", ...PARIS, except: [{ cron: "0 0 29 2 *" }] },
  "leap days off, in 32 zones": {
    any: many(32, (i) => ({
      cron: "0 0 29 2 *",
      timezone: zone(i),
      except: [{ cron: "0 0 29 2 *" }],
    })),
  },
  "a day a year, off for ever": { cron: "0 9 25 12 *", ...PARIS, except: [{ calendar: "*-12-25" }] },
  "a day a year, off for 400 years": { cron: "0 9 25 12 *", ...PARIS, except: [{ named: "christmas" }] },
  "a day a year, off in 32 zones": {
    any: many(32, (i) => ({ cron: "0 9 25 12 *", timezone: zone(i) })),
    except: [{ calendar: "*-12-25" }],
  },
  "a year in, a year out": {
    cron: "0 * * * *",
    ...PARIS,
    except: [{ calendar: "1970..2198/2-*-*" }, { calendar: "1971..2199/2-*-*" }],
  },
  "all months, by halves": {
    cron: "* * * * *",
    ...PARIS,
    except: [{ calendar: "*-1/2-*" }, { calendar: "*-2/2-*" }],
  },
  "all days, by halves": {
    cron: "* * * * *",
    ...PARIS,
    except: [...many(30, () => ({ calendar: "*-02-30" })), { calendar: "*-*-1/2" }, { calendar: "*-*-2/2" }],
  },
  "all days, hidden": { ...everySecond, ...PARIS, except: many(32, () => ({ cron: "* * * 1-30,L * *" })) },
  "all minutes, one by one": {
    cron: "* * * * *",
    ...PARIS,
    except: many(32, (i) => ({ cron: `${i === 31 ? "31-59" : i} * * * *`, timezone: "Asia/Kolkata" })),
  },
  "32 members, 32 exclusions": {
    any: many(32, (i) => ({ ...everySecond, timezone: zone(i) })),
    except: [...many(31, (i) => ({ calendar: `*-02-29 ${i % 24}:*:*`, timezone: zone(i + 1) })), second],
  },
  "32 members with one exclusion each": {
    any: many(32, (i) => ({ ...everySecond, timezone: zone(i), except: [second] })),
  },
  "intervals of the calendar": {
    any: many(32, (i) => ({ every: `${i + 1} months`, timezone: zone(i) })),
    except: many(32, (i) => (i === 31 ? { calendar: "*-*-01" } : { every: `${i + 1} days` })),
  },
  "to the end of time": { every: "120 months", ...PARIS, except: [{ calendar: "*-*-01" }] },
  "4,096 days": { cron: "* * * * *", ...PARIS, except: [{ named: "dates" }] },
  "64 calendars": {
    any: many(32, (i) => ({ ...everySecond, timezone: zone(i) })),
    except: [{ named: "rules" }, { named: "rules", timezone: "Asia/Kolkata" }],
  },
  "32 calendars and all": {
    ...everySecond,
    ...PARIS,
    except: [...many(31, () => ({ named: "rules" })), second],
  },
  "a delay with nowhere to go": {
    every: "1ms",
    anchor: "finish",
    except: [...many(31, () => ({ named: "rules" })), { every: "1ms" }],
  },
  "long lists": {
    any: many(10, (i) => ({
      cron: `${many(80, (n) => n % 60).join()} ${many(60, (n) => n % 24).join()} * * *`,
      timezone: zone(i),
    })),
  },
  "lists that are too long together": {
    any: many(32, () => ({ cron: `${many(150, (n) => n % 60).join()} * * * *` })),
  },
  "a megabyte of cron": { cron: `${"1,".repeat(500_000)}1 * * * *` },
  "a megabyte of spaces": { cron: " ".repeat(1_000_000) },
  "a megabyte of calendar": { calendar: "1,".repeat(500_000) },
  "a megabyte of zone": { cron: "* * * * *", timezone: "A/".repeat(500_000) },
  "a megabyte of jitter": { ...second, jitter: "1".repeat(1_000_000) },
  "a million members": { any: many(1_000_000, () => 1) },
  "1,024 bad exclusions": { any: many(32, () => ({ cron: 5, except: many(32, () => ({ every: [] })) })) },
  "a thousand levels": many(1_000, (i) => i).reduce<unknown>((deep) => ({ any: [deep] }), second),
};

/** Asks for every answer that a put and a claim need. */
function answer(input: unknown): void {
  const parsed = scheduleSchema.safeParse(input);
  if (!parsed.success) return;
  const schedule: Schedule = parsed.data;
  const compiled = compileSchedule(schedule, "seed", context);
  compiled.next(NOW);
  compiled.latest(NOW);
  reviewSchedule(schedule, context);
}

test("readings of wall clocks are counted", () => {
  const chatham = { cron: "0 9 * * *", timezone: "Pacific/Chatham" };
  expect(count([format], () => answer(chatham))).toBeGreaterThan(0);
  expect(count([format], () => answer(chatham))).toBe(0);
});

test.each(Object.entries(HOSTILE))("%s takes few steps", (_name, input) => {
  // The first call builds the tables of each zone.
  answer(input);
  expect(count([format], () => answer(input))).toBe(0);
  const steps = count(STEPS, () => answer(input));
  expect(steps).toBeLessThan(50_000);
});
