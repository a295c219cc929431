import { describe, expect, it } from "vitest";
import { carillon } from "./helpers.js";

const FROM = "2026-03-27T00:00:00Z";
const BERLIN = ["--timezone", "Europe/Berlin", "--from", FROM];

/** Scripts of users parse this output, so it must not change by one character. */
describe("one expression alone", () => {
  it("prints this text for people", async () => {
    const { stdout } = await carillon(["next", "0 4 * * *", ...BERLIN, "-n", "2"]);
    expect(stdout).toBe(`cron   0 4 * * *
means  at 04:00, every day (Europe/Berlin)

UTC                   LOCAL
2026-03-27T03:00:00Z  2026-03-27T04:00:00+01:00  in 3 h
2026-03-28T03:00:00Z  2026-03-28T04:00:00+01:00  in 1 d 3 h
`);
  });

  it("reports that nothing follows, or ever did", async () => {
    const once = ["next", "2026-03-28T00:00:00Z", "--timezone", "UTC"];
    const head = "at     2026-03-28T00:00:00Z\nmeans  once, at 2026-03-28T00:00:00Z\n";
    const left = await carillon([...once, "--from", FROM]);
    expect(left.stdout).toBe(`${head}
UTC                   LOCAL
2026-03-28T00:00:00Z  2026-03-28T00:00:00+00:00  in 1 d

Nothing follows.
`);
    const gone = await carillon([...once, "--from", "2026-03-28T00:00:00Z"]);
    expect(gone.stdout).toBe(`${head}\nIt never fires again.\n`);
  });

  it("prints a batch line for programs, with its warnings", async () => {
    const { stdout } = await carillon(["next", "* * * * * *", ...BERLIN, "-n", "1", "--json"]);
    expect(stdout).toBe(
      '{"canonical":"* * * * * *","description":"every second, every day (Europe/Berlin)",' +
        '"next":["2026-03-27T00:00:01Z"],"exhausted":false,"warnings":[{"code":"EACH_SECOND",' +
        '"message":"It fires each second or more often while it matches.","remedy":"For once a minute, write 0 for the second."}]}\n',
    );
    const input = '{"expr":"* * * * * *","timezone":"Europe/Berlin","from":"2026-03-27T00:00:00Z","count":1}';
    const batch = await carillon(["next", "--batch"], { input });
    expect(batch.stdout).toBe(
      '{"canonical":"* * * * * *","description":"every second, every day (Europe/Berlin)",' +
        '"next":["2026-03-27T00:00:01Z"],"exhausted":false}\n',
    );
  });

  it("adds a note at a clock change, for people only", async () => {
    const args = ["next", "0 2 * * *", "-z", "Europe/Berlin", "--from", "2026-03-28T12:00:00Z", "-n", "2"];
    const { stdout } = await carillon(args);
    expect(stdout).toContain(`
UTC                   LOCAL                                   NOTES
2026-03-29T01:00:00Z  2026-03-29T03:00:00+02:00  in 13 h      meant for 2026-03-29T02:00:00, which the clock skips; this day has 23 h
2026-03-30T00:00:00Z  2026-03-30T02:00:00+02:00  in 1 d 12 h
`);
    const { stdout: json } = await carillon([...args, "--json"]);
    expect(Object.keys(JSON.parse(json))).toEqual(["canonical", "description", "next", "exhausted"]);
  });

  it("accepts any name of a zone", async () => {
    const { stdout } = await carillon(["next", "1h", "-z", "europe/berlin", "--from", FROM, "-n", "1"]);
    expect(stdout).toContain("2026-03-27T01:00:00Z  2026-03-27T02:00:00+01:00  in 1 h\n");
  });

  it("takes a zone for intervals of the calendar: a month in words, not 1d", async () => {
    const next = async (expr: string) => {
      const { stdout } = await carillon(["next", expr, ...BERLIN, "-n", "1", "--json"]);
      return JSON.parse(stdout).next;
    };
    expect(await next("1 month")).toEqual(["2026-03-31T22:00:00Z"]);
    expect(await next("1d")).toEqual(["2026-03-28T00:00:00Z"]);
  });
});
