import { describe, expect, test } from "vitest";
import { Auth, FailureLimiter } from "../src/auth.js";

describe("sessions", () => {
  let now = 1_000_000;
  const options = {
    ...{ token: "admin", operatorToken: "operator", viewerToken: "viewer" },
    ...{ namespace: "n", now: () => now },
  };
  const auth = new Auth(options);

  test("hold the role of the token, and end", () => {
    const { value, maxAgeMs } = auth.openSession("viewer");
    expect(maxAgeMs).toBe(12 * 3_600_000);
    expect(auth.roleOfSession(value)).toBe("viewer");
    now += maxAgeMs - 1;
    expect(auth.roleOfSession(value)).toBe("viewer");
    now += 1;
    expect(auth.roleOfSession(value)).toBeUndefined();
  });

  test("cannot be made into another role's, prolonged or shortened", () => {
    const { value } = auth.openSession("viewer");
    const [, expiry, nonce, mac] = value.split(".");
    const forged = [
      `admin.${expiry}.${nonce}.${mac}`,
      `operator.${expiry}.${nonce}.${mac}`,
      `viewer.zzzzzzzz.${nonce}.${mac}`,
      `viewer.${expiry}.other.${mac}`,
      `viewer.${expiry}.${nonce}`,
      `viewer.${expiry}.${nonce}.`,
      `${value}.x`,
      "",
    ];
    expect(forged.map((session) => auth.roleOfSession(session))).toEqual(forged.map(() => undefined));
  });

  test("hold on another console with the same tokens, and on none with others", () => {
    const { value } = auth.openSession("admin");
    expect(new Auth(options).roleOfSession(value)).toBe("admin");
    expect(new Auth({ ...options, token: "new" }).roleOfSession(value)).toBeUndefined();
    expect(new Auth({ ...options, namespace: "m" }).roleOfSession(value)).toBeUndefined();
  });

  test("no token is the start of another, and an absent viewer token opens nothing", () => {
    expect(
      ["admin", "operator", "viewer", "admi", "admin ", "", "undefined"].map((token) =>
        auth.roleOfToken(token),
      ),
    ).toEqual(["admin", "operator", "viewer", undefined, undefined, undefined, undefined]);
    const alone = new Auth({ token: "admin", namespace: "n" });
    expect(["", "undefined", "viewer", "operator"].map((token) => alone.roleOfToken(token))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe("the limiter of failures", () => {
  test("locks an address for the rest of its window", () => {
    let now = 0;
    const limiter = new FailureLimiter({ failures: 2, windowMs: 100, now: () => now });
    limiter.failed("10.0.0.1");
    expect(limiter.lockedFor("10.0.0.1")).toBe(0);
    now = 30;
    limiter.failed("10.0.0.1");
    expect(limiter.lockedFor("10.0.0.1")).toBe(70);
    expect(limiter.lockedFor("10.0.0.2")).toBe(0);
    now = 100;
    expect(limiter.lockedFor("10.0.0.1")).toBe(0);
    limiter.failed("10.0.0.1");
    expect(limiter.lockedFor("10.0.0.1")).toBe(0);
  });

  test("locks it, if nothing else is said, at the tenth failure within a minute of the first", () => {
    let now = 0;
    const limiter = new FailureLimiter({ now: () => now });
    const fail = (times: number) => {
      for (let i = 0; i < times; i++) limiter.failed("10.0.0.1");
      return limiter.lockedFor("10.0.0.1");
    };
    expect(fail(9)).toBe(0);
    now = 60_000;
    expect([fail(9), fail(1)]).toEqual([0, 60_000]);
  });

  test("takes an IPv6 network for one address", () => {
    const limiter = new FailureLimiter({ failures: 1 });
    limiter.failed("2001:db8:1:2::5");
    expect(limiter.lockedFor("2001:db8:1:2:aaaa:bbbb:cccc:dddd")).toBeGreaterThan(0);
    expect(limiter.lockedFor("2001:db8:1:3::5")).toBe(0);
    limiter.failed("::1");
    expect(limiter.lockedFor("::1")).toBeGreaterThan(0);
    limiter.failed("::ffff:10.0.0.1");
    expect(limiter.lockedFor("::ffff:10.0.0.2")).toBe(0);
  });

  test("remembers no more addresses than it may", () => {
    const limiter = new FailureLimiter({ failures: 1, addresses: 2 });
    for (const address of ["a", "b", "c"]) limiter.failed(address);
    expect(["a", "b", "c"].map((address) => limiter.lockedFor(address) > 0)).toEqual([false, true, true]);
    // Whoever goes on is remembered.
    for (const address of ["b", "d"]) limiter.failed(address);
    expect(["b", "c", "d"].map((address) => limiter.lockedFor(address) > 0)).toEqual([true, false, true]);
    const many = new FailureLimiter({ failures: 1 });
    for (let i = 0; i < 10_000; i++) many.failed(`10.0.${i}`);
    expect(many.lockedFor("10.0.0")).toBeGreaterThan(0);
  });
});
