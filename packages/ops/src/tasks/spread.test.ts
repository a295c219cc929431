import { CarillonError } from "@carillon/core";
import { Client, defineTask, type TaskInput } from "@carillon/sdk";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/each-kit.js";
import { operatorOf } from "../operator.js";

const START = Date.parse("2026-01-01T00:00:00Z");
const AT = START + 2 * 3_600_000;
const ring = defineTask("ring", { queue: "bells", payload: z.looseObject({}), handler: () => {} });

describe("a herd", () => {
  const { kit, ops } = eachKit({ types: [ring], start: START });
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

    const done = await acme.tasks.spread(asked, { by: "ann" });
    expect(done).toMatchObject({ count: 21 });
    expect((await kit.client.get("acme/t00")).schedule).toEqual({ cron: "0 2 * * *", jitter: "10m" });
    expect((await kit.client.get("globex/foreign")).schedule).toEqual({ cron: "0 2 * * *" });
    // As it was computed before.
    const load = {
      owner: "acme",
      from: dry.curve.from,
      to: dry.curve.from + dry.curve.step * after.length,
      step: dry.curve.step,
    };
    expect((await ops.occurrences.load(load)).counts).toEqual(after);
    const [change] = (await ops.changes.list()).changes;
    expect(change).toMatchObject({ kind: "put", by: "ann", scope: { owner: "acme" }, count: 21, undo: 21 });
    const nothing = await acme.tasks.spread(asked);
    expect(nothing).toMatchObject({ count: 0 });
    expect(nothing).not.toHaveProperty("change");

    const { id } = change!;
    expect(done.change).toBe(id);
    expect(dry).not.toHaveProperty("change");
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
    // The first one has done all that it can.
    expect(await acme.changes.undo({ id })).toMatchObject({ count: 0, refused: { count: 2 } });
    expect(ids((await ops.changes.list({ by: "bob" })).changes[0]!.sample!)).toContain("t00");
    await expect(ops.changes.undo({ id: "1-1" })).rejects.toMatchObject({ code: "CONFLICT" });
    await expect(ops.tasks.spread({ at: AT, jitter: "0" })).rejects.toMatchObject({ field: "jitter" });
  });

  /** Calls `act` once, before or after the next put of this task is stored. */
  function around(id: string, when: "before" | "after", act: () => Promise<unknown>) {
    const { tasks } = kit.store;
    const real = tasks.put.bind(tasks);
    let open = true;
    tasks.put = async (...args) => {
      const isMeant = open && args[1].some(({ definition }) => definition.id === id);
      if (isMeant) open = false;
      if (isMeant && when === "before") await act();
      const done = await real(...args);
      if (isMeant && when === "after") await act();
      return done;
    };
    return () => void delete (tasks as Partial<typeof tasks>).put;
  }

  it("leaves an edit that comes right after it to its undo, and one that came right before it is restored", async () => {
    for (const id of ["before", "after"]) await put(id);
    const edited = { description: "Ben's" };
    for (const [when, expected] of [
      ["before", { schedule: { cron: "0 2 * * *" }, ...edited }],
      ["after", { schedule: { cron: "7 2 * * *" }, ...edited }],
    ] as const) {
      const restore = around(when, when, () => put(when, expected));
      const { change } = await ops.tasks.spread({ at: AT, jitter: "10m", owner: "acme" });
      restore();
      const undone = await ops.changes.undo({ id: change! });
      expect(await kit.client.get(`acme/${when}`)).toMatchObject(expected);
      expect((await kit.client.get(`acme/${when}`)).schedule).toEqual(expected.schedule);
      expect(undone.refused.count).toBe(when === "after" ? 1 : 0);
    }
  });

  it("can be undone if it dies midway; its repetition, and that of the undo, go on", async () => {
    const plain = { cron: "0 2 * * *" };
    for (let n = 0; n < 5; n++) await put(`t${n}`);
    const { tasks } = kit.store;
    /** The process dies before or after its third put. */
    const killed = async (when: "before" | "after", call: () => Promise<unknown>) => {
      const real = tasks.put.bind(tasks);
      let puts = 0;
      tasks.put = async (...args) => {
        puts += 1;
        const [isLast, isDead] = [puts === 3, puts > 3];
        if (!isDead && !(isLast && when === "before")) {
          const done = await real(...args);
          if (!isLast) return done;
        }
        throw new CarillonError("REDIS_UNAVAILABLE", "died.");
      };
      await expect(call()).rejects.toThrow("died.");
      delete (tasks as Partial<typeof tasks>).put;
    };
    const plainOnes = async () => (await schedules()).filter(({ jitter }) => jitter === undefined).length;
    const spread = () => ops.tasks.spread({ at: AT, jitter: "10m", owner: "acme" });
    const newest = async () => (await ops.changes.list()).changes.find(({ undo }) => undo)!.id;
    for (const when of ["before", "after"] as const) {
      await killed(when, spread);
      const id = await newest();
      expect(await plainOnes()).toBeGreaterThan(1);
      expect(await plainOnes()).toBeLessThan(5);
      expect(await ops.changes.undo({ id })).toMatchObject({ refused: { count: 0 } });
      expect(await plainOnes()).toBe(5);

      await killed(when, spread);
      const first = await newest();
      await kit.advance("1s");
      const { count: rest, change } = await spread();
      expect(rest).toBeLessThan(5);
      expect(await plainOnes()).toBe(0);
      // The first one names all five; the second one has reached the rest.
      expect(await ops.changes.undo({ id: first })).toMatchObject({
        count: 5 - rest,
        refused: { count: rest },
      });
      expect(await ops.changes.undo({ id: change! })).toMatchObject({ count: rest, refused: { count: 0 } });
      expect(await plainOnes()).toBe(5);

      const { change: whole } = await spread();
      await killed(when, () => ops.changes.undo({ id: whole! }));
      expect(await plainOnes()).toBeLessThan(5);
      expect(await ops.changes.undo({ id: whole! })).toMatchObject({ refused: { count: 0 } });
      expect(await schedules()).toEqual(Array(5).fill(plain));
    }
  });

  it("is undone once by two at one instant, and an undo can be undone", async () => {
    for (let n = 0; n < 5; n++) await put(`t${n}`);
    const { change: id = "" } = await ops.tasks.spread({ at: AT, jitter: "10m", owner: "acme" });
    const [one, two] = await Promise.all([ops.changes.undo({ id }), ops.changes.undo({ id })]);
    expect([one.count + two.count, one.refused.count, two.refused.count]).toEqual([5, 0, 0]);
    expect(await schedules()).toEqual(Array(5).fill({ cron: "0 2 * * *" }));
    const again = await ops.changes.undo({ id: (one.change ?? two.change)! });
    expect(again).toMatchObject({ count: 5 });
    expect(await schedules()).toEqual(Array(5).fill({ cron: "0 2 * * *", jitter: "10m" }));
  });
});
