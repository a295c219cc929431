import { describe, expect, it } from "vitest";
import { type AlertDestination, type AlertKind, parseTask } from "../src/index.js";
import {
  assertSilenceScope,
  destinationsOf,
  endpointOf,
  parsePolicies,
  quietUntil,
  type Silence,
  silenceOf,
  withDefaults,
} from "../src/internal.js";

const task = { queue: "q", owner: "acme", id: "t" };
const [A, B] = ["https://a.example/", "https://b.example/"];
const alertsOf = (alerts: object[]) => parsePolicies({ alerts: alerts as never }).alerts ?? [];

describe("destinationsOf", () => {
  const define = (more: object = {}) =>
    parseTask({ ...task, type: "noop", schedule: { every: "1h" }, ...more }).definition;
  const defaults = new Map([
    ["all", parsePolicies({ alerts: [{ on: ["failed", "stopped", "recovered"], url: A }] })],
  ]);
  const urls = (about: Parameters<typeof destinationsOf>[0], definition?: ReturnType<typeof define>) =>
    destinationsOf(about, definition, defaults).map(endpointOf);

  it("are the task's own, else the defaults", () => {
    expect(urls({ kind: "failed", task }, define())).toEqual([A]);
    expect(urls({ kind: "slow", task }, define())).toEqual([]);
    const own = define({ alerts: [{ on: ["failed"], url: B }] });
    expect(urls({ kind: "failed", task }, own)).toEqual([B]);
    expect(urls({ kind: "recovered", task, ended: ["failed"] }, own)).toEqual([]);
  });

  it("are the defaults of its type before those of its owner, and a put stores none", () => {
    const scoped = new Map(defaults);
    const of = (...scopes: string[]) => {
      for (const scope of scopes)
        scoped.set(
          scope,
          parsePolicies({ alerts: [{ on: ["failed"], url: `https://${scope.replace(":", ".")}/` }] }),
        );
      return destinationsOf({ kind: "failed", task }, define(), scoped).map(endpointOf);
    };
    expect(of("owner:acme", "type:other")).toEqual(["https://owner.acme/"]);
    expect(of("type:noop")).toEqual(["https://type.noop/"]);
    const [ofType] = destinationsOf({ kind: "failed", task }, define(), scoped);
    const [ofAll] = destinationsOf({ kind: "failed", task }, define(), defaults);
    // One receiver for all owners.
    expect([ofType?.shared, ofAll?.shared]).toEqual([true, true]);
    expect(withDefaults(define(), defaults)).toEqual(define());
  });

  it("of an alert about the namespace are the defaults of all tasks, and a delivery has none", () => {
    expect(urls({ kind: "stopped", queue: "q" })).toEqual([A]);
    expect(urls({ kind: "no-worker", queue: "q" })).toEqual([]);
    expect(urls({ kind: "failed", task }, define({ queue: "carillon-alerts" }))).toEqual([]);
  });

  it("get `recovered` if they get the alert that it ends", () => {
    const ended = (...kinds: AlertKind[]) => urls({ kind: "recovered", task, ended: kinds }, define());
    expect([ended("failed"), ended("slow"), ended("slow", "failed")]).toEqual([[A], [], [A]]);
    const all = define({ alerts: [{ on: ["recovered"], url: B }] });
    expect(urls({ kind: "recovered", task, ended: ["slow"] }, all)).toEqual([B]);
  });
});

describe("quietUntil", () => {
  const at = (text: string) => Date.parse(`2026-01-0${text}:00Z`);
  const quiet = (times: object[]) =>
    alertsOf([{ on: ["failed"], url: A, quiet: times }])[0] as AlertDestination;

  it("is the end of the current quiet time, and of those that follow without a gap", () => {
    const nights = quiet([
      { schedule: { cron: "0 22 * * *", timezone: "UTC" }, for: "8h" },
      { schedule: { calendar: "Sat,Sun 06:00", timezone: "UTC" }, for: "16h" },
    ]);
    // January 2 is a Friday.
    const until = ["1T21:59", "1T22:00", "2T05:59", "2T06:00", "3T03:00"].map((one) =>
      quietUntil(nights, at(one)),
    );
    const expected = [undefined, at("2T06:00"), at("2T06:00"), undefined, at("5T06:00")];
    expect(until).toEqual(expected);
    expect(
      quietUntil(alertsOf([{ on: ["failed"], url: A }])[0] as AlertDestination, at("1T00:00")),
    ).toBeUndefined();
  });

  it("refuses a schedule without times, or that is not a cron or calendar expression", () => {
    for (const schedule of [{ every: "1h" }, { cron: "0 0 30 2 *" }, { calendar: "22:00", maxRuns: 3 }]) {
      expect(() => quiet([{ schedule, for: "1h" }])).toThrow(/^alerts\[0\]\.quiet\[0\]\.schedule/);
    }
    expect(() => quiet([])).toThrow(/^alerts\[0\]\.quiet/);
  });
});

describe("silenceOf", () => {
  const of = (scope: Partial<Silence>, about: Parameters<typeof silenceOf>[1], now = 0) =>
    silenceOf([{ id: "s", until: 10, created: 0, ...scope }], about, now) !== undefined;
  const failed = { kind: "failed", task, cause: "e75bf74f" } as const;

  it.each<[string, Partial<Silence>, boolean]>([
    ["all", { all: true }, true],
    ["its owner", { owner: "acme" }, true],
    ["another owner", { owner: "beta" }, false],
    ["its id", { task: "t", owner: "acme" }, true],
    ["another id", { task: "u" }, false],
    ["its queue", { queue: "q" }, true],
    ["its kind", { kind: "failed" }, true],
    ["another kind", { kind: "slow", owner: "acme" }, false],
    ["its cause", { cause: "e75bf74f" }, true],
    ["another cause", { cause: "00000000" }, false],
    ["its cause of another owner", { cause: "e75bf74f", owner: "beta" }, false],
  ])("%s", (_, scope, expected) => {
    expect(of(scope, failed)).toBe(expected);
    expect(of(scope, failed, 10)).toBe(false);
  });

  it("of a kind covers its end; of an owner does not cover the namespace", () => {
    const kind = { kind: "failed" } as const;
    expect(of(kind, { kind: "recovered", task, ended: ["failed"] })).toBe(true);
    expect(of(kind, { kind: "recovered", task, ended: ["failed", "slow"] })).toBe(false);
    expect(of({ owner: "acme" }, { kind: "stopped" })).toBe(false);
    expect(of({ queue: "q" }, { kind: "stopped", queue: "q" })).toBe(true);
  });

  it("of a cause covers the end of failures, and not of what else has ended with them", () => {
    const recovered = (...ended: AlertKind[]) =>
      of({ cause: "e75bf74f" }, { kind: "recovered", task, ended, cause: "e75bf74f" });
    expect([recovered("failed", "crashed"), recovered("failed", "slow")]).toEqual([true, false]);
    expect(of({ cause: "e75bf74f" }, { kind: "slow", task })).toBe(false);
  });

  it("names a scope, or `all`", () => {
    for (const scope of [{ cause: "E75BF74F" }, { all: true, cause: "e75bf74f" }])
      expect(() => assertSilenceScope(scope)).toThrow();
    for (const scope of [{}, { all: true, kind: "slow" }, { owner: "a b" }])
      expect(() => assertSilenceScope(scope as never)).toThrow();
    assertSilenceScope({ all: true });
  });
});
