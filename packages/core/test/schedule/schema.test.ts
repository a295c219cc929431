import { describe, expect, test } from "vitest";
import { scheduleSchema } from "../../src/schedule/index.js";
import { soon } from "./soon.js";

function issueOf(input: unknown) {
  const result = scheduleSchema.safeParse(input);
  if (result.success) throw new Error(`accepted ${JSON.stringify(input)}`);
  expect(result.error.issues).toHaveLength(1);
  const issue = result.error.issues[0]!;
  const params = "params" in issue ? (issue.params as { code?: string }) : {};
  return { path: issue.path.join("."), code: params.code, message: issue.message };
}

test.each([
  [{ cron: " 0  9\t* * * " }, { cron: "0 9 * * *" }],
  [
    { cron: "@daily", timezone: "Europe/Paris" },
    { cron: "@daily", timezone: "Europe/Paris" },
  ],
  [{ cron: "0 0 31 2 *" }, { cron: "0 0 31 2 *" }],
  [
    { calendar: "Mon 9:00", timezone: "utc" },
    { calendar: "Mon 9:00", timezone: "UTC" },
  ],
  [{ every: "PT5M", cron: undefined }, { every: "PT5M" }],
  [
    { every: "1h", origin: "2026-01-01T00:00+01:00" },
    { every: "1h", origin: "2025-12-31T23:00:00Z" },
  ],
  [{ at: 1_000 }, { at: "1970-01-01T00:00:01Z" }],
  [{ at: "2026-01-31T09:00:00.5-05:00" }, { at: "2026-01-31T14:00:00.500Z" }],
  [
    { cron: "0 9  * * *", dst: {}, except: [], start: "2026-01-01T00:00:00+01:00" },
    { cron: "0 9 * * *", start: "2025-12-31T23:00:00Z" },
  ],
  [
    {
      calendar: "daily",
      dst: { gap: "skip", overlap: undefined },
      except: [{ named: "x" }, { cron: "0  0 1 * *" }],
    },
    { calendar: "daily", dst: { gap: "skip" }, except: [{ named: "x" }, { cron: "0 0 1 * *" }] },
  ],
  [
    {
      any: [{ cron: " @daily " }, { at: 0 }],
      except: [{ calendar: "Sun", timezone: "utc", end: "2026-01-01T00:00:00Z" }],
    },
    {
      any: [{ cron: "@daily" }, { at: "1970-01-01T00:00:00Z" }],
      except: [{ calendar: "Sun", timezone: "UTC", end: "2026-01-01T00:00:00Z" }],
    },
  ],
  [
    { every: "1 month", timezone: "Europe/Paris" },
    { every: "1 month", timezone: "Europe/Paris" },
  ],
  [
    { cron: "@daily", jitter: "10%", maxRuns: 3 },
    { cron: "@daily", jitter: "10%", maxRuns: 3 },
  ],
  [
    { any: [{ every: "1h" }], jitter: "PT30S", maxRuns: 1_000_000_000 },
    { any: [{ every: "1h" }], jitter: "PT30S", maxRuns: 1_000_000_000 },
  ],
  [{ every: "2m", anchor: "origin", jitter: undefined, maxRuns: undefined }, { every: "2m" }],
  [
    { every: "1d", anchor: "finish", start: "2026-01-01T01:00:00+01:00", except: [{ calendar: "Sun" }] },
    { every: "1d", anchor: "finish", start: "2026-01-01T00:00:00Z", except: [{ calendar: "Sun" }] },
  ],
  [
    { every: "P1D", anchor: "finish", end: "2026-01-01T00:00:00Z", maxRuns: 5 },
    { every: "P1D", anchor: "finish", end: "2026-01-01T00:00:00Z", maxRuns: 5 },
  ],
])("%j becomes %j", (input, expected) => {
  expect(scheduleSchema.parse(input)).toStrictEqual(expected);
});

test("normalising twice changes nothing", () => {
  const once = scheduleSchema.parse({ at: "2026-01-31T09:00:00+01:00" });
  expect(scheduleSchema.parse(once)).toEqual(once);
});

