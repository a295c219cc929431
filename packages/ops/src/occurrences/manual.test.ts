import { defineTask } from "@carillon/sdk";
import { expect, it } from "vitest";
import { eachKit } from "../../../../test/each-kit.js";

const START = Date.parse("2026-01-01T00:00:00Z");
const ring = defineTask("ring", { queue: "jobs", handler: () => {} });
const task = { id: "a", type: "ring", queue: "jobs", schedule: { manual: true } } as const;

const { kit, ops } = eachKit({ types: [ring], start: START });

const is = async (more: object = {}) =>
  expect(await kit.client.get("a")).toMatchObject({ state: "scheduled", nextExecution: undefined, ...more });

it("a manual task stays scheduled without a next time, through runs, a pause, and a year", async () => {
  const put = await kit.client.put(task);
  expect(put).toMatchObject({ outcome: "created", warnings: [{ code: "NO_NODE" }] });
  await is({ humanized: "only when it is triggered" });
  for (const runs of [1, 2]) {
    await kit.client.trigger("a");
    await kit.advance("1m");
    expect(await kit.client.runs.list("a")).toHaveLength(runs);
    await is();
  }
  await kit.client.pause("a");
  await kit.client.resume("a");
  await is();
  expect((await kit.client.put(task)).outcome).toBe("unchanged");
  await kit.advance("365d");
  await is();
  expect((await kit.client.list({ state: "scheduled" })).tasks).toHaveLength(1);
});

it("a schedule is changed to manual and back, and a finished task becomes manual", async () => {
  await kit.client.put({ ...task, schedule: { every: "1h" } });
  await kit.client.put(task);
  await is();
  await kit.client.put({ ...task, schedule: { every: "1h" } });
  await is({ nextExecution: START + 3_600_000 });
  await kit.client.put({ ...task, schedule: { at: START - 1 } });
  await is({ state: "finished" });
  await kit.client.put(task);
  await is();
});

it("every question about times has an answer: none", async () => {
  await kit.client.put(task);
  const range = { from: START, to: START + 86_400_000 };
  expect(await ops.occurrences.load({ queue: "jobs" })).toMatchObject({ total: 0, tasks: 1 });
  expect(await ops.occurrences.ticks({ id: "a", ...range })).toMatchObject({ ticks: [] });
  expect(await ops.tasks.validate({ task })).toMatchObject({
    next: [],
    warnings: [{ code: "NO_NODE" }],
    outcome: "unchanged",
  });
  expect(await ops.occurrences.explain({ id: "a", time: START + 1_000 })).toMatchObject({
    verdict: "no-occurrence",
    why: { code: "not-scheduled" },
  });
});

it("one that its set does not have any more finishes, also if it is triggered", async () => {
  const { sets } = ops;
  await sets.apply({ set: "s", tasks: [task, { ...task, id: "b" }] });
  await sets.apply({ set: "s", tasks: [{ ...task, id: "b" }] });
  await is({ state: "finished" });
  await kit.client.trigger("a");
  await kit.advance("1m");
  await is({ state: "finished" });
  await sets.apply({ set: "s", tasks: [task, { ...task, id: "b" }] });
  await is();
});
