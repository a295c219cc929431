import { expect, test } from "vitest";
import { isUnsized } from "../src/small-heap.js";

test("the console keeps its heap small, unless the user has sized it", () => {
  const others = ["--import=./tracing.js", "--heapsnapshot-signal=SIGUSR2", undefined];
  expect(isUnsized(others)).toBe(true);
  for (const flag of ["--max-old-space-size=512", "--max_semi_space_size=16", "--max-heap-size=512"])
    expect(isUnsized([...others, flag]), flag).toBe(false);
  expect(isUnsized([undefined, "--inspect --max-old-space-size-percentage=20"])).toBe(false);
});
