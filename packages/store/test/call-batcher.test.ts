import { afterEach, expect, it, vi } from "vitest";
import { CallBatcher } from "../src/run/call-batcher.js";

afterEach(() => {
  vi.useRealTimers();
});

function batcher() {
  const sent: string[] = [];
  const calls = new CallBatcher<number, number>(3, async (key, items) => {
    sent.push(`${key} ${items.join(" ")}`);
    if (items.includes(0)) throw new Error("0");
    return items.map((item) => (item === 13 ? Promise.reject(new Error("13")) : item * 10));
  });
  return { sent, call: (key: string, item: number) => calls.call(key, item) };
}

it("batches the calls of one event-loop turn by key, up to the batch size", async () => {
  const { sent, call } = batcher();
  const calls = [1, 2, 3, 4].map((item) => call("a", item));
  calls.push(
    call("b", 5),
    Promise.resolve().then(() => call("b", 6)),
  );
  expect(sent).toEqual([]);
  expect(await Promise.all(calls)).toEqual([10, 20, 30, 40, 50, 60]);
  expect(sent).toEqual(["a 1 2 3", "a 4", "b 5 6"]);
  expect(await call("a", 7)).toBe(70);
  expect(sent).toEqual(["a 1 2 3", "a 4", "b 5 6", "a 7"]);
});

it("rejects a call with its own error and a batch with the batch's, and sends later calls", async () => {
  const { call } = batcher();
  const settled = await Promise.allSettled([1, 13, 2, 0, 3].map((item) => call("a", item)));
  expect(settled.map((one) => (one.status === "fulfilled" ? one.value : String(one.reason)))).toEqual([
    10,
    "Error: 13",
    20,
    "Error: 0",
    "Error: 0",
  ]);
  expect(await call("a", 4)).toBe(40);
});

it("sends while a test fakes timers", async () => {
  const { call } = batcher();
  vi.useFakeTimers();
  expect(await call("a", 1)).toBe(10);
});
