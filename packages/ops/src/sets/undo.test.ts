import { CarillonError, type TaskInput } from "@carillon/core";
import { Client, defineTask } from "@carillon/sdk";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/each-kit.js";
import { operatorOf } from "../operator.js";

const START = Date.parse("2026-01-01T00:00:00Z");
const HOUR = 3_600_000;
const ring = defineTask("ring", { queue: "jobs", payload: z.looseObject({}), handler: () => {} });

const { kit, ops, renew } = eachKit({ types: [ring], start: START });

type Given = Parameters<ReturnType<typeof operatorOf>["sets"]["apply"]>[0];
const task = (id: string, hour: number, more: object = {}) => ({
  ...{ id, type: "ring", queue: "jobs", schedule: { cron: `0 ${hour} * * *` } },
  ...more,
});
const many = (count: number, hour: number) => Array.from({ length: count }, (_, i) => task(`t${i}`, hour));
const apply = (version: string | undefined, tasks: Given["tasks"], more: Partial<Given> = {}) =>
  ops.sets.apply({ set: "billing", version, tasks, ...more });
const record = async () => (await ops.sets.list()).sets.find(({ name }) => name === "billing");
const newest = async () => {
  const [change] = (await ops.changes.list({ limit: 1 })).changes;
  return change as NonNullable<typeof change>;
};
/** Schedule and state of each task that has not been removed. */
const stored = async () =>
  Object.fromEntries(
    (await kit.client.list({ set: "billing" })).tasks.map(({ id, schedule, state }) => [
      id,
      `${(schedule as { cron: string }).cron} ${state}`,
    ]),
  );
const refusedOf = ({ refused }: { refused: { sample: readonly { task: unknown; message: string }[] } }) =>
  refused.sample.map(
    ({ task, message }) => `${(task as TaskInput).id}: ${message.replace(/(?<=\.) .*/, "")}`,
  );

describe("the entry of an apply", () => {
  it("has the old and new schedules and next times of the first ten tasks, and of any task that is asked for", async () => {
    await apply("1", many(12, 8));
    await apply("2", [...many(11, 9), task("t11", 8), task("new", 7)]);
    const change = await newest();
    expect(change).toMatchObject({
      ...{ kind: "apply", count: 12, undo: 12, before: { version: "1" }, after: { version: "2" } },
      details: { create: 1, update: 11, remove: 0 },
    });
    expect(change.sample).toHaveLength(10);
    const moved = {
      schedule: { before: { cron: "0 8 * * *" }, after: { cron: "0 9 * * *" } },
      next: { before: START + 8 * HOUR, after: START + 9 * HOUR },
    };
    expect(change.sample?.[0]).toMatchObject({ id: "t0", ...moved });
    expect(change.sample?.some(({ id }) => id === "t10")).toBe(false);
    const of = async (id: string) => (await ops.changes.list({ task: id })).changes;
    await apply("3", [...many(11, 10), task("t11", 8), task("new", 7)]);
    const [third, second] = await of("t10");
    expect(second?.sample).toEqual([{ queue: "jobs", owner: "system", id: "t10", ...moved }]);
    expect(third?.sample).toMatchObject([
      { schedule: { before: { cron: "0 9 * * *" }, after: { cron: "0 10 * * *" } } },
    ]);
    // The second and the third have nothing of it.
    expect((await of("t11")).map(({ details }) => details?.["create"])).toEqual([12]);
  });
});

