import { describe, expect, it } from "vitest";
import { entriesOf } from "../src/calendar-entries.js";

describe("the entries of a calendar", () => {
  it("are one a line, without comments and blank lines", () => {
    const text = "# holidays\r\n2026-12-25\r\n\r\n  *-05-01   # Labour Day\n*-12-24 12..23:* Europe/Berlin";
    expect(entriesOf(text)).toEqual(["2026-12-25", "*-05-01", "*-12-24 12..23:* Europe/Berlin"]);
  });

  it("are a JSON list if the text begins as one", () => {
    expect(entriesOf(' \n["2026-12-25", "#"]')).toEqual(["2026-12-25", "#"]);
    expect(entriesOf("[]")).toEqual([]);
    expect(() => entriesOf('["2026-12-25"')).toThrow(/not JSON/);
  });

  it("may be empty, with comments only", () => {
    expect(entriesOf("# nothing yet\n")).toEqual([]);
  });
});
