import { Client, defineTask, type TaskInput } from "@carillon/sdk";
import type { TestKit } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/helpers.js";
import { operatorOf } from "../operator.js";

const START = Date.parse("2026-01-01T00:00:00Z");
const AT = START + 2 * 3_600_000;
const ring = defineTask("ring", { queue: "bells", payload: z.looseObject({}), handler: () => {} });

describe("a herd", () => {
  let kit: TestKit;
  eachKit({ types: [ring], start: START }, (made) => {
    kit = made;
  });
  const ops = () => operatorOf(kit.client);
  const put = (id: string, more: Partial<TaskInput> = {}) =>
    kit.client.put({
      id,
      owner: "acme",
      type: "ring",
      queue: "bells",
      schedule: { cron: "0 2 * * *" },
      ...more,
    });
  const ids = (sample: readonly { id: string }[]) => sample.map(({ id }) => id);
  const schedules = async () =>
    (await kit.client.list({ owner: "acme" })).tasks.map(({ schedule }) => schedule);

  it("is spread over a jitter, with the load before and after said first, and one undo restores what it was", async () => {
    for (let n = 0; n < 20; n++) await put(`t${String(n).padStart(2, "0")}`);
    await put("hourly", { schedule: { every: "1h" } });
    await put("often", { schedule: { every: "15m" } });
    await put("jittered", { schedule: { cron: "0 2 * * *", jitter: "1m" } });
    await put("once", { schedule: { at: AT } });
    await put("later", { schedule: { cron: "1 2 * * *" } });
    await put("foreign", { owner: "globex" });
    const former = await schedules();
    const acme = operatorOf(new Client({ store: kit.store, owner: "acme" }));
    const asked = { at: AT, jitter: "10m" };
    const dry = await acme.tasks.spread({ ...asked, dryRun: true });
    expect(dry).toMatchObject({ count: 21, refused: { count: 0 } });
    const { before, after } = dry.curve;
    const sum = (counts: readonly number[]) => counts.reduce((a, b) => a + b, 0);
    expect([Math.max(...before), sum(before)]).toEqual([23, 25]);
    expect(sum(after)).toBe(25);
    expect(Math.max(...after)).toBeLessThan(8);
    expect(await schedules()).toEqual(former);

    expect(await acme.tasks.spread(asked, { by: "ann" })).toMatchObject({ count: 21 });
    expect((await kit.client.get("acme/t00")).schedule).toEqual({ cron: "0 2 * * *", jitter: "10m" });
    expect((await kit.client.get("globex/foreign")).schedule).toEqual({ cron: "0 2 * * *" });
    // As it was computed before.
    const load = {
      owner: "acme",
      from: dry.curve.from,
      to: dry.curve.from + dry.curve.step * after.length,
      step: dry.curve.step,
    };
    expect((await ops().occurrences.load(load)).counts).toEqual(after);
    const [change] = (await ops().changes.list()).changes;
    expect(change).toMatchObject({ kind: "put", by: "ann", scope: { owner: "acme" }, count: 21, undo: 21 });
    expect(await acme.tasks.spread(asked)).toMatchObject({ count: 0 });

    const { id } = change!;
    await put("t03", { schedule: { cron: "5 2 * * *" } });
    await kit.client.delete("acme/t04");
    const globex = operatorOf(new Client({ store: kit.store, owner: "globex" }));
    await expect(globex.changes.undo({ id })).rejects.toMatchObject({ code: "CONFLICT" });
    for (const dryRun of [true, false]) {
      const undone = await acme.changes.undo({ id, dryRun }, { by: "bob" });
      expect(undone).toMatchObject({ count: 19, refused: { count: 2 } });
      expect(
        undone.refused.sample.map(({ task, code }) => [(task as { id: string }).id, code]).sort(),
      ).toEqual([
        ["t03", "CONFLICT"],
        ["t04", "TASK_NOT_FOUND"],
      ]);
    }
    expect(await schedules()).toEqual(
      former.flatMap((schedule, i) => {
        const name =
          ["hourly", "jittered", "later", "often", "once"][i] ?? `t${String(i - 5).padStart(2, "0")}`;
        return name === "t04" ? [] : [name === "t03" ? { cron: "5 2 * * *" } : schedule];
      }),
    );
    // Each is changed since, by the first one.
    expect(await acme.changes.undo({ id })).toMatchObject({ count: 0, refused: { count: 21 } });
    expect(ids((await ops().changes.list({ by: "bob" })).changes[0]!.sample!)).toContain("t00");
    await expect(ops().changes.undo({ id: "1-1" })).rejects.toMatchObject({ code: "CONFLICT" });
    await expect(ops().tasks.spread({ at: AT, jitter: "0" })).rejects.toMatchObject({ field: "jitter" });
  });
});
