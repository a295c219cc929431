import { expect, it } from "vitest";
import { Progress } from "../src/progress.js";
import { Sink } from "./helpers.js";

/** Output of a progress that counts 500 tasks every 100 ms, for 1.5 s. */
function written(isTTY: boolean): string {
  const sink = Object.assign(new Sink(), { isTTY });
  let now = 5_000;
  const progress = new Progress(sink, "tasks", () => now);
  for (let i = 0; i < 15; i++) {
    now += 100;
    progress.add(500);
  }
  progress.end();
  return sink.text;
}

it("counts on one line of a terminal after a second, now and then, and clears it", () => {
  expect(written(true)).toBe(
    ["5,000 tasks in 1 s", "6,000 tasks in 1 s", "7,000 tasks in 1 s", ""]
      .map((text) => `\r${text}\u001b[K`)
      .join(""),
  );
});

it("writes nothing elsewhere", () => {
  expect(written(false)).toBe("");
});
