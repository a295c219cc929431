import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { KeyedLock } from "../src/keyed-lock.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const never = new Promise<never>(() => {});

it("are taken in the order of the calls, also after a failure", async () => {
  const lock = new KeyedLock();
  const seen: string[] = [];
  const act = (what: string, fails = false) =>
    lock.take(["a"], async () => {
      seen.push(`${what} begins`);
      await vi.advanceTimersByTimeAsync(10);
      seen.push(`${what} ends`);
      if (fails) throw new Error(what);
      return what;
    });
  const all = await Promise.allSettled([act("1"), act("2", true), act("3")]);
  expect(all.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(seen).toEqual(["1 begins", "1 ends", "2 begins", "2 ends", "3 begins", "3 ends"]);
});

it("do not wait for calls of another name", async () => {
  const lock = new KeyedLock();
  void lock.take(["a"], () => never);
  expect(await lock.take(["b"], async () => "done")).toBe("done");
});

it("continue after a second if a call does not end", async () => {
  const lock = new KeyedLock();
  void lock.take(["a"], () => never);
  const [second, third] = [vi.fn(async () => {}), vi.fn(async () => {})];
  void lock.take(["a"], second);
  void lock.take(["a"], third);
  await vi.advanceTimersByTimeAsync(999);
  expect(second).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(second).toHaveBeenCalled();
  expect(third).toHaveBeenCalled();
  expect(vi.getTimerCount()).toBe(0);
});

it("for several names wait for calls of each", async () => {
  const lock = new KeyedLock();
  const seen: string[] = [];
  const act = (names: string[]) =>
    lock.take(names, async () => {
      seen.push(names.join());
      await vi.advanceTimersByTimeAsync(10);
    });
  await Promise.all([act(["a", "b"]), act(["c"]), act(["b", "c"]), act(["a"]), act(["c", "a"])]);
  expect(seen.slice(0, 2).sort()).toEqual(["a,b", "c"]);
  expect(seen.slice(2, 4).sort()).toEqual(["a", "b,c"]);
  expect(seen[4]).toBe("c,a");
});
