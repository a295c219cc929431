import { afterEach, expect, it, vi } from "vitest";
import { Gathering } from "../src/gathering.js";

afterEach(() => {
  vi.useRealTimers();
});

function gathering() {
  const sent: string[] = [];
  const gathered = new Gathering<number, number>(3, async (about, items) => {
    sent.push(`${about} ${items.join(" ")}`);
    if (items.includes(0)) throw new Error("0");
    return items.map((item) => (item === 13 ? Promise.reject(new Error("13")) : item * 10));
  });
  return { sent, ask: (about: string, item: number) => gathered.ask(about, item) };
}

it("what is asked for before the event loop goes on goes together, of each thing by itself, and so many at most", async () => {
  const { sent, ask } = gathering();
  const asked = [1, 2, 3, 4].map((item) => ask("a", item));
  asked.push(
    ask("b", 5),
    Promise.resolve().then(() => ask("b", 6)),
  );
  expect(sent).toEqual([]);
  expect(await Promise.all(asked)).toEqual([10, 20, 30, 40, 50, 60]);
  expect(sent).toEqual(["a 1 2 3", "a 4", "b 5 6"]);
  expect(await ask("a", 7)).toBe(70);
  expect(sent).toEqual(["a 1 2 3", "a 4", "b 5 6", "a 7"]);
});

it("what goes wrong with one is its own; what goes wrong with all is everyone's, and the next ones go on", async () => {
  const { ask } = gathering();
  const settled = await Promise.allSettled([1, 13, 2, 0, 3].map((item) => ask("a", item)));
  expect(settled.map((one) => (one.status === "fulfilled" ? one.value : String(one.reason)))).toEqual([
    ...[10, "Error: 13", 20],
    ...["Error: 0", "Error: 0"],
  ]);
  expect(await ask("a", 4)).toBe(40);
});

it("it goes also where a test has faked timers", async () => {
  const { ask } = gathering();
  vi.useFakeTimers();
  expect(await ask("a", 1)).toBe(10);
});
