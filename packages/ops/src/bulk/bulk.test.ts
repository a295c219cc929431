import { Client, defineTask, type TaskInput } from "@carillon/sdk";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/each-kit.js";
import { operatorOf } from "../operator.js";

const QUEUE = "bells";
const START = Date.parse("2026-01-01T00:00:00Z");

const payload = z.looseObject({});
const ring = defineTask("ring", { queue: QUEUE, payload, handler: () => {} });
const fail = defineTask("fail", {
  queue: QUEUE,
  payload,
  handler: () => {
    throw new Error("no");
  },
});

describe("bulk calls", () => {
  const { kit, ops } = eachKit({ types: [ring, fail], start: START });

  const put = (id: string, more: Partial<TaskInput> = {}) =>
    kit.client.put({ id, type: "ring", queue: QUEUE, schedule: { every: "1h" }, ...more });
  const ids = (sample: readonly { id: string }[]) => sample.map(({ id }) => id).join("");
  const none = { count: 0, sample: [] };

  it("select by name, and refuse missing tasks without leaving out the others", async () => {
    for (const id of "abc") await put(id);
    await put("d", { owner: "acme", queue: "other" });
    const tasks = ["a", "acme/d", "none", { queue: QUEUE, id: "c" }];
    const paused = await ops.tasks.pauseMany({ tasks, note: "x" });
    expect(paused).toMatchObject({
      count: 3,
      sample: [{ id: "a" }, { id: "d", owner: "acme" }, { id: "c" }],
      refused: { count: 1, sample: [{ task: "none", code: "TASK_NOT_FOUND" }] },
    });
    expect(ids((await kit.client.list({ state: "paused" })).tasks)).toBe("acd");
    expect(await ops.tasks.resumeMany({ tasks: ["b", "c"], note: "x" })).toMatchObject({ count: 1 });
    const bound = new Client({ store: kit.store, owner: "acme" });
    expect(await operatorOf(bound).tasks.deleteMany({ tasks: ["d", "system/a"] })).toMatchObject({
      count: 1,
      refused: { count: 1, sample: [{ task: "system/a", code: "TASK_NOT_FOUND" }] },
    });
    expect(await kit.client.count()).toBe(3);
  });

  it("take a task once that is named several times, dry or not", async () => {
    await put("a", { overlap: "allow" });
    const named = { tasks: ["a", "none", "system/a", { queue: QUEUE, id: "a" }] };
    const once = { count: 1, refused: { count: 1 } };
    for (const dryRun of [true, false])
      expect(await ops.tasks.triggerMany({ ...named, dryRun })).toMatchObject(once);
    await kit.advance("1h");
    const past = { from: START, to: START + 3_600_000, perMinute: 60_000 };
    expect(await ops.backfills.startMany({ ...named, ...past })).toMatchObject({ ...once, total: 2 });
    await kit.advance("1m");
    const triggers = (await kit.client.runs.list("a")).map(({ trigger }) => trigger).sort();
    expect(triggers).toEqual(["backfill", "backfill", "manual", "schedule"]);
  });

  it("select as a list does: by the last outcome, by state", async () => {
    await put("good");
    for (const id of ["bad", "worse"]) await put(id, { type: "fail", schedule: { at: START + 3_600_000 } });
    await put("later", { schedule: { at: START + 7_200_000 } });
    await kit.advance("1h");
    expect(await ops.tasks.pauseMany({ outcome: "succeeded", dryRun: true })).toMatchObject({
      count: 1,
      sample: [{ id: "good" }],
      refused: none,
    });
    expect(await ops.tasks.deleteMany({ queue: QUEUE, state: "finished", dryRun: true })).toMatchObject({
      count: 2,
      sample: [{ id: "bad" }, { id: "worse" }],
    });
    expect(await ops.tasks.pauseMany({ queue: QUEUE, state: "finished" })).toMatchObject({ count: 0 });
    expect(await ops.tasks.deleteMany({ outcome: ["failed", "crashed"] })).toMatchObject({ count: 2 });
    expect(await kit.client.count()).toBe(2);
  });

  it("trigger each task on its own, count refusals, and log one change", async () => {
    for (const id of ["free", "held", "busy"]) await put(id, { tags: id === "held" ? ["held"] : [] });
    await kit.worker.pause();
    await kit.client.trigger("busy");
    await ops.freezes.put({ tag: "held" });
    const dry = await ops.tasks.triggerMany({ queue: QUEUE, dryRun: true }, { by: "ann" });
    expect(dry).toMatchObject({ count: 3, refused: none });
    expect(await kit.client.runs.list("free")).toEqual([]);
    expect(await ops.tasks.triggerMany({ queue: QUEUE }, { by: "ann" })).toMatchObject({
      count: 1,
      sample: [{ id: "free" }],
      refused: {
        count: 2,
        sample: [
          { task: { id: "busy" }, code: "SKIPPED_OVERLAP" },
          { task: { id: "held" }, code: "FROZEN" },
        ],
      },
    });
    expect(await ops.tasks.triggerMany({ queue: QUEUE, overlap: "allow", force: true })).toMatchObject({
      count: 3,
      refused: none,
    });
    const { changes } = await ops.changes.list();
    expect(changes[0]).toMatchObject({ kind: "trigger", scope: { queue: QUEUE }, count: 3 });
    expect(changes[1]).toMatchObject({ kind: "trigger", by: "ann", count: 1, sample: [{ id: "free" }] });
  });

  it("never trigger, pause or tag deliveries of alerts, and delete them with their owner's tasks", async () => {
    const alerts = [{ on: ["failed"], url: "https://hooks.example.com/x" }] as TaskInput["alerts"];
    await put("t", { type: "fail", owner: "acme", alerts });
    await kit.advance("1h");
    const delivery = { owner: "acme", deliveries: true };
    expect((await kit.client.list(delivery)).tasks).toHaveLength(2);
    expect(await ops.tasks.triggerMany({ owner: "acme", dryRun: true })).toMatchObject({ count: 1 });
    expect(await ops.tasks.tagMany({ owner: "acme", add: ["x"], dryRun: true })).toMatchObject({ count: 1 });
    expect(await ops.tasks.deleteMany({ owner: "acme" })).toMatchObject({ count: 2 });
    expect((await kit.client.list(delivery)).tasks).toEqual([]);
  });

  it("add and remove tags only where that changes them, and keep next times", async () => {
    await put("a", { tags: ["ops", "old"] });
    await put("b", { tags: ["ops", "new"] });
    await kit.client.enqueue(ring, {}, { id: "c", delay: "1h" });
    const change = { add: ["new"], remove: ["old"] };
    const dry = await ops.tasks.tagMany({ queue: QUEUE, ...change, dryRun: true });
    expect([dry.count, ids(dry.sample)]).toEqual([2, "ac"]);
    const due = (await kit.client.get("a")).due;
    expect(await ops.tasks.tagMany({ queue: QUEUE, ...change }, { by: "ann" })).toEqual(dry);
    expect(await ops.tasks.tagMany({ queue: QUEUE, ...change })).toMatchObject({ count: 0 });
    expect(await kit.client.get("a")).toMatchObject({ tags: ["new", "ops"], due, updatedBy: "ann" });
    expect(ids((await kit.client.list({ tag: "new" })).tasks)).toBe("abc");
    expect((await ops.changes.list()).changes[0]).toMatchObject({
      kind: "put",
      by: "ann",
      count: 2,
      details: { add: ["new"], remove: ["old"] },
    });
    const many = Array.from({ length: 31 }, (_, n) => `t${n}`);
    expect(await ops.tasks.tagMany({ tasks: ["a", "c"], add: many })).toMatchObject({
      count: 1,
      sample: [{ id: "c" }],
      refused: { count: 1, sample: [{ code: "INVALID_NAME" }] },
    });
  });

  it("name what takes them back, for exactly the tasks that they changed", async () => {
    const { tasks, changes } = operatorOf(kit.client);
    for (const id of "abcd") await put(id);
    const stateOf = async () => (await kit.client.list()).tasks.map(({ id, state }) => `${id} ${state}`);
    const undone = async ({ undo }: { undo?: { operation: string; input: object } | undefined }) => {
      const [, verb] = undo!.operation.split(".") as [string, "pauseMany" | "resumeMany"];
      return tasks[verb](undo!.input);
    };
    await kit.client.pause("a", { note: "mine" });
    const before = await stateOf();
    expect(await tasks.pauseMany({ queue: QUEUE, dryRun: true })).not.toHaveProperty("undo");
    const paused = await tasks.pauseMany({ queue: QUEUE, note: "INC-1" });
    expect(await undone(paused)).toMatchObject({ count: 3 });
    expect(await stateOf()).toEqual(before);
    const again = await tasks.pauseMany({ queue: QUEUE, note: "INC-1" }, { by: "ann" });
    await kit.client.resume("b");
    await kit.client.pause("b", { note: "INC-1", by: "ben" });
    expect(await undone(again)).toMatchObject({ count: 2 });
    await kit.client.resume("b");
    expect((await kit.client.get("a")).paused).toMatchObject({ note: "mine" });

    await tasks.pauseMany({ tasks: ["b"], note: "mine" });
    const resumed = await tasks.resumeMany({ queue: QUEUE });
    await undone(resumed);
    expect((await kit.client.get("b")).paused).toMatchObject({ note: "mine" });
    await tasks.pauseMany({ tasks: ["c"], note: "another" });
    expect(await tasks.resumeMany({ queue: QUEUE })).not.toHaveProperty("undo");

    await kit.client.pause("d");
    await put("d", { payload: { n: 2 } });
    const { change = "" } = await tasks.deleteMany({ tasks: ["c", "d", "none"] });
    expect(await kit.client.count()).toBe(2);
    expect(await changes.undo({ id: change, dryRun: true })).toMatchObject({ count: 2 });
    await put("c", { payload: { n: 3 } });
    expect(await changes.undo({ id: change })).toMatchObject({ count: 1, refused: { count: 0 } });
    expect(await kit.client.get("c")).toMatchObject({ payload: { n: 3 } });
    expect(await kit.client.get("d")).toMatchObject({ payload: { n: 2 }, state: "paused" });
    expect(await changes.undo({ id: change })).toMatchObject({ count: 0 });
  });

  it("edit no payload beyond its size, and unset nothing that is not there", async () => {
    const [named, path] = [{ tasks: ["a"] }, "payload.text"];
    await put("a", { payload: { none: null } });
    expect(await ops.tasks.editMany({ ...named, unset: ["payload.none.x"] })).toMatchObject({ count: 0 });
    const long = "x".repeat(2_000_000);
    await expect(ops.tasks.editMany({ ...named, fields: { [path]: long } })).rejects.toMatchObject({
      code: "PAYLOAD_TOO_LARGE",
    });
    const large = new Client({ store: kit.store, maxPayloadBytes: 4_000_000 });
    await large.update("a", (task) => ({ ...task, payload: { text: long, rest: "" } }));
    for (const edit of [{ fields: { priority: 2 } }, { unset: ["payload.rest"] }])
      expect(await ops.tasks.editMany({ ...named, ...edit })).toMatchObject({ count: 1 });
  });

  it("cancel the runs that are named, and no others", async () => {
    await put("a", { overlap: "allow" });
    await put("b", { owner: "acme" });
    await kit.worker.pause();
    const runs: string[] = [];
    for (const id of ["a", "a", "acme/b"]) runs.push(((await kit.client.trigger(id)) as { run: string }).run);
    const ops = operatorOf(kit.client).runs;
    const named = { runs: [runs[0]!, runs[2]!, "none@q"] };
    const some = {
      count: 2,
      tasks: 2,
      refused: { count: 1, sample: [{ task: "none@q", code: "RUN_NOT_FOUND" }] },
    };
    expect(await ops.cancelMany({ ...named, dryRun: true })).toMatchObject(some);
    const bound = operatorOf(new Client({ store: kit.store, owner: "acme" }));
    expect(await bound.runs.cancelMany({ ...named, dryRun: true })).toMatchObject({
      count: 1,
      refused: { count: 2 },
    });
    expect(await ops.cancelMany(named)).toMatchObject(some);
    expect(await ops.cancelMany(named)).toMatchObject({ count: 0 });
    await expect(ops.cancelMany({ ...named, owner: "acme" })).rejects.toMatchObject({ field: "owner" });
    await kit.worker.resume();
    await kit.advance(0);
    expect((await kit.client.runs.list("a")).map(({ outcome }) => outcome).sort()).toEqual([
      "cancelled",
      "succeeded",
    ]);
  });

  it("cancel queued and running runs of a scope, and no others", async () => {
    await put("a", { overlap: "allow" });
    await put("b", { owner: "acme" });
    await put("none", { owner: "acme" });
    await kit.worker.pause();
    const [first] = [await kit.client.trigger("a"), await kit.client.trigger("a")];
    await kit.client.trigger("acme/b");
    await kit.client.runs.cancel((first as { run: string }).run);
    const dry = await ops.runs.cancelMany({ queue: QUEUE, dryRun: true });
    expect(dry).toMatchObject({ count: 2, tasks: 2, sample: [{ state: "queued" }, { state: "queued" }] });
    const acme = { count: 1, tasks: 1, sample: [{ task: { owner: "acme", id: "b" } }] };
    expect(await ops.runs.cancelMany({ owner: "acme" }, { by: "ann" })).toMatchObject(acme);
    expect(await ops.runs.cancelMany({ owner: "acme" })).toMatchObject({ count: 0, tasks: 0 });
    await kit.worker.resume();
    await kit.advance(0);
    await kit.expect("acme/b").outcome("cancelled");
    const outcomes = (await kit.client.runs.list("a")).map(({ outcome }) => outcome);
    expect(outcomes.sort()).toEqual(["cancelled", "succeeded"]);
    expect((await ops.changes.list()).changes[0]).toMatchObject({
      kind: "cancel",
      by: "ann",
      scope: { owner: "acme" },
      count: 1,
      details: { runs: 1 },
    });
  });

  it("log the number of changes made before Redis failed", async () => {
    for (const id of "ab") await put(id);
    const { tasks } = kit.store;
    const { pause } = tasks;
    tasks.pause = async (name, ...rest) => {
      if (name.id === "b") throw Object.assign(new Error("down"), { code: "DOWN" });
      return pause.call(tasks, name, ...rest);
    };
    await expect(ops.tasks.pauseMany({ tasks: ["a"] })).resolves.toMatchObject({ count: 1 });
    await kit.client.resume("a");
    const first = ops.tasks.pauseMany({ tasks: [...Array.from({ length: 100 }, () => "a"), "b"] });
    await expect(first).rejects.toThrow("down");
    expect((await ops.changes.list()).changes[0]).toMatchObject({ kind: "pause", count: 1 });
  });

  it.each<[unknown, string | undefined]>([
    [{}, undefined],
    [{ state: "paused" }, undefined],
    [{ deliveries: true }, undefined],
    [{ tasks: ["a"], owner: "system" }, "owner"],
    [{ tasks: [1] }, "tasks[0]"],
    [{ queue: QUEUE, sort: "next" }, "sort"],
  ])("refuse %j", async (filter, field) => {
    await put("a");
    const given = filter as object;
    for (const call of [
      ...[ops.tasks.pauseMany(given), ops.tasks.resumeMany(given), ops.tasks.triggerMany(given)],
      ...[
        ops.tasks.deleteMany(given),
        ops.tasks.tagMany({ ...given, add: ["x"] }),
        ops.runs.cancelMany(given),
      ],
    ])
      await expect(call).rejects.toMatchObject({
        code: expect.stringMatching(/^INVALID_(OPTION|NAME)$/),
        ...(field && { field }),
      });
    const tasks = Array.from({ length: 1_001 }, () => "a");
    await expect(ops.tasks.pauseMany({ tasks })).rejects.toMatchObject({ field: "tasks" });
    for (const change of [{}, { add: ["a b"] }])
      await expect(ops.tasks.tagMany({ queue: QUEUE, ...(change as object) })).rejects.toThrow();
    expect(await kit.client.get("a")).toMatchObject({ state: "scheduled", tags: [] });
    expect(await kit.client.runs.list("a")).toEqual([]);
  });
});
