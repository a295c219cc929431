import { operatorOf } from "@carillon/ops";
import { defineTask } from "@carillon/sdk";
import { describe, expect, it } from "vitest";
import { anything, Stand } from "./harness.js";

const stand = Stand.use();

describe("E25 a field of many tasks is changed at once, or of none", () => {
  it("64 reports skip the days of a calendar, each keeps its own exception, and one undo takes it back", async () => {
    const started: string[] = [];
    const type = defineTask("report", {
      queue: "bells",
      payload: anything,
      handler: (_payload, { occurrence }) =>
        void started.push(new Date(occurrence.nominal).toISOString().slice(5, 10)),
    });
    const kit = await stand.kit({ types: [type], queues: ["bells"], start: "2026-12-22T12:00:00Z" });
    const { tasks, changes, calendars } = operatorOf(kit.client);
    await calendars.put({ name: "holidays", entries: ["2026-12-24", "2026-12-25", "2026-12-26"] });
    const own = [{ calendar: "2026-12-23" }];
    const task = (i: number) => ({
      ...{ id: `t${i}`, type: "report", queue: "bells", tags: ["billing"] },
      schedule: { cron: "0 9 * * *", ...(i === 0 && { except: own }) },
    });
    await kit.client.putMany(Array.from({ length: 64 }, (_, i) => task(i)));
    const edit = { tag: "billing", add: { "schedule.except": [{ named: "holidays" }] } };

    // One task that the change does not fit: none is changed.
    await kit.client.put({
      id: "rate",
      type: "report",
      queue: "bells",
      tags: ["billing"],
      schedule: { every: "1h" },
    });
    const cron = { tag: "billing", fields: { "schedule.cron": "0 10 * * *" } };
    const before = (await kit.client.list({ tag: "billing" })).tasks;
    const left = {
      count: 0,
      refused: { count: 1, sample: [{ task: { id: "rate" }, code: "INVALID_SCHEDULE" }] },
    };
    expect(await tasks.editMany({ ...cron, dryRun: true })).toMatchObject(left);
    expect(await tasks.editMany(cron)).toMatchObject(left);
    expect((await kit.client.list({ tag: "billing" })).tasks).toEqual(before);
    await kit.client.delete("rate");

    const dry = await tasks.editMany({ ...edit, dryRun: true });
    expect(dry).toMatchObject({ count: 64, refused: { count: 0 } });
    const of = (id: string) => dry.edits.find((one) => one.id === id)?.preview;
    const { after, times } = of("t1")!;
    expect(after).toMatchObject({ schedule: { except: [{ named: "holidays" }] } });
    const second = ({ 1: next }: readonly { nominal: number }[]) => new Date(next!.nominal).toISOString();
    expect([times.before, times.after].map(second)).toEqual([
      "2026-12-24T09:00:00.000Z",
      "2026-12-27T09:00:00.000Z",
    ]);
    expect(of("t0")).toMatchObject({ after: { schedule: { except: [...own, { named: "holidays" }] } } });
    const { change = "" } = await tasks.editMany(edit);
    expect(await tasks.editMany(edit)).toMatchObject({ count: 0 });
    await kit.advanceTo("2026-12-27T12:00:00Z");
    expect([...new Set(started)]).toEqual(["12-23", "12-27"]);
    expect(started).toHaveLength(63 + 64);
    expect(await changes.undo({ id: change })).toMatchObject({ count: 64, refused: { count: 0 } });
    expect((await kit.client.get("t0")).schedule).toMatchObject({ except: own });
    expect((await kit.client.get("t1")).schedule).not.toHaveProperty("except");
  });
});
