import { afterEach, expect, it, vi } from "vitest";
import { eventually } from "../src/index.js";

afterEach(() => {
  vi.useRealTimers();
});

it("returns the first value that is not false", async () => {
  let calls = 0;
  expect(await eventually(() => (++calls === 3 ? "bell" : false), { intervalMs: 1 })).toBe("bell");
  expect(calls).toBe(3);
});

it("accepts an assertion that passes without a value", async () => {
  let calls = 0;
  await eventually(() => expect(++calls).toBe(2), { intervalMs: 1 });
});

it("refuses a value that may be missing", async () => {
  // @ts-expect-error its `undefined` ends the wait
  expect(await eventually((): string | undefined => undefined)).toBeUndefined();
});

it("throws the last error of the function when time is up", async () => {
  const never = () => {
    throw new Error("no bell");
  };
  await expect(eventually(never, { timeoutMs: 30 })).rejects.toThrow("no bell");
  await expect(eventually(() => false, { timeoutMs: 30 })).rejects.toThrow("still false after 30 ms");
});

it("waits in real time even if timers are faked", async () => {
  vi.useFakeTimers();
  let calls = 0;
  await eventually(() => ++calls === 3, { intervalMs: 1 });
});
