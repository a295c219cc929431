import { parseTask } from "@carillon/core";
import { Client } from "@carillon/sdk";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "../../store/test/bench.js";

const HOUR = 3_600_000;

const redis = sharedRedis();
const bench = Bench.use(() => redis.url);
let client: Client;
beforeEach(() => {
  client = new Client({ store: bench.store });
});

const hourly = (more: object = {}) => ({
  ...{ id: "t", type: "noop", queue: QUEUE, schedule: { every: "1h" }, payload: {} },
  ...more,
});
const dryRun = true;
const ahead = (...hours: number[]) =>
  hours.map((hour) => ({ nominal: START + hour * HOUR, due: START + hour * HOUR }));

describe("a dry run of a put", () => {
  it("compares an unchanged task, also one with long values, and computes no time", async () => {
    const policies = { retry: { attempts: 3 }, description: "d".repeat(100), tags: ["b", "a"] };
    const task = hourly({ payload: { text: "é".repeat(90) }, ...policies, mode: "shadow" });
    await client.put(task);
    await client.pause("t");
    const { schedules } = bench.store.calendars;
    const get = vi.spyOn(schedules, "get");
    const parsed = parseTask({ ...task, mode: undefined });
    const [planned] = await bench.store.tasks.plan(QUEUE, [parsed]);
    expect(get).not.toHaveBeenCalled();
    // As it is stored, not as it is given.
    const { queue, owner, id } = parsed.definition;
    const stored = await bench.store.tasks.get({ queue, owner, id });
    expect(planned).toMatchObject({ outcome: "unchanged", state: "paused" });
    expect(planned?.stored?.definition).toEqual(stored?.definition);
    await bench.store.tasks.plan(QUEUE, [parseTask({ ...task, priority: 1, schedule: { every: "2h" } })]);
    expect(get).toHaveBeenCalled();
    get.mockRestore();
  });

  it("names what would be created, and stores nothing", async () => {
    expect(await client.put(hourly({ priority: 3 }), { dryRun })).toMatchObject({
      outcome: "created",
      state: "scheduled",
      nextExecution: START + HOUR,
      preview: {
        after: { type: "noop", schedule: { every: "1h" }, priority: 3 },
        times: { before: [], after: ahead(1, 2, 3, 4, 5) },
      },
    });
    expect(await client.count()).toBe(0);
  });

  it("finds no change in another notation of the same task", async () => {
    await client.put(hourly({ retry: { attempts: 2, delay: "1s" } }));
    const same = hourly({ schedule: { every: HOUR }, owner: "system", retry: { delay: 1_000, attempts: 2 } });
    const found = await client.put(same, { dryRun });
    expect(found).toMatchObject({ outcome: "unchanged", nextExecution: START + HOUR });
    expect(found.preview).toEqual({ times: { before: ahead(1, 2, 3, 4, 5), after: ahead(1, 2, 3, 4, 5) } });
    expect((await client.put(same)).outcome).toBe("unchanged");
  });

  it("shows changed fields, both times, and owed times that it gives up, as the put then does it", async () => {
    await client.put(hourly({ tags: ["a"] }));
    await bench.clock.advance(2.5 * HOUR);
    const edited = hourly({ tags: ["b"], schedule: { every: "2h" } });
    const planned = await client.put(edited, { dryRun });
    expect(planned).toMatchObject({
      outcome: "updated",
      preview: {
        before: { schedule: { every: "1h" }, tags: ["a"] },
        after: { schedule: { every: "2h" }, tags: ["b"] },
        times: { before: ahead(1, 2, 3, 4, 5), after: ahead(4, 6, 8, 10, 12) },
        givenUp: { from: START + HOUR, to: START + 2 * HOUR },
      },
    });
    expect(await client.validate(edited, { count: 0 })).toMatchObject({
      outcome: "updated",
      preview: planned.preview,
    });
    expect((await client.get("t")).tags).toEqual(["a"]);
    expect(await client.put(edited)).toMatchObject({
      outcome: "updated",
      nextExecution: planned.nextExecution,
    });
    expect((await client.runs.skips("t"))[0]).toMatchObject({
      reason: "superseded",
      ...planned.preview?.givenUp,
    });
  });

  it("tells all tasks of a list, and refuses what the put would refuse", async () => {
    await client.put(hourly());
    const list = [hourly(), hourly({ id: "u" })];
    const found = await client.putMany(list, { dryRun });
    expect(found.map(({ outcome }) => outcome)).toEqual(["unchanged", "created"]);
    expect(await client.count()).toBe(1);
    await expect(client.put(hourly({ priority: 1 }), { dryRun, ifRevision: "1" })).rejects.toMatchObject({
      code: "CONFLICT",
    });
    await expect(client.putMany([hourly({ schedule: { cron: "0 25 * * *" } })], { dryRun })).rejects.toThrow(
      /\[0\]\.schedule/,
    );
  });
});
