import { defineTask } from "@carillon/sdk";
import { storeOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { afterEach, expect, it, vi } from "vitest";
import { attempt } from "../../../../test/helpers.js";
import { Bench, nothing, QUEUE } from "./bench.js";

const bench = Bench.use("wrongclock");
afterEach(() => {
  vi.restoreAllMocks();
});

it.each([-600_000, 600_000])(
  "a worker waits after a crash for the full time with its clock %i ms off",
  async (off) => {
    const run = await bench.run("t", "work", { crash: { delay: "30s" } });
    const dead = attempt({ worker: "dead" });
    await storeOf(bench.client).runs.start({ queue: QUEUE, owner: "system", id: "t" }, run, dead);

    const now = Date.now;
    vi.spyOn(Date, "now").mockImplementation(() => now() + off);
    await bench.work([defineTask("work", { queue: QUEUE, payload: nothing, handler: () => {} })]);
    const delay = await eventually(async () => {
      const text = await bench.admin.hget(bench.jobKey(run), "delay");
      return text !== null && text !== "0" && Number(text);
    });
    expect(delay).toBeGreaterThan(20_000);
    expect(delay).toBeLessThanOrEqual(30_000);
  },
);