describe("the undo of an apply", () => {
  it("plans and applies the state before: changed, created and removed tasks, pauses, and the version", async () => {
    await apply("42", [...many(6, 8), task("gone", 3), task("held", 4)], { commit: "abc" });
    await kit.client.pause("held", { note: "mine" });
    const before = await stored();
    await apply("43", [...many(6, 9), task("new", 7)], { commit: "def" });
    const { id } = await newest();
    const bad = await stored();
    expect(Object.keys(bad)).toContain("new");

    const dry = await ops.changes.undo({ id, dryRun: true });
    expect(dry).toMatchObject({ count: 9, refused: { count: 0 } });
    expect(dry.plan?.counts).toMatchObject({ create: 0, update: 8, remove: 1 });
    expect(dry.plan?.items[0]).toMatchObject({
      action: "update",
      preview: { before: { schedule: { cron: "0 9 * * *" } }, after: { schedule: { cron: "0 8 * * *" } } },
    });
    expect(dry.moved?.sample[0]).toMatchObject({
      id: "t0",
      before: START + 9 * HOUR,
      after: START + 8 * HOUR,
    });
    expect([await stored(), (await record())?.version]).toEqual([bad, "43"]);

    const done = await ops.changes.undo({ id }, { by: "ann" });
    expect(done).toMatchObject({ count: 9, refused: { count: 0 } });
    expect(await stored()).toEqual(before);
    expect(await kit.client.get("t0")).toMatchObject({ nextExecution: START + 8 * HOUR });
    expect(await record()).toMatchObject({
      version: "42",
      commit: "abc",
      generation: 3,
      members: 8,
      by: "ann",
    });
    expect((await record())?.applying).toBeUndefined();

    // The file of the former version, and that of a later one, can be applied; nobody's drift is left.
    const former = {
      set: "billing",
      version: "42",
      tasks: [...many(6, 8), task("gone", 3), task("held", 4)],
    };
    expect(await ops.sets.plan(former)).toMatchObject({ refused: [], items: [], counts: { drift: 0 } });
    expect(await ops.changes.undo({ id })).toMatchObject({ count: 0, refused: { count: 0 } });

    // An undo can be undone.
    const change = await newest();
    expect(change).toMatchObject({
      kind: "put",
      scope: { set: "billing" },
      details: { undoes: id },
      undo: 9,
    });
    expect(done.change).toBe(change.id);
    expect(await ops.changes.undo({ id: change.id })).toMatchObject({ count: 9, refused: { count: 0 } });
    expect([await stored(), (await record())?.version]).toEqual([bad, "43"]);
  });

  it("refuses by name what was changed since, deleted, moved, renamed or adopted, and undoes the others", async () => {
    await kit.client.put(task("adopted", 8));
    await apply("1", [...many(6, 8), task("old-name", 8)]);
    await apply("2", [...many(6, 9), task("new-name", 9, { renamedFrom: "old-name" }), task("adopted", 9)], {
      adopt: ["adopted"],
    });
    const { id } = await newest();
    await kit.client.put(task("t1", 10));
    await kit.client.delete("t2");
    await ops.tasks.move({ id: "t3", to: "other" });
    await apply(
      "3",
      [...many(6, 9), task("new-name", 9), task("adopted", 9), task("later", 9)].filter(
        (one) => one.id !== "t2" && one.id !== "t1",
      ),
      { keep: true },
    );
    for (const dryRun of [true, false]) {
      const undone = await ops.changes.undo({ id, dryRun });
      expect(undone).toMatchObject({ count: 3, refused: { count: 5 } });
      expect(refusedOf(undone).sort()).toEqual([
        "adopted: it was in another set, or in none, before.",
        "new-name: it was renamed, or moved to another queue.",
        "t1: it was changed since.",
        "t2: it was changed since.",
        "t3: it was deleted, moved or taken out of the set since.",
      ]);
    }
    expect(await stored()).toMatchObject({
      ...{ t0: "0 8 * * * scheduled", t1: "0 10 * * * scheduled", t3: "0 9 * * * scheduled" },
      ...{ t4: "0 8 * * * scheduled", "new-name": "0 9 * * * scheduled", later: "0 9 * * * scheduled" },
    });
    // It was not the last apply.
    expect((await record())?.version).toBe("3");
  });

  it("names the task and the field of a former definition that does not fit any more, and undoes the others", async () => {
    await renew({ types: [], worker: false });
    const to = (value: unknown) => ({ payload: { to: value } });
    await apply("1", [task("old", 8, to("ann")), task("same", 8, to("bob")), task("fits", 8, to(["eve"]))]);
    await apply("2", [task("old", 9, to(["ann"])), task("same", 9, to("bob")), task("fits", 9, to([]))]);
    const { id } = await newest();
    const payload = z.object({ to: z.array(z.string()) });
    await kit.work({ types: [defineTask("ring", { queue: "jobs", payload, handler: () => {} })] });
    const { changes } = operatorOf(new Client({ store: kit.store }));
    for (const dryRun of [true, false]) {
      const undone = await changes.undo({ id, dryRun });
      expect(undone).toMatchObject({ count: 2, refused: { count: 1 } });
      expect(undone.refused.sample).toEqual([
        {
          task: { queue: "jobs", owner: "system", id: "old" },
          code: "INVALID_PAYLOAD",
          message: expect.stringMatching(
            /^its former definition does not fit any more: payload\.to: .* put it with another payload, /,
          ),
        },
      ]);
    }
    const hours = { fits: "0 8 * * * scheduled", old: "0 9 * * * scheduled", same: "0 8 * * * scheduled" };
    expect(await stored()).toEqual(hours);
    expect((await record())?.version).toBe("1");
  });

  it("takes back a state that the apply gave, but not one that people have given since", async () => {
    const states = (state?: "paused" | "running") => ["a", "b"].map((id) => task(id, 8, state && { state }));
    await apply("1", states());
    await apply("2", states("paused"));
    const { id } = await newest();
    await kit.client.resume("b");
    await kit.client.pause("b", { note: "mine" });
    await ops.changes.undo({ id });
    expect(await stored()).toEqual({ a: "0 8 * * * scheduled", b: "0 8 * * * paused" });
  });

  it("is refused with a remedy after calendars were stored, and of a protected task", async () => {
    await apply("1", many(2, 8));
    await apply("2", many(2, 9), { calendars: { feast: ["2026-12-25"] } });
    const { id, undo } = await newest();
    expect(undo).toBeUndefined();
    await expect(ops.changes.undo({ id })).rejects.toMatchObject({
      code: "CONFLICT",
      message: expect.stringContaining("it also stored the calendar feast"),
      remedy: "Apply the former file of the set billing again, with a newer version.",
    });
    await apply("3", [...many(2, 9), task("kept", 9)], { protect: ["kept"] });
    await expect(ops.changes.undo({ id: (await newest()).id })).rejects.toMatchObject({
      code: "PLAN_REFUSED",
    });
    const acme = operatorOf(new Client({ store: kit.store, owner: "acme" }));
    await expect(acme.changes.undo({ id })).rejects.toMatchObject({ code: "CONFLICT" });
  });

  it("undoes an apply that died midway, and goes on if it dies itself", async () => {
    await apply("1", [...many(6, 8), task("gone", 8)]);
    const before = await stored();
    const { tasks } = kit.store;
    /** The process dies before its nth write of tasks. */
    const killed = async (call: () => Promise<unknown>) => {
      const real = tasks.put.bind(tasks);
      tasks.put = async (queue, all, ...rest) => {
        await real(queue, all.slice(0, all.length / 2), ...rest);
        throw new CarillonError("REDIS_UNAVAILABLE", "died.");
      };
      const guarded = kit.store.guarded.bind(kit.store);
      kit.store.guarded = (guard) => Object.assign(Object.create(guarded(guard)), { tasks });
      await expect(call()).rejects.toThrow("died.");
      delete (tasks as Partial<typeof tasks>).put;
      delete (kit.store as Partial<typeof kit.store>).guarded;
    };
    const bad = () => apply("2", [...many(6, 9), task("new", 9)]);
    await killed(bad);
    expect(await record()).toMatchObject({ version: "2", applying: expect.any(String) });
    const { id } = await newest();
    await killed(() => ops.changes.undo({ id }));
    await ops.changes.undo({ id });
    expect(await stored()).toEqual(before);
    const left = await record();
    expect([left?.version, left?.applying]).toEqual(["1", undefined]);
    // After a repetition of the apply one undo takes back all of it.
    await killed(bad);
    const first = await newest();
    await bad();
    expect(await ops.changes.undo({ id: first.id })).toMatchObject({ refused: { count: 0 } });
    expect(await stored()).toEqual(before);
  });
});