test.each([
  [{ cron: "" }, "cron", "INVALID_SCHEDULE", "empty"],
  [{ cron: "   " }, "cron", "INVALID_SCHEDULE", "empty"],
  [{ cron: "* * * *" }, "cron", "INVALID_SCHEDULE", "4 fields"],
  [{ cron: "* * * * * * *" }, "cron", "INVALID_SCHEDULE", "7 fields"],
  [{ cron: "/5 * * * *" }, "cron", "INVALID_SCHEDULE", "Did you mean */5?"],
  [{ cron: "@reboot" }, "cron", "INVALID_SCHEDULE", "several nodes"],
  [{ cron: "@every 5m" }, "cron", "INVALID_SCHEDULE", 'every: "5m"'],
  [{ cron: "60 * * * *" }, "cron", "INVALID_SCHEDULE", "minute field"],
  [{ cron: "0 0 * * fri-mon" }, "cron", "INVALID_SCHEDULE", "5-6,0-1"],
  [{ cron: "0 0 * * 7-2" }, "cron", "INVALID_SCHEDULE", "Sunday comes first: 0-2."],
  [{ cron: "0 0 L-2 * *" }, "cron", "INVALID_SCHEDULE", "calendar schedules: *-*~03."],
  [{ cron: "TZ=UTC 0 0 * * *" }, "cron", "INVALID_SCHEDULE", "timezone"],
  [{ cron: "0 0 * * *", timezone: "Mars/Base" }, "timezone", "INVALID_TIMEZONE", "IANA"],
  [
    { cron: "0 0 * * *", timezone: "europe/paris" },
    "timezone",
    "INVALID_TIMEZONE",
    "Did you mean Europe/Paris?",
  ],
  [{ cron: "0 0 * * *", timezone: "PST" }, "timezone", "INVALID_TIMEZONE", "IANA"],
  [{ cron: "0 0 * * *", timezone: "Us/Eastern" }, "timezone", "INVALID_TIMEZONE", "IANA"],
  [{ calendar: "10:00 Chile/Easterisland" }, "calendar", "INVALID_TIMEZONE", "own spelling"],
  [{ calendar: "" }, "calendar", "INVALID_SCHEDULE", "empty"],
  [{ calendar: "10:00 CEST" }, "calendar", "INVALID_TIMEZONE", "CEST"],
  [{ calendar: "*:5..3" }, "calendar", "INVALID_SCHEDULE", "reversed"],
  [{ every: "0s" }, "every", "INVALID_DURATION", "zero"],
  [{ every: "-5m" }, "every", "INVALID_DURATION", "negative"],
  [{ every: 90.5 }, "every", "INVALID_DURATION", '"90s"'],
  [{ every: -90 }, "every", "INVALID_DURATION", "whole milliseconds"],
  [{ every: "90" }, "every", "INVALID_DURATION", "90s"],
  [{ every: "1h abc" }, "every", "INVALID_DURATION", "1h30m"],
  [{ every: "1month" }, "every", "INVALID_DURATION", "takes them: 1 month"],
  [{ every: "1h", origin: "today" }, "origin", "INVALID_SCHEDULE", "ISO 8601"],
  [{ at: "2026-02-30T00:00:00Z" }, "at", "INVALID_SCHEDULE", "does not exist"],
  [{ at: "2026-02-03T00:00:00" }, "at", "INVALID_SCHEDULE", "no offset"],
  [{ at: "tomorrow" }, "at", "INVALID_SCHEDULE", "ISO 8601"],
  [{ at: 1.5 }, "at", "INVALID_SCHEDULE", "whole milliseconds"],
  [{ at: 253_402_300_800_000 }, "at", "INVALID_SCHEDULE", "years 0000 to 9999"],
  [
    { at: "0000-01-01T00:00:00+01:00" },
    "at",
    "INVALID_SCHEDULE",
    '"0000-01-01T00:00:00+01:00" is not within',
  ],
  [{ every: "1h", origin: "0000-01-01T00:00:00+01:00" }, "origin", "INVALID_SCHEDULE", "years 0000 to 9999"],
  [{ every: "1h", end: "9999-12-31T23:59:59-01:00" }, "end", "INVALID_SCHEDULE", "years 0000 to 9999"],
  [{ every: "5m", timezone: "UTC" }, "timezone", "INVALID_SCHEDULE", "belongs to"],
  [{ cron: "* * * * *", origin: "2026-01-01T00:00:00Z" }, "origin", "INVALID_SCHEDULE", "belongs to"],
  [{ at: 0, timezone: "UTC" }, "timezone", "INVALID_SCHEDULE", "belongs to"],
  [{ every: "1h", dst: { gap: "skip" } }, "dst", "INVALID_SCHEDULE", "belongs to"],
  [{ every: "1h", dialect: "cron-parser" }, "dialect", "INVALID_SCHEDULE", "belongs to"],
  [{ cron: "0 * * * *", dialect: "cronparser" }, "dialect", "INVALID_SCHEDULE", "Did you mean cron-parser?"],
  [
    { cron: "0 * * * *", dialect: "cron-parser", dst: { gap: "skip" } },
    "dst",
    "INVALID_SCHEDULE",
    "Leave out dst or dialect",
  ],
  [{ every: "1h", start: "2026-01-02T00:00:00" }, "start", "INVALID_SCHEDULE", "no offset"],
  [
    { every: "1h", start: "2026-01-02T00:00:00Z", end: "2026-01-01T00:00:00Z" },
    "end",
    "INVALID_SCHEDULE",
    "before the start",
  ],
  [{ any: [] }, "any", "INVALID_SCHEDULE", "empty"],
  [{ any: [{ cron: "* * * * *" }], cron: "* * * * *" }, "cron", "INVALID_SCHEDULE", "inside of any"],
  [{ any: [{ every: "1h" }, { cron: "61 * * * *" }] }, "any.1.cron", "INVALID_SCHEDULE", "minute field"],
  [{ any: [{ timezone: "UTC" }] }, "any.0", "INVALID_SCHEDULE", "none is given"],
  [{ every: "1h", except: [{}] }, "except.0", "INVALID_SCHEDULE", "none is given"],
  [
    { every: "1h", except: [{ named: "a", cron: "0 0 * * *" }] },
    "except.0",
    "INVALID_SCHEDULE",
    "cron and named",
  ],
  [{ every: "1h", except: [{ calendar: "X" }] }, "except.0.calendar", "INVALID_SCHEDULE", "readable"],
  [
    { any: [{ every: "1h", except: [{ calendar: "Sun", timezone: "X" }] }] },
    "any.0.except.0.timezone",
    "INVALID_TIMEZONE",
    "IANA",
  ],
  [{ every: "1h", jitter: "soon" }, "jitter", "INVALID_DURATION", "not a duration"],
  [{ every: "1h", jitter: "0%" }, "jitter", "INVALID_DURATION", "at most 100%"],
  [{ every: "1h", jitter: "-5s" }, "jitter", "INVALID_DURATION", "negative"],
  [{ every: "1h", maxRuns: 0 }, "maxRuns", "INVALID_SCHEDULE", "Give 1 to 1000000000"],
  [{ every: "1h", maxRuns: 1.5 }, "maxRuns", "INVALID_SCHEDULE", "whole number"],
  [{ every: "1h", maxRuns: 1e9 + 1 }, "maxRuns", "INVALID_SCHEDULE", "leave it out for no limit"],
  [
    { any: [{ every: "1h", jitter: "5s" }] },
    "any.0.jitter",
    "INVALID_SCHEDULE",
    "belongs to the whole schedule",
  ],
  [{ any: [{ at: 0, maxRuns: 1 }] }, "any.0.maxRuns", "INVALID_SCHEDULE", "belongs to the whole schedule"],
  [
    { every: "1h", except: [{ at: 0, jitter: "5s" }] },
    "except.0.jitter",
    "INVALID_SCHEDULE",
    "belongs to the whole schedule",
  ],
  [
    { any: [{ at: 0, except: [{ at: 0, maxRuns: 5 }] }] },
    "any.0.except.0.maxRuns",
    "INVALID_SCHEDULE",
    "belongs to the whole schedule",
  ],
  [{ cron: "* * * * *", anchor: "finish" }, "anchor", "INVALID_SCHEDULE", "belongs to every"],
  [{ any: [{ every: "1h", anchor: "finish" }] }, "any.0.anchor", "INVALID_SCHEDULE", "stands alone"],
  [{ any: [{ every: "1h" }], anchor: "finish" }, "anchor", "INVALID_SCHEDULE", "stands alone"],
  [
    { every: "1h", except: [{ every: "2h", anchor: "finish" }] },
    "except.0.anchor",
    "INVALID_SCHEDULE",
    "stands alone",
  ],
  [
    { every: "1h", anchor: "finish", origin: "2026-01-01T00:00:00Z" },
    "origin",
    "INVALID_SCHEDULE",
    "start is the first time",
  ],
  [{ every: "1d", anchor: "finish", timezone: "UTC" }, "timezone", "INVALID_SCHEDULE", "Leave it out"],
  [{ every: "1h", anchor: "finish", jitter: "5s" }, "jitter", "INVALID_SCHEDULE", "leave anchor out"],
  [{ every: "1 month", anchor: "finish" }, "every", "INVALID_DURATION", "no fixed length"],
  [{ every: "P1Y", anchor: "finish" }, "every", "INVALID_DURATION", "24h"],
  [{ every: "0s", anchor: "finish" }, "every", "INVALID_DURATION", "zero"],
  [{}, "", "INVALID_SCHEDULE", "none is given"],
  [{ cron: "* * * * *", every: "1m" }, "", "INVALID_SCHEDULE", "cron and every are given"],
])("%j is refused", (input, path, code, part) => {
  const issue = issueOf(input);
  expect(issue).toMatchObject({ path, code });
  expect(issue.message).toContain(part);
});

