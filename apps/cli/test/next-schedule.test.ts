import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { carillon, type RunOptions } from "./helpers.js";

const FROM = ["--from", "2026-12-22T00:00:00Z"];
let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "carillon-next-"));
});
afterAll(() => rm(dir, { recursive: true }));

async function file(name: string, text: string): Promise<string> {
  const path = join(dir, name);
  await writeFile(path, text);
  return path;
}

/** Runs it with --json, expects success, returns the document. */
async function next(args: string[], options: RunOptions = {}) {
  const { code, stdout, stderr } = await carillon(["next", ...args, ...FROM, "--json"], options);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

async function refusal(args: string[], options: RunOptions = {}) {
  const { code, stdout, stderr } = await carillon(["next", ...args, "--json"], options);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  return JSON.parse(stderr).error;
}

describe("several expressions and their limits", () => {
  it("are a union, each time once", async () => {
    const found = await next(["0 9 * * *", "*-*-* 09,10:00", "-z", "Europe/Berlin", "-n", "3"]);
    expect(found).toEqual({
      canonical: "any of (*-*-* 09,10:00:00 Europe/Berlin; 0 9 * * * Europe/Berlin)",
      description: expect.stringContaining("; or "),
      next: ["2026-12-22T08:00:00Z", "2026-12-22T09:00:00Z", "2026-12-23T08:00:00Z"],
      exhausted: false,
      notes: [],
      excluded: [],
    });
  });

  it("end at --end, and omit the times of --except with their reason", async () => {
    const limits = ["--except", "*-12-24..26", "--except", "Sun", "--end", "2026-12-28T12:00:00Z"];
    const found = await next([
      "0 9 * * *",
      "-z",
      "Europe/Berlin",
      ...limits,
      "--start",
      "2026-12-23T00:00:00Z",
    ]);
    expect(found.next).toEqual(["2026-12-23T08:00:00Z", "2026-12-28T08:00:00Z"]);
    expect(found.exhausted).toBe(true);
    expect(found.excluded).toEqual([
      { time: "2026-12-24T08:00:00Z", by: "*-12-24..26" },
      { time: "2026-12-25T08:00:00Z", by: "*-12-24..26" },
      { time: "2026-12-26T08:00:00Z", by: "*-12-24..26" },
      { time: "2026-12-27T08:00:00Z", by: "Sun" },
    ]);
    expect(found.notes).toMatchObject([{ time: "2026-12-28T08:00:00Z", code: "EXCLUDED" }]);
  });

  it("count intervals from --origin, in the zone for intervals in words", async () => {
    const origin = ["--origin", "2026-01-31T08:00:00Z", "-z", "Europe/Berlin"];
    expect((await next(["1 month", ...origin, "-n", "2"])).next).toEqual([
      "2026-12-31T08:00:00Z",
      "2027-01-31T08:00:00Z",
    ]);
    expect((await next(["7m", "--origin", "2026-12-22T00:01:00Z", "-n", "1"])).next).toEqual([
      "2026-12-22T00:01:00Z",
    ]);
  });

  it("give each member of a union its own options", async () => {
    const berlin = ["-z", "Europe/Berlin", "-n", "2", "--from", "2026-03-29T00:00:00Z", "--json"];
    const limits = ["--dst-gap", "skip", "--origin", "2026-03-29T05:00:00Z"];
    const { stdout } = await carillon(["next", "0 2 * * *", "24h", ...limits, ...berlin]);
    expect(JSON.parse(stdout).next).toEqual(["2026-03-29T05:00:00Z", "2026-03-30T00:00:00Z"]);
  });

  it("choose the rule for clock changes", async () => {
    const berlin = ["-z", "Europe/Berlin", "-n", "2", "--from"];
    const spring = ["0 2 * * *", ...berlin, "2026-03-28T12:00:00Z"];
    const autumn = ["30 2 * * *", ...berlin, "2026-10-24T12:00:00Z"];
    const times = async (args: string[]) =>
      JSON.parse((await carillon(["next", ...args, "--json"])).stdout).next[0];
    expect(await times([...spring, "--dst-gap", "run-after"])).toBe("2026-03-29T01:00:00Z");
    expect(await times([...spring, "--dst-gap", "skip"])).toBe("2026-03-30T00:00:00Z");
    const both = await carillon(["next", ...autumn, "--dst-overlap", "both", "--json"]);
    expect(JSON.parse(both.stdout)).toMatchObject({
      next: ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"],
      notes: [{ code: "DAY_LENGTH" }, { code: "REPEATED" }, { code: "DAY_LENGTH" }, { code: "REPEATED" }],
    });
  });

  it("are due later by a jitter that is stable for an id", async () => {
    const args = ["10s", "--jitter", "50%", "-n", "20"];
    const { next: times, due } = await next([...args, "--id", "a"]);
    const late = times.map((time: string, i: number) => Date.parse(due[i]) - Date.parse(time));
    expect(Math.min(...late)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...late)).toBeLessThan(5_000);
    expect(new Set(late).size).toBeGreaterThan(10);
    expect((await next([...args, "--id", "a"])).due).toEqual(due);
    expect((await next([...args, "--id", "b"])).due).not.toEqual(due);
  });

  it("show people the due time if it is later", async () => {
    const { stdout } = await carillon([
      "next",
      "1h",
      "--jitter",
      "10m",
      "-z",
      "Asia/Tokyo",
      ...FROM,
      "-n",
      "1",
    ]);
    expect(stdout).toMatch(/^UTC +LOCAL +DUE$/m);
    expect(stdout).toMatch(/^\S+Z {2}\S+\+09:00 {2}in 1 h {2}2026-12-22T10:0\d:\S+\+09:00 \(\+.*\)$/m);
  });

  it("end after --max-runs", async () => {
    const two = ["2026-12-22T01:00:00Z", "2026-12-22T02:00:00Z"];
    expect(await next(["1h", "--max-runs", "2"])).toMatchObject({ next: two, exhausted: true });
    expect(await next(["1h", "--max-runs", "2", "-n", "2"])).toMatchObject({ next: two, exhausted: true });
    expect(await next(["1h", "--max-runs", "3", "-n", "2"])).toMatchObject({ next: two, exhausted: false });
  });

  it("count from --from with --anchor finish, with an explanation for people", async () => {
    const args = ["7m", "--anchor", "finish", "-n", "2"];
    expect((await next(args)).next).toEqual(["2026-12-22T00:07:00Z", "2026-12-22T00:14:00Z"]);
    const { stdout } = await carillon(["next", ...args, ...FROM]);
    expect(stdout).toMatch(/^note +the times assume runs of no length$/m);
  });
});

