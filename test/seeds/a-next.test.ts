import { canonicalSchedule, describeSchedule, previewSchedule, scheduleSchema } from "@carillon/sdk/schedule";
import { describe, expect, test } from "vitest";
import { type Line, Stand } from "./harness.js";

const stand = Stand.use();

type Syntax = "cron" | "calendar" | "every" | "at";

interface Vector {
  readonly syntax: Syntax;
  readonly expr: string;
  readonly timezone?: string;
  readonly from: string;
  readonly canonical: string;
  /** Words that the description must contain. */
  readonly words: readonly string[];
  readonly next: readonly string[];
  /** No time follows these. */
  readonly exhausted?: true;
}

/** Computed manually; canonical calendar events as in systemd's manual. */
const VECTORS: readonly Vector[] = [
  {
    syntax: "calendar",
    expr: "Mon..Fri 09:00",
    timezone: "Europe/Berlin",
    from: "2026-03-26T12:00:00Z",
    canonical: "Mon..Fri *-*-* 09:00:00",
    words: ["09:00", "Monday to Friday", "Europe/Berlin"],
    // Summer time begins on the 29th.
    next: ["2026-03-27T08:00:00Z", "2026-03-30T07:00:00Z", "2026-03-31T07:00:00Z"],
  },
  {
    syntax: "calendar",
    expr: "2019-*-10,20 12:00",
    from: "2019-11-15T00:00:00Z",
    canonical: "2019-*-10,20 12:00:00",
    words: ["12:00", "10th and 20th", "2019", "UTC"],
    next: ["2019-11-20T12:00:00Z", "2019-12-10T12:00:00Z", "2019-12-20T12:00:00Z"],
    exhausted: true,
  },
  {
    syntax: "calendar",
    expr: "2019-*-10,20 12:00",
    from: "2020-01-01T00:00:00Z",
    canonical: "2019-*-10,20 12:00:00",
    words: [],
    next: [],
    exhausted: true,
  },
  {
    syntax: "calendar",
    expr: "Sat,Thu,Mon..Wed,Sat..Sun",
    from: "2026-01-01T00:00:00Z",
    canonical: "Mon..Thu,Sat,Sun *-*-* 00:00:00",
    words: ["00:00"],
    // The first is a Thursday; the Friday after it is excluded.
    next: ["2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z", "2026-01-05T00:00:00Z"],
  },
  {
    syntax: "calendar",
    expr: "Mon,Sun 12-*-* 2,1:23",
    from: "2012-01-01T00:00:00Z",
    canonical: "Mon,Sun 2012-*-* 01,02:23:00",
    words: ["2012"],
    next: ["2012-01-01T01:23:00Z", "2012-01-01T02:23:00Z", "2012-01-02T01:23:00Z"],
  },
  {
    syntax: "calendar",
    expr: "Sat *-*-1..7 18:00 Europe/Berlin",
    from: "2026-02-10T00:00:00Z",
    canonical: "Sat *-*-01..07 18:00:00 Europe/Berlin",
    words: ["18:00", "Saturday", "Europe/Berlin"],
    next: ["2026-03-07T17:00:00Z", "2026-04-04T16:00:00Z", "2026-05-02T16:00:00Z"],
  },
  {
    syntax: "calendar",
    expr: "*-02-29",
    from: "2026-01-01T00:00:00Z",
    canonical: "*-02-29 00:00:00",
    words: ["29th", "February"],
    next: ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"],
  },
  {
    syntax: "calendar",
    expr: "*-*~1",
    from: "2026-01-01T00:00:00Z",
    canonical: "*-*~01 00:00:00",
    words: ["last day"],
    next: ["2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"],
  },
  {
    syntax: "cron",
    expr: "*/5  * * * *",
    from: "2026-01-01T00:02:00Z",
    canonical: "*/5 * * * *",
    words: ["5", "minute"],
    next: ["2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z", "2026-01-01T00:15:00Z"],
  },
  {
    syntax: "cron",
    expr: "0 9 * * *",
    timezone: "Asia/Kolkata",
    from: "2026-01-01T03:30:00Z",
    canonical: "0 9 * * *",
    words: ["09:00", "Asia/Kolkata"],
    // Strictly after.
    next: ["2026-01-02T03:30:00Z", "2026-01-03T03:30:00Z"],
  },
  {
    syntax: "cron",
    expr: "0 0 1 * *",
    timezone: "America/New_York",
    from: "2026-10-15T00:00:00Z",
    canonical: "0 0 1 * *",
    words: ["00:00", "1st", "America/New_York"],
    // Summer time ends at two o'clock on the first of November.
    next: ["2026-11-01T04:00:00Z", "2026-12-01T05:00:00Z"],
  },
  {
    syntax: "every",
    expr: "90s",
    from: "2026-01-01T00:00:00Z",
    canonical: "1m30s",
    words: ["1m30s"],
    next: ["2026-01-01T00:01:30Z", "2026-01-01T00:03:00Z"],
  },
  {
    syntax: "at",
    expr: "2026-02-01T12:00:00+02:00",
    from: "2026-01-01T00:00:00Z",
    canonical: "2026-02-01T10:00:00Z",
    words: ["once", "2026-02-01"],
    next: ["2026-02-01T10:00:00Z"],
    exhausted: true,
  },
];

