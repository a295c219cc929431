import { type Context, defineTask } from "@carillon/sdk";
import { afterEach, expect, it } from "vitest";
import { z } from "zod";
import { sharedRedis } from "../../../../test/helpers.js";
import { type TestKit, testKit } from "../../src/index.js";

const redis = sharedRedis();
let kit: TestKit;

afterEach(() => kit?.close());

/**
 * Every minute, first due 00:30; runs may overlap, but one that starts less than 60 s (5 s tolerated) after the one before is
 * dropped, and none takes longer than half the minute. A worker that takes one job at a time, and none until it is told.
 */
async function box(handler: (payload: object, context: Context) => Promise<void>): Promise<void> {
  const fetchMail = defineTask("fetch-mail", { queue: "mail", payload: z.object({}), handler });
  kit = await testKit({ redis, types: [fetchMail], concurrency: 1 });
  await kit.worker.pause();
  await kit.client.put(fetchMail, {
    id: "a",
    schedule: { every: "1m", origin: "2026-01-01T00:00:30Z" },
    overlap: "allow",
    minGap: "55s",
    timeLimit: "50%",
    payload: {},
  });
}

/** Lets the worker take the next job at this moment only. */
function takeOne(at: string): void {
  kit.at(at, async () => {
    await kit.worker.resume();
    await kit.sleep("1s");
    await kit.worker.pause();
  });
}

it("T1: a run from 00:35 to 00:45, the next one starts at 01:32", async () => {
  await box(() => kit.sleep("10s"));
  takeOne("00:35");
  takeOne("01:32");
  await kit.advanceTo("01:45");
  await kit
    .expect("a")
    .firedAt(["00:30", "01:30"])
    .ranAt(["00:35", "01:32"])
    .finishedAt(["00:45", "01:42"])
    .outcomes(["succeeded", "succeeded"])
    .nextAt("02:30");
});

it("T2: a run from 01:35 to 01:38, the next one starts at 02:37", async () => {
  await box(() => kit.sleep("3s"));
  takeOne("01:35");
  takeOne("02:37");
  await kit.advanceTo("02:45");
  await kit
    .expect("a")
    .firedAt(["00:30", "01:30", "02:30"])
    .ranAt(["01:35", "02:37"])
    .finishedAt(["01:38", "02:40"])
    .outcomes(["succeeded", "succeeded"])
    .nextAt("03:30");
  const { runs } = await kit.history("a");
  expect(runs.map(({ state }) => state)).toEqual(["final", "final", "queued"]);
});

it("T3: a run at 01:35, one at 02:03 that is too early, one at 02:56", async () => {
  await box(() => kit.sleep("3s"));
  takeOne("01:35");
  takeOne("02:03");
  takeOne("02:56");
  await kit.advanceTo("03:00");
  await kit
    .expect("a")
    .firedAt(["00:30", "01:30", "02:30"])
    .ranAt(["01:35", "02:56"])
    .finishedAt(["01:38", "02:03", "02:59"])
    .outcomes(["succeeded", "dropped", "succeeded"])
    .nextAt("03:30");
});

it("T4: a run from 00:35 that never ends by itself", async () => {
  await box(async (_payload, { signal }) => {
    while (!signal.aborted) await kit.sleep("1s", { signal }).catch(() => {});
  });
  takeOne("00:35");
  takeOne("01:32");
  await kit.advanceTo("01:45");
  await kit
    .expect("a")
    .firedAt(["00:30", "01:30"])
    .ranAt(["00:35", "01:32"])
    .finishedAt(["01:05"])
    .outcome("partial");
});
