import { describe, expect, it } from "vitest";
import { causeOf } from "../src/cause.js";

const SAME: [string, string][] = [
  ["Error: connect ECONNREFUSED 10.0.0.7:5432", "Error: connect ECONNREFUSED 10.0.0.8:5433"],
  ["Error: connect ECONNREFUSED ::1:5432", "Error: connect ECONNREFUSED fe80::2:5432"],
  ['Error: no customer "acme"', 'Error: no customer "beta and sons"'],
  ["Error: no customer 'acme'", "Error: no customer 'beta'"],
  ["Error: order 4711 is closed", "Error: order 4712 is closed"],
  ["Error: took 12.5 s", "Error: took 9 s"],
  [
    "Error: run 5d1c7e0a-9d0f-4c1e-8f59-3a1b2c3d4e5f is gone",
    "Error: run 00000000-9d0f-4c1e-8f59-3a1b2c3d4e5f is gone",
  ],
  ["Error: no mail for ann@example.com", "Error: no mail for bob.b@mail.example.org"],
  ["Error: GET https://a.example/x?id=1 failed", "Error: GET https://b.example:8443/y failed"],
  ["Error: due at 2026-01-02T03:04:05.678Z", "Error: due at 2026-11-28 10:00"],
  ["Error: run b@mjuom2bk.02peblytaffhg was lost", "Error: run b@mjuogx4w.2e7ubv0h7qlk4 was lost"],
];

const OTHER: [string, string][] = [
  ["Error: HTTP 503", "Error: HTTP 404"],
  ["Error: Request failed with status code 500", "Error: Request failed with status code 429"],
  ["Error: exit code 1", "Error: exit code 137"],
  ["Error: connect ECONNREFUSED 10.0.0.7:5432", "Error: connect ETIMEDOUT 10.0.0.7:5432"],
  ["Error: ERR_HTTP2_STREAM_ERROR", "Error: ERR_HTTP2_PROTOCOL_ERROR"],
  ["TypeError: x is undefined", "TypeError: y is undefined"],
];

describe("the cause of a failure", () => {
  it.each(SAME)("is one for %s and %s", (one, other) => {
    expect(causeOf("failed", one)).toEqual(causeOf("failed", other));
  });

  it.each(OTHER)("is another for %s and %s", (one, other) => {
    expect(causeOf("failed", one).id).not.toBe(causeOf("failed", other).id);
  });

  it("keeps what says which kind of failure it is", () => {
    expect(causeOf("failed", "Error: it didn't answer in 30 s, and can't be reached").error).toBe(
      "Error: it didn't answer in … s, and can't be reached",
    );
  });

  it("depends on outcome and place, not on the line of the place or the folder of the installation", () => {
    const at = (frame: string) => causeOf("failed", "Error: x", frame);
    expect(at("load (/app/src/report.js:10:5)")).toEqual(at("load (/srv/v2/src/report.js:99:1)"));
    expect(at("load (/app/src/report.js:10:5)").frame).toBe("load (src/report.js)");
    expect(at("file:///app/src/report.js:10:5").frame).toBe("src/report.js");
    expect(at("load (/app/src/report.js:10:5)").id).not.toBe(at("save (/app/src/report.js:10:5)").id);
    expect(causeOf("timed-out", "Error: x").id).not.toBe(causeOf("failed", "Error: x").id);
  });

  it("never changes its id, which silences name", () => {
    expect(causeOf("failed", "Error: connect ECONNREFUSED 10.0.0.7:5432", "load (/a/b/c.js:1:2)").id).toBe(
      "e75bf74f",
    );
  });
});
