import { describe, expect, it } from "vitest";
import { ServerClock } from "../src/loop/server-clock.js";

describe("the estimate of the server's clock", () => {
  function make() {
    let monotonic = 1_000;
    const clock = new ServerClock(() => monotonic);
    /** A read that takes `trip` ms, with the server's clock at `server` half way. */
    const read = (server: number, trip = 2) => {
      const sentAt = clock.mark();
      monotonic += trip;
      clock.observe(server, sentAt);
    };
    const pass = (ms: number) => {
      monotonic += ms;
    };
    return { clock, read, pass };
  }

  it("follows the monotonic clock between reads", () => {
    const { clock, read, pass } = make();
    read(50_000, 2);
    expect(clock.now()).toBe(50_001);
    pass(1_234);
    expect(clock.now()).toBe(51_235);
  });

  it("prefers the read with the shorter round trip", () => {
    const { clock, read } = make();
    read(50_000, 2);
    const before = clock.now();
    read(50_090, 100);
    // A slow read is too imprecise to contradict the good sample.
    expect(clock.now()).toBe(before + 100);
  });

  it.each([
    ["went back", 10_000_000, 2],
    ["went back, as a slow read tells", 10_000_000, 100],
    ["went forward by less than a minute, as a slow read tells", 50_040_000, 100],
  ])("follows a server that %s, at once", (_what, server, trip) => {
    const { clock, read } = make();
    read(50_000_000);
    read(server, trip);
    expect(clock.holding).toBe(false);
    expect(Math.abs(clock.now() - server - trip / 2)).toBeLessThanOrEqual(1);
  });

  it("prefers a worse read to an old one: clocks drift", () => {
    const { clock, read, pass } = make();
    read(50_000, 2);
    pass(60_000);
    const before = clock.now();
    read(before + 50 + 40, 100);
    expect(clock.now()).toBe(before + 100 + 40);
  });

  it("holds claims when the server jumps forward by more than a minute, until a read 5 s later agrees", () => {
    const { clock, read, pass } = make();
    read(50_000_000);
    read(50_100_000);
    expect(clock.holding).toBe(true);
    expect(clock.confirmIn).toBe(5_000);
    expect(Math.abs(clock.now() - 50_000_003)).toBeLessThanOrEqual(2);
    pass(2_000);
    read(50_102_000);
    expect(clock.holding).toBe(true);
    expect(clock.confirmIn).toBe(2_998);
    pass(3_000);
    expect(clock.confirmIn).toBe(0);
    read(50_105_004);
    expect(clock.holding).toBe(false);
    expect(Math.abs(clock.now() - 50_105_005)).toBeLessThanOrEqual(2);
  });

  it.each([2, 500])("forgets a jump that a read of %d ms does not confirm", (trip) => {
    const { clock, read, pass } = make();
    read(50_000_000);
    read(90_000_000);
    expect(clock.holding).toBe(true);
    pass(1_000);
    read(50_001_004 + trip / 2, trip);
    expect(clock.holding).toBe(false);
  });

  it("believes no jump that the read 5 s later does not confirm", () => {
    const { clock, read, pass } = make();
    read(50_000_000);
    read(50_100_000);
    pass(5_000);
    read(90_000_000);
    expect(clock.holding).toBe(true);
    pass(5_000);
    read(90_005_002);
    expect(clock.holding).toBe(false);
  });
});
