import { operatorOf } from "@carillon/ops";
import { defineTask } from "@carillon/sdk";
import { describe, expect, it } from "vitest";
import { anything, Stand } from "./harness.js";

const stand = Stand.use();

describe("E22 a deploy that changed the wrong schedules is taken back as a whole", () => {
  it("300 tasks run at their former times again, after one undo", async () => {
    const started: string[] = [];
    const type = defineTask("work", {
      queue: "bells",
      payload: anything,
      handler: (_payload, { occurrence }) => void started.push(`${occurrence.task} ${occurrence.nominal}`),
    });
    const kit = await stand.kit({ types: [type], queues: ["bells"], start: "2026-01-01T00:00:30Z" });
    const { sets, changes } = operatorOf(kit.client);
    const deploy = (version: string, cron: (i: number) => string) => ({
      ...{ set: "crew", version },
      tasks: Array.from({ length: 300 }, (_, i) => ({
        ...{ id: `t${i}`, type: "work", queue: "bells", schedule: { cron: cron(i) } },
      })),
    });
    const good = (i: number) => `${i % 60} ${4 + (i % 2)} * * *`;
    const nine = () => "0 9 * * *";
    await sets.apply(deploy("1", good));
    expect((await sets.plan(deploy("2", nine))).warnings.map(({ code }) => code)).toContain("GATHERS");
    await sets.apply(deploy("2", nine));
    const [bad] = (await changes.list({ task: "t299" })).changes;
    expect(bad).toMatchObject({
      undo: 300,
      sample: [{ id: "t299", schedule: { before: { cron: good(299) }, after: { cron: nine() } } }],
    });
    const undone = await changes.undo({ id: bad!.id });
    expect(undone).toMatchObject({ count: 300, refused: { count: 0 }, moved: { count: 300 } });
    await kit.advanceTo("2026-01-01T10:00:00Z");
    const at = (i: number) => Date.UTC(2026, 0, 1, 4 + (i % 2), i % 60);
    expect(started.sort()).toEqual(Array.from({ length: 300 }, (_, i) => `t${i} ${at(i)}`).sort());
    // The file of before, and its version, are the set's again.
    expect(await sets.plan(deploy("1", good))).toMatchObject({ items: [], refused: [] });
  });
});