describe("--schedule", () => {
  const schedule = {
    any: [{ cron: "0 9 * * *", timezone: "Europe/Berlin" }],
    end: "2026-12-23T12:00:00Z",
    jitter: "1m",
    maxRuns: 9,
  };
  const text = JSON.stringify(schedule);

  it("takes a whole schedule as text, from a file or from standard input", async () => {
    const found = await next(["--schedule", text]);
    expect(found).toMatchObject({
      next: ["2026-12-22T08:00:00Z", "2026-12-23T08:00:00Z"],
      exhausted: true,
      due: [expect.any(String), expect.any(String)],
    });
    expect(await next(["--schedule", `@${await file("schedule.json", text)}`])).toEqual(found);
    expect(await next(["--schedule", "-"], { input: text })).toEqual(found);
  });

  it("shows people the schedule's local time, unless they choose another", async () => {
    const args = ["next", "--schedule", text, ...FROM];
    expect((await carillon(args)).stdout).toContain("  2026-12-22T09:00:00+01:00  ");
    expect((await carillon([...args, "-z", "Asia/Tokyo"])).stdout).toContain("  2026-12-22T17:00:00+09:00  ");
  });

  it.each([
    ["what is no JSON", ["{cron"], "INVALID_SCHEDULE", undefined],
    ["what is no object", ['"0 9 * * *"'], "INVALID_SCHEDULE", undefined],
    ["two syntaxes", ['{"cron":"0 9 * * *","every":"1h"}'], "INVALID_SCHEDULE", undefined],
    ["an unknown field", ['{"every":"1h","jiter":"1m"}'], "INVALID_SCHEDULE", undefined],
    ["an own __proto__", ['{"every":"1h","__proto__":{}}'], "INVALID_SCHEDULE", undefined],
    ["a bad member", ['{"any":[{"every":"1h"},{"cron":"no"}]}'], "INVALID_SCHEDULE", "any[1].cron"],
    ["a file that is not there", ["@/no/such/file"], "INVALID_OPTION", "FILE"],
    ["an expression beside it", ['{"every":"1h"}', "10s"], "INVALID_OPTION", "EXPR"],
    ["a limit beside it", ['{"every":"1h"}', "--end", "2027-01-01T00:00:00Z"], "INVALID_OPTION", "--end"],
    ["a syntax beside it", ['{"every":"1h"}', "--syntax", "every"], "INVALID_OPTION", "--syntax"],
  ])("refuses %s", async (_, args, code, field) => {
    expect(await refusal(["--schedule", ...args])).toMatchObject({ code, ...(field ? { field } : {}) });
  });
});

