import { type Context, defineTask } from "@carillon/sdk";
import { describe, expect, it } from "vitest";
import { anything, Stand } from "./harness.js";

const stand = Stand.use();

describe("B7 a default time box of half the interval, with a tolerance of 5 s", () => {
  const withBoxes = async (handler: (context: Context) => Promise<void>) => {
    const ring = defineTask("ring", {
      queue: "bells",
      payload: anything,
      handler: (_, context) => handler(context),
    });
    const kit = await stand.kit({ types: [ring], start: "2026-01-01T00:00:00Z" });
    await kit.client.defaults.set("all", { timeLimit: "50%", tolerance: "5s" });
    const put = (id: string, every: string) =>
      kit.client.put(ring, { id, schedule: { every }, overlap: "allow", payload: {} });
    return { kit, put };
  };

  it("a task without a time box ends at half its interval", async () => {
    const { kit, put } = await withBoxes(async ({ signal }) => {
      await kit.sleep("1h", { signal }).catch(() => {});
      signal.throwIfAborted();
    });
    await put("t", "60s");
    await kit.advance("95s");
    const [run] = await kit.client.runs.list("t");
    expect(run).toMatchObject({ outcome: "timed-out" });
    expect((run?.finished ?? 0) - (run?.started ?? 0)).toBe(30_000);
  });

  it("with a halved interval no run is dropped, except one that is early by more than 5 s", async () => {
    const { kit, put } = await withBoxes(async () => {});
    await put("t", "60s");
    await kit.advance("3m");
    await put("t", "30s");
    await kit.advance("3m");
    const outcomes = async () => (await kit.client.runs.list("t")).map(({ outcome }) => outcome);
    expect(await outcomes()).toEqual(Array(9).fill("succeeded"));
    // The worker pauses for a while, so that the waiting run starts 10 s before the next one.
    await kit.advance("1s");
    await kit.worker.pause();
    await kit.advance("49s");
    await kit.worker.resume();
    await kit.advance("15s");
    expect((await outcomes()).slice(0, 2)).toEqual(["dropped", "succeeded"]);
  });
});