const count = ({ next }: Vector) => Math.max(next.length, 1);
const scheduleOf = ({ syntax, expr, timezone }: Pick<Vector, "syntax" | "expr" | "timezone">) => ({
  [syntax]: expr,
  ...(timezone === undefined ? {} : { timezone }),
});

const REFUSED: readonly [syntax: Syntax, expr: string, timezone: string | undefined, code: string][] = [
  ["calendar", "Foo..Fri 09:00", undefined, "INVALID_SCHEDULE"],
  ["calendar", "25:00", undefined, "INVALID_SCHEDULE"],
  ["cron", "61 * * * *", undefined, "INVALID_SCHEDULE"],
  ["cron", "* * * *", undefined, "INVALID_SCHEDULE"],
  ["cron", "0 9 * * *", "Mars/Base", "INVALID_TIMEZONE"],
  ["every", "-20s", undefined, "INVALID_DURATION"],
];

describe("A13 a schedule is checked without storing it", () => {
  test("carillon next: canonical form, plain words, and the next times in the zone", async () => {
    const lines = VECTORS.map((vector) => {
      const { syntax, expr, timezone, from } = vector;
      return JSON.stringify({ syntax, expr, timezone, from, count: count(vector) });
    });
    const { code, stdout } = await stand.carillon(["next", "--batch"], lines.join("\n"));
    expect(code).toBe(0);
    const answers = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Line);
    expect(answers.map(({ canonical, next, exhausted }) => ({ canonical, next, exhausted }))).toEqual(
      VECTORS.map(({ canonical, next, exhausted = false }) => ({ canonical, next, exhausted })),
    );
    for (const [n, { words }] of VECTORS.entries()) {
      for (const word of words) expect(answers[n]?.["description"]).toContain(word);
    }
  });

  test("carillon next prints text for people", async () => {
    const [vector] = VECTORS as [Vector];
    const { code, stdout } = await stand.carillon([
      "next",
      vector.expr,
      "--timezone",
      "Europe/Berlin",
      "--from",
      vector.from,
      "--count",
      "2",
    ]);
    expect(code).toBe(0);
    expect(stdout).toContain("Mon..Fri *-*-* 09:00:00");
    expect(stdout).toContain("Monday to Friday");
    expect(stdout).toMatch(/2026-03-27T08:00:00Z +2026-03-27T09:00:00\+01:00/);
    expect(stdout).toMatch(/2026-03-30T07:00:00Z +2026-03-30T09:00:00\+02:00/);
  });

  test("local times west of Greenwich have a minus", async () => {
    const [{ expr, from }] = VECTORS as [Vector];
    const zone = ["--timezone", "America/New_York", "--count", "1"];
    const { stdout } = await stand.carillon(["next", expr, "--from", from, ...zone]);
    expect(stdout).toMatch(/2026-03-\d\dT13:00:00Z +2026-03-\d\dT09:00:00-04:00/);
  });

  test("carillon next refuses an invalid schedule, with a code", async () => {
    const lines = REFUSED.map(([syntax, expr, timezone]) => JSON.stringify({ syntax, expr, timezone }));
    const { stdout } = await stand.carillon(["next", "--batch"], lines.join("\n"));
    const codes = stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { error?: { code: string } }).error?.code);
    expect(codes).toEqual(REFUSED.map(([, , , code]) => code));
    const alone = await stand.carillon(["next", "Foo..Fri 09:00", "--json"]);
    expect(alone).toMatchObject({ code: 2, stdout: "" });
    expect(JSON.parse(alone.stderr)).toMatchObject({ error: { code: "INVALID_SCHEDULE" } });
  });

  test("the SDK says the same", () => {
    for (const vector of VECTORS) {
      const schedule = scheduleSchema.parse(scheduleOf(vector));
      const preview = previewSchedule(schedule, { from: Date.parse(vector.from), count: count(vector) });
      expect(preview.times.map(({ utc }) => utc)).toEqual(vector.next);
      expect(preview.exhausted).toBe(vector.exhausted ?? false);
      expect(canonicalSchedule(schedule)).toBe(vector.canonical);
      for (const word of vector.words) expect(describeSchedule(schedule)).toContain(word);
    }
    const [berlin] = VECTORS as [Vector];
    const { times } = previewSchedule(scheduleSchema.parse(scheduleOf(berlin)), {
      from: Date.parse(berlin.from),
      count: 2,
    });
    expect(times.map(({ local }) => local)).toEqual([
      "2026-03-27T09:00:00+01:00",
      "2026-03-30T09:00:00+02:00",
    ]);
    for (const [syntax, expr, timezone, code] of REFUSED) {
      const { error } = scheduleSchema.safeParse(
        scheduleOf({ syntax, expr, ...(timezone ? { timezone } : {}) }),
      );
      expect(error?.issues[0]).toMatchObject({ params: { code } });
    }
  });

  test("the HTTP API says the same, and stores nothing", async () => {
    const token = "a-token-for-this-test";
    const console = stand.program("apps/console/bin/carillon-console.js", {
      CARILLON_CONSOLE_PORT: "0",
      CARILLON_TOKEN: token,
    });
    const { url } = await console.says({ msg: "listening" });
    const validate = async (body: unknown) => {
      const response = await fetch(`${url}/api/v1/tasks/validate`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      return { status: response.status, body: (await response.json()) as Line };
    };
    for (const vector of VECTORS) {
      const question = { schedule: scheduleOf(vector), from: Date.parse(vector.from), count: count(vector) };
      const { status, body } = await validate(question);
      expect(status).toBe(200);
      const next = (body["next"] as { nominal: number }[]).map(({ nominal }) => nominal);
      expect(next).toEqual(vector.next.map((time) => Date.parse(time)));
      expect(body).toMatchObject({ canonical: vector.canonical, exhausted: vector.exhausted ?? false });
      for (const word of vector.words) expect(body["humanized"]).toContain(word);
    }
    for (const [syntax, expr, timezone, code] of REFUSED) {
      const { status, body } = await validate({
        schedule: scheduleOf({ syntax, expr, ...(timezone ? { timezone } : {}) }),
      });
      expect([status, body]).toMatchObject([400, { error: { code } }]);
    }
    expect(await stand.admin.keys(`{${stand.namespace}*`)).toEqual([]);
  });
});