describe("--calendar", () => {
  const holidays = "# of the office\n2026-12-25\n*-01-01  # New Year\n\n";

  it("gives the entries of a calendar for --except", async () => {
    const given = ["--calendar", `holidays=${await file("holidays.txt", holidays)}`];
    const found = await next(["0 9 * * *", ...given, "--except", "holidays", "-n", "4"]);
    expect(found.next[3]).toBe("2026-12-26T09:00:00Z");
    expect(found.excluded).toEqual([{ time: "2026-12-25T09:00:00Z", by: "holidays" }]);
    const { stdout } = await carillon(["next", "0 9 * * *", ...given, "--except", "holidays", ...FROM]);
    expect(stdout).toContain("excluded before it: 2026-12-25T09:00:00Z (holidays)");
  });

  it("gives the entries of several calendars for a whole schedule, as JSON too", async () => {
    const schedule = { every: "1d", except: [{ named: "a" }, { named: "b" }] };
    const a = await file("a.json", '["2026-12-23"]');
    const args = [
      "--schedule",
      JSON.stringify(schedule),
      "--calendar",
      `a=${a}`,
      "--calendar",
      "b=-",
      "-n",
      "1",
    ];
    expect((await next(args, { input: "2026-12-24" })).next).toEqual(["2026-12-25T00:00:00Z"]);
  });

  const named = ["--schedule", '{"every":"1d","except":[{"named":"a"}]}'];
  it.each([
    ["a calendar that is not given", named, "", "INVALID_SCHEDULE", "calendar"],
    ["one that nothing names", ["1d", "--calendar", "a=-"], "2026-12-25", "INVALID_SCHEDULE", "calendar"],
    ["what is no NAME=FILE", [...named, "--calendar", "a"], "", "INVALID_OPTION", "calendar"],
    ["a name twice", [...named, "--calendar", "a=-", "--calendar", "a=-"], "1", "INVALID_OPTION", "calendar"],
    ["an empty file", [...named, "--calendar", "a=-"], "\n", "INVALID_OPTION", "FILE"],
    ["a file that is not there", [...named, "--calendar", "a=/no/file"], "", "INVALID_OPTION", "FILE"],
    [
      "a bad entry",
      [...named, "--calendar", "a=-"],
      "2026-12-25\nXmas",
      "INVALID_SCHEDULE",
      "calendars.a[1]",
    ],
    ["a bad date", [...named, "--calendar", "a=-"], "2026-02-30", "INVALID_SCHEDULE", "calendars.a[0]"],
    [
      "entries that are no text",
      [...named, "--calendar", "a=-"],
      "[1]",
      "INVALID_SCHEDULE",
      "calendars.a[0]",
    ],
    ["half a list", [...named, "--calendar", "a=-"], '["2026-12-25",', "INVALID_SCHEDULE", undefined],
    ["standard input twice", ["--schedule", "-", "--calendar", "a=-"], "[]", "INVALID_OPTION", "FILE"],
  ])("refuses %s", async (_, args, input, code, field) => {
    expect(await refusal(args, { input })).toMatchObject({ code, ...(field ? { field } : {}) });
  });
});

