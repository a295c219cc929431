import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Pace } from "../src/bull/pace.js";

let used: number;
beforeEach(() => {
  used = 1_000;
  vi.spyOn(process, "cpuUsage").mockImplementation(() => ({ user: used * 600, system: used * 400 }));
});
afterEach(() => {
  vi.restoreAllMocks();
});

const tick = () => new Promise<void>((resolve) => process.nextTick(resolve));
async function round(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
}

it("takes at once fewer jobs whose handlers use CPU, and more again when they no longer do", async () => {
  const pace = new Pace();
  pace.begin(32);
  used += 160;
  await tick();
  expect(pace.most).toBe(5);
  const seen = [];
  for (let i = 0; i < 4; i++) {
    await round();
    pace.begin(pace.most);
    await round();
    seen.push(pace.most);
  }
  expect(seen).toEqual([10, 20, 32, 32]);
});

it("takes fewer jobs whose handlers use CPU after they have waited", async () => {
  const pace = new Pace();
  pace.begin(10);
  await tick();
  expect(pace.most).toBe(32);
  setImmediate(() => {
    used += 100;
  });
  await round();
  expect(pace.most).toBe(2);
});

it("counts all jobs that begin in the same round", async () => {
  const pace = new Pace();
  pace.begin(8);
  pace.begin(8);
  setImmediate(() => {
    used += 50;
  });
  await round();
  expect(pace.most).toBe(8);
});

it("takes one job of handlers that use more CPU than that", async () => {
  const pace = new Pace();
  pace.begin(4);
  used += 900;
  await round();
  expect(pace.most).toBe(1);
});
