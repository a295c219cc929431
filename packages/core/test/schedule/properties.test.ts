import { describe, expect, test } from "vitest";
import fc from "../../../../test/fast-check.js";
import { canonicalSchedule, compileSchedule, type Schedule } from "../../src/schedule/index.js";

const ZONES = [
  "UTC",
  "Europe/Paris",
  "America/New_York",
  "Australia/Lord_Howe",
  "Africa/Casablanca",
  "Pacific/Apia",
];

const time = fc.integer({ min: Date.UTC(1995, 0, 1), max: Date.UTC(2060, 0, 1) });

/** One cron field made of valid entries. */
function field(min: number, max: number, extra: string[] = []) {
  const value = fc.integer({ min, max });
  const range = fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
  const step = fc.integer({ min: 1, max: max + 1 });
  const item = fc.oneof(
    value.map(String),
    range,
    fc.tuple(range, step).map(([r, s]) => `${r}/${s}`),
    step.map((s) => `*/${s}`),
    fc.constantFrom("*", ...extra),
  );
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant("*") },
    fc.array(item, { minLength: 1, maxLength: 3 }).map((i) => i.join()),
  );
}

const cronText = fc
  .tuple(
    fc.option(field(0, 59)),
    field(0, 59, ["H"]),
    field(0, 23, ["H(3-9)"]),
    field(1, 31, ["L", "LW", "15W", "1W", "31W"]),
    field(1, 12, ["feb"]),
    field(0, 7, ["5#2", "1#5", "5L", "SAT-SUN"]),
  )
  .map((fields) => fields.filter((f) => f !== null).join(" "));

function chain(min: number, max: number) {
  const value = fc.integer({ min, max });
  const item = fc.oneof(
    value.map(String),
    fc
      .tuple(value, value)
      .filter(([a, b]) => a < b)
      .map(([a, b]) => `${a}..${b}`),
    fc
      .integer({ min, max: max - 1 })
      .chain((a) => fc.integer({ min: 1, max: max - a }).map((s) => `${a}/${s}`)),
  );
  return fc.oneof(
    fc.constant("*"),
    fc.array(item, { minLength: 1, maxLength: 3 }).map((i) => i.join()),
  );
}

const calendarText = fc
  .tuple(
    fc.constantFrom("", "Mon..Fri ", "Sat,Sun ", "Wed "),
    chain(1, 12),
    fc.oneof(
      chain(1, 31).map((c) => `-${c}`),
      fc.integer({ min: 1, max: 28 }).map((n) => `~${n}`),
    ),
    chain(0, 23),
    chain(0, 59),
    fc.oneof(
      fc.constant(""),
      chain(0, 59).map((c) => `:${c}`),
      fc.constantFrom(":0/0.25", ":1.5,30.125"),
    ),
  )
  // systemd refuses ranges of one second; `59..59` cannot occur here.
  .map(
    ([weekday, month, day, hour, minute, second]) => `${weekday}*-${month}${day} ${hour}:${minute}${second}`,
  );

const cron = fc.record({ cron: cronText, timezone: fc.constantFrom(...ZONES) }) as fc.Arbitrary<Schedule>;
const calendar = fc.record({
  calendar: calendarText,
  timezone: fc.constantFrom(...ZONES),
}) as fc.Arbitrary<Schedule>;
const every = fc
  .tuple(fc.integer({ min: 1, max: 1e9 }), fc.option(time, { nil: undefined }))
  .map(([ms, origin]): Schedule => {
    return { every: `${ms}ms`, ...(origin === undefined ? {} : { origin: new Date(origin).toISOString() }) };
  });
const at = time.map((ms): Schedule => ({ at: ms }));
const any = fc.oneof(cron, calendar, every, at);

const options = { numRuns: 600 };

describe("any schedule", () => {
  test("latest(t) <= t < next(t), and latest finds the times that next finds", () => {
    fc.assert(
      fc.property(any, time, (schedule, t) => {
        const compiled = compileSchedule(schedule, "seed");
        const next = compiled.next(t);
        const latest = compiled.latest(t);
        if (latest !== undefined) {
          expect(latest).toBeLessThanOrEqual(t);
          expect(compiled.latest(latest)).toBe(latest);
          expect(compiled.next(latest) ?? Number.POSITIVE_INFINITY).toBeGreaterThan(latest);
        }
        if (next === undefined) return;
        expect(next).toBeGreaterThan(t);
        expect(compiled.latest(next)).toBe(next);
      }),
      options,
    );
  });

  test("means the same in canonical form", () => {
    fc.assert(
      fc.property(fc.oneof(cron, calendar), time, (schedule, t) => {
        const canonical = canonicalSchedule(schedule, "seed");
        const again = { ...schedule, ["cron" in schedule ? "cron" : "calendar"]: canonical } as Schedule;
        expect(canonicalSchedule(again)).toBe(canonical);
        const [a, b] = [compileSchedule(schedule, "seed"), compileSchedule(again)];
        expect(b.next(t)).toBe(a.next(t));
        expect(b.latest(t)).toBe(a.latest(t));
      }),
      options,
    );
  });

  test("a second compilation continues with the same times", () => {
    fc.assert(
      fc.property(any, time, (schedule, t) => {
        const compiled = compileSchedule(schedule, "seed");
        let cursor: number | undefined = t;
        for (let i = 0; i < 5 && cursor !== undefined; i++) {
          const next: number | undefined = compiled.next(cursor);
          expect(compileSchedule(schedule, "seed").next(cursor)).toBe(next);
          cursor = next;
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe("the occurrences of a schedule do not depend on the base", () => {
  test("next is monotone, and nothing lies between a base and its next", () => {
    fc.assert(
      fc.property(any, time, fc.integer({ min: 0, max: 4e9 }), (schedule, t, gap) => {
        const compiled = compileSchedule(schedule, "seed");
        const first = compiled.next(t) ?? Number.POSITIVE_INFINITY;
        const later = t + gap;
        expect(compiled.next(later) ?? Number.POSITIVE_INFINITY).toBeGreaterThanOrEqual(first);
        if (later < first) {
          expect(compiled.next(later) ?? Number.POSITIVE_INFINITY).toBe(first);
          expect(compiled.latest(later)).toBe(compiled.latest(t));
        }
      }),
      options,
    );
  });

  test("no time lies between latest and next", () => {
    fc.assert(
      fc.property(any, time, (schedule, t) => {
        const compiled = compileSchedule(schedule, "seed");
        const next = compiled.next(t);
        const latest = compiled.latest(t);
        if (latest !== undefined) expect(compiled.next(latest)).toBe(next);
        if (next !== undefined) expect(compiled.latest(next - 1)).toBe(latest);
      }),
      options,
    );
  });
});