describe("cron-parser", () => {
  const nightly = ["30 2 * * *", "-z", "Europe/Berlin", "--from", "2026-03-28T12:00:00Z"];

  it("is a dialect of cron, also in a batch", async () => {
    const { stdout } = await carillon(["next", ...nightly, "--dialect", "cron-parser", "-n", "1", "--json"]);
    const alone = JSON.parse(stdout);
    expect(alone).toMatchObject({
      canonical: "30 2 * * * dialect cron-parser",
      next: ["2026-03-29T01:30:00Z"],
    });
    const line = { expr: "30 2 * * *", timezone: "Europe/Berlin", from: "2026-03-28T12:00:00Z", count: 1 };
    const lines = [
      { ...line, dialect: "cron-parser" },
      { ...line, dialect: "cronparser" },
      { ...line, dialect: 1 },
      { ...line, expr: "10s", timezone: undefined, dialect: "cron-parser" },
    ];
    const batch = await carillon(["next", "--batch"], {
      input: lines.map((one) => JSON.stringify(one)).join("\n"),
    });
    const [answer, ...refused] = batch.stdout
      .trim()
      .split("\n")
      .map((text) => JSON.parse(text));
    expect(answer.next).toEqual(alone.next);
    expect(refused.map(({ error }) => error.message)).toEqual([
      expect.stringContaining("Did you mean cron-parser?"),
      expect.stringContaining("not a string"),
      expect.stringContaining("belongs to"),
    ]);
  });
});

describe("options that exclude each other", () => {
  it.each([
    ["--origin without an interval", ["0 9 * * *", "--origin", "2026-01-01T00:00:00Z"], "origin"],
    ["a choice about the clock without one", ["10s", "--dst-gap", "skip"], "dst"],
    ["a dialect without cron", ["10s", "--dialect", "cron-parser"], "dialect"],
    ["an unknown dialect", ["0 9 * * *", "--dialect", "cron-parse"], "dialect"],
    [
      "a dialect and a choice about the clock",
      ["0 9 * * *", "--dialect", "cron-parser", "--dst-gap", "skip"],
      "dst",
    ],
    ["an unknown choice", ["0 9 * * *", "--dst-gap", "later"], undefined],
    ["an unknown anchor", ["10s", "--anchor", "start"], undefined],
    ["--anchor in a union", ["10s", "15s", "--anchor", "finish"], "anchor"],
    ["--anchor with jitter", ["10s", "--anchor", "finish", "--jitter", "1s"], "jitter"],
    ["no runs", ["10s", "--max-runs", "0"], "maxRuns"],
    ["half a run", ["10s", "--max-runs", "1.5"], undefined],
    ["a jitter without unit", ["10s", "--jitter", "5"], "jitter"],
    ["more than the whole gap", ["10s", "--jitter", "101%"], "jitter"],
    [
      "an end before the start",
      ["10s", "--start", "2027-01-01T00:00:00Z", "--end", "2026-01-01T00:00:00Z"],
      "end",
    ],
    ["a start without offset", ["10s", "--start", "2027-01-01T00:00"], "start"],
    ["a bad exception", ["10s", "--except", "1h", "--except", "nonsense"], "except[1].calendar"],
    ["a bad expression of several", ["10s", "0 9 * * 8x"], "any[1].cron"],
    ["one syntax for different ones", ["10s", "0 9 * * *", "--syntax", "every"], "any[1].every"],
    ["an expression beside --batch", ["10s", "--batch"], "EXPR"],
    ["a limit beside --batch", ["--batch", "--jitter", "1s"], "--jitter"],
    ["a schedule beside --batch", ["--batch", "--schedule", "{}"], "--schedule"],
    ["a calendar beside --batch", ["--batch", "--calendar", "a=b"], "--calendar"],
  ])("refuses %s", async (_, args, field) => {
    const error = await refusal(args);
    expect(error.code).toMatch(/^INVALID_/);
    expect(error.field).toBe(field);
  });
});

it("--help explains the command", async () => {
  const { code, stdout } = await carillon(["next", "--help"]);
  expect(code).toBe(0);
  const options =
    "origin start end except dst-gap dst-overlap jitter max-runs anchor schedule calendar batch dialect";
  for (const option of options.split(" ")) expect(stdout).toContain(`--${option}`);
  expect(stdout).toContain("[expr...]");
});
