import { describe, expect, test } from "vitest";
import { Auth, FailureLimiter, type LimiterOptions } from "../src/auth.js";

describe("sessions", () => {
  let now = 1_000_000;
  const options = {
    tokens: { admin: ["admin"], operator: ["operator"], viewer: ["viewer"] },
    namespace: "n",
    now: () => now,
  };
  const auth = new Auth(options);
  const open = async (token: string, by = auth) => by.openSession((await by.credential(token))!);
  const roleOf = async (session: string, by = auth) => (await by.session(session))?.credential.role;

  test("hold the role of the token, and expire", async () => {
    const session = await open("viewer");
    expect(await roleOf(session)).toBe("viewer");
    now += 12 * 3_600_000 - 1;
    expect(await roleOf(session)).toBe("viewer");
    now += 1;
    expect(await roleOf(session)).toBeUndefined();
  });

  test("have ids that never repeat", async () => {
    const [one, other] = [await auth.session(await open("admin")), await auth.session(await open("admin"))];
    expect(one?.id).toMatch(/^[\w-]{22}$/);
    expect(one?.id).not.toBe(other?.id);
  });

  test("cannot be changed in role, time or id", async () => {
    const session = await open("viewer");
    const [, expiry, id, mac] = session.split(".");
    const forged = [
      `admin.${expiry}.${id}.${mac}`,
      `operator.${expiry}.${id}.${mac}`,
      `viewer.zzzzzzzz.${id}.${mac}`,
      `viewer.${expiry}.other.${mac}`,
      `viewer.${expiry}.${id}`,
      `viewer.${expiry}.${id}.`,
      `${session}.x`,
      "",
    ];
    expect(await Promise.all(forged.map((one) => roleOf(one)))).toEqual(forged.map(() => undefined));
  });

  test("are valid on consoles with the same tokens only", async () => {
    const session = await open("admin");
    expect(await roleOf(session, new Auth(options))).toBe("admin");
    expect(await roleOf(session, new Auth({ ...options, tokens: { admin: ["new"] } }))).toBeUndefined();
    expect(await roleOf(session, new Auth({ ...options, namespace: "m" }))).toBeUndefined();
  });

  test("survive a rotation, and end with their token", async () => {
    const session = await open("admin");
    const both = new Auth({ ...options, tokens: { admin: ["new", "admin"] } });
    expect(await roleOf(session, both)).toBe("admin");
    expect(
      await Promise.all(["new", "admin"].map(async (token) => (await both.credential(token))?.role)),
    ).toEqual(["admin", "admin"]);
    const renewed = await open("new", both);
    const after = new Auth({ ...options, tokens: { admin: ["new"] } });
    expect([await roleOf(session, after), await roleOf(renewed, after)]).toEqual([undefined, "admin"]);
    expect(await after.credential("admin")).toBeUndefined();
  });

  test("no prefix of a token, and no missing token, opens anything", async () => {
    const role = (by: Auth) => async (token: string) => (await by.credential(token))?.role;
    expect(
      await Promise.all(
        ["admin", "operator", "viewer", "admi", "admin ", "", "undefined", "admin,viewer"].map(role(auth)),
      ),
    ).toEqual(["admin", "operator", "viewer", ...new Array(5).fill(undefined)]);
    const alone = new Auth({ tokens: { admin: ["admin"] }, namespace: "n" });
    expect(await Promise.all(["", "undefined", "viewer", "operator"].map(role(alone)))).toEqual(
      new Array(4).fill(undefined),
    );
  });
});

describe("the limiter of wrong tokens", () => {
  /** A limiter without a waiting line: it refuses at once. */
  const strict = (options: LimiterOptions) => new FailureLimiter({ waiting: 0, ...options });
  const isFree = async (limiter: FailureLimiter, address: string) =>
    (await limiter.failed(address)) === "at once";

  test("lets a few of an address pass, and refills one by one", async () => {
    let now = 0;
    const limiter = strict({ failures: 2, windowMs: 100, now: () => now });
    const next = () => isFree(limiter, "10.0.0.1");
    expect([await next(), await next(), await next()]).toEqual([true, true, false]);
    expect(await isFree(limiter, "10.0.0.2")).toBe(true);
    now = 49;
    expect(await next()).toBe(false);
    now = 50;
    expect([await next(), await next()]).toEqual([true, false]);
    now = 1_000_000;
    expect([await next(), await next(), await next()]).toEqual([true, true, false]);
  });

  test("lets 10 pass by default, and one more every 6 s", async () => {
    let now = 0;
    const limiter = strict({ now: () => now });
    const free = async (tries: number) => {
      let count = 0;
      for (let i = 0; i < tries; i++) if (await isFree(limiter, "10.0.0.1")) count += 1;
      return count;
    };
    expect(await free(20)).toBe(10);
    now = 6_000;
    expect(await free(20)).toBe(1);
  });

  test("delays the other answers, up to a limit", async () => {
    const ends: (() => void)[] = [];
    const sleep = (ms: number) => {
      expect(ms).toBe(1_000);
      return new Promise<void>((resolve) => void ends.push(resolve));
    };
    const limiter = new FailureLimiter({ failures: 0, waiting: 2, sleep });
    const late = [limiter.failed("a"), limiter.failed("b")];
    expect([await limiter.failed("a"), await limiter.failed("c")]).toEqual(["too many", "too many"]);
    ends[0]?.();
    expect(await late[0]).toBe("late");
    late.push(limiter.failed("c"));
    for (const end of ends) end();
    expect(await Promise.all(late)).toEqual(["late", "late", "late"]);
  });

  test("treats an IPv6 network as one address", async () => {
    const limiter = strict({ failures: 1 });
    expect(await isFree(limiter, "2001:db8:1:2::5")).toBe(true);
    expect(await isFree(limiter, "2001:db8:1:2:aaaa:bbbb:cccc:dddd")).toBe(false);
    expect(await isFree(limiter, "2001:db8:1:3::5")).toBe(true);
    expect([await isFree(limiter, "::1"), await isFree(limiter, "::1")]).toEqual([true, false]);
    expect(await isFree(limiter, "::ffff:10.0.0.1")).toBe(true);
    expect(await isFree(limiter, "::ffff:10.0.0.2")).toBe(true);
  });

  test("bounds the number of addresses and the memory for each", async () => {
    const limiter = strict({ failures: 1, addresses: 2 });
    for (const address of ["a", "b", "c"]) await limiter.failed(address);
    // An address that continues to send wrong tokens stays blocked.
    expect(await isFree(limiter, "b")).toBe(false);
    expect(await isFree(limiter, "a")).toBe(true);
    expect([await isFree(limiter, "b"), await isFree(limiter, "c")]).toEqual([false, true]);
    const many = strict({ failures: 1 });
    for (let i = 0; i < 10_000; i++) await many.failed(`10.0.${i}`);
    expect(await isFree(many, "10.0.0")).toBe(false);
    const long = "x".repeat(64);
    expect([await isFree(many, `${long}1`), await isFree(many, `${long}2`)]).toEqual([true, false]);
  });
});