test("the error for input without a syntax names all four", () => {
  for (const name of ["cron", "calendar", "every", "at"]) expect(issueOf({}).message).toContain(name);
  for (const input of [null, 5, "* * * * *", []]) expect(issueOf(input).message).toContain("cron");
});

test("the length of a list is checked before its members", () => {
  const many = (count: number, one: unknown) => Array.from({ length: count }, () => one);
  expect(issueOf({ any: many(33, { every: "1h" }) }).message).toContain("at most 32");
  expect(issueOf({ every: "1h", except: many(1_000_000, 1) }).message).toContain("at most 32");
  const except = many(32, { calendar: "Sun" });
  expect(issueOf({ any: many(2, { every: "1h", except }) }).message).toContain("at most 64");
  expect(issueOf({ any: many(32, { every: 1, except: many(32, 1) }) })).toMatchObject({
    path: "any",
    code: "INVALID_SCHEDULE",
    message: "There are 1056 members and exclusions. Use at most 64 in all.",
  });
  const sundays = many(8, { calendar: "Sun" });
  expect(issueOf({ any: many(32, { every: "1h" }), except: sundays })).toMatchObject({
    path: "any",
    code: "INVALID_SCHEDULE",
    message:
      "Each search for a time takes 288 steps: one for each of 32 members, and one for each exclusion of each member. " +
      "Use at most 256 steps: fewer members or exclusions, a calendar in place of many exclusions, or several tasks.",
  });
  expect(scheduleSchema.safeParse({ any: many(32, { every: "1h" }), except: sundays.slice(1) }).success).toBe(
    true,
  );
  expect(scheduleSchema.safeParse({ every: "1h", except: many(32, { calendar: "Sun" }) }).success).toBe(true);
  const long = { calendar: `Mon ${"1,".repeat(240)}2:00` };
  expect(issueOf({ every: "1h", except: many(20, long) })).toMatchObject({
    path: "except",
    code: "INVALID_SCHEDULE",
  });
  expect(issueOf({ any: many(18, long) }).message).toContain("Use at most 4096");
  const named = many(3, { named: "de-holidays" });
  expect(issueOf({ any: many(30, { every: "1h" }), except: named }).message).toContain(
    "name calendars 90 times",
  );
  expect(issueOf({ every: "1h", anchor: "end" })).toMatchObject({ path: "anchor" });
  expect(issueOf({ any: [{ every: "1h", any: [] }] }).message).toContain("any");
  expect(issueOf({ every: "1h", except: [{ named: "a:b" }] }).message).toContain("calendar's name");
  expect(issueOf({ cron: "* * * * *", dst: { gap: "later" } }).message).toContain("run-after");
});

test("unknown keys are refused", () => {
  expect(issueOf({ cron: "* * * * *", tz: "UTC" }).message).toContain("tz");
  expect(issueOf(JSON.parse('{"every":"1m","__proto__":{"at":1}}')).message).toContain("__proto__");
});

describe("hostile input is rejected quickly", () => {
  const long = "1,".repeat(500_000);
  test.each([
    ["cron", { cron: `${long}1 * * * *` }],
    ["cron spaces", { cron: " ".repeat(1_000_000) }],
    ["calendar", { calendar: `${long}1:00` }],
    ["every", { every: "1".repeat(1_000_000) }],
    ["at", { at: "1".repeat(1_000_000) }],
    ["timezone", { cron: "* * * * *", timezone: "A/".repeat(500_000) }],
  ])("%s", (_name, input) => {
    const issue = soon(100, () => issueOf(input));
    expect(issue.message.length).toBeLessThan(400);
  });
});

test("start, end, origin and at take a Date and epoch milliseconds, as at and enqueue do", () => {
  const text = "2030-01-31T09:00:00Z";
  const ms = Date.parse(text);
  for (const time of [text, ms, new Date(ms)]) {
    expect(scheduleSchema.parse({ at: time })).toEqual({ at: text });
    expect(scheduleSchema.parse({ every: "1h", origin: time, start: time, end: time })).toEqual({
      every: "1h",
      origin: text,
      start: text,
      end: text,
    });
    expect(scheduleSchema.parse({ cron: "0 9 * * *", except: [{ at: time }] })).toMatchObject({
      except: [{ at: text }],
    });
  }
  for (const time of [new Date(Number.NaN), Number.NaN, 0.5, true, "soon"]) {
    const { error } = scheduleSchema.safeParse({ every: "1h", start: time });
    expect(error?.issues[0]).toMatchObject({ path: ["start"] });
  }
});
