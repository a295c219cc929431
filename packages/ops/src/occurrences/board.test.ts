import { operatorOf } from "@carillon/ops";
import { Client, type TaskInput } from "@carillon/sdk";
import { describe, expect, it } from "vitest";
import { eachBells, MINUTE, putBell, QUEUE, START } from "../../../../test/bells.js";
import { readRuns } from "./board-reads.js";

describe("the board", () => {
  const { kit, ops } = eachBells();

  const put = (id: string, type: string, rest: Partial<TaskInput> = {}) =>
    putBell(kit, id, type, { schedule: { every: "10m" }, ...rest });
  const range = { from: START, to: START + 120 * MINUTE, step: "10m" };
  const board = (input: object = {}, client = kit.client) =>
    operatorOf(client).occurrences.board({ ...range, ...input });
  /** The sum of each mark of a row. */
  const sums = (found: Awaited<ReturnType<typeof board>>, name: string) => {
    const sums: Record<string, number> = {};
    for (const { i: _, ...marks } of found.rows.find((row) => row.name === name)?.cells ?? [])
      for (const [mark, count = 0] of Object.entries(marks)) sums[mark] = (sums[mark] ?? 0) + count;
    return sums;
  };

  it("counts what was planned, what happened and what is to come, in cells of time", async () => {
    await put("good", "fine");
    await put("bad", "failing", { owner: "acme" });
    await put("held", "fine", { tags: ["old"] });
    await kit.client.pause("held", { by: "ann", note: "INC-1" });
    await kit.advance("61m");
    await kit.client.resume("held", { missed: "skip" });
    const found = await board();
    expect([found.by, found.tasks, found.hidden]).toEqual(["task", 3, 0]);
    expect(found.rows.map(({ name }) => name)).toEqual(["acme/bad", "system/good", "system/held"]);
    expect(sums(found, "system/good")).toEqual({ planned: 11, onTime: 6 });
    expect(sums(found, "acme/bad")).toEqual({ planned: 11, failed: 6 });
    expect(sums(found, "system/held")).toEqual({ planned: 11, skipped: 6 });
    // Each in its own cell: the one after now is only planned.
    expect(found.rows[1]?.cells.find(({ i }) => i === 6)).toEqual({ i: 6, planned: 1, onTime: 1 });
    expect(found.rows[1]?.cells.find(({ i }) => i === 7)).toEqual({ i: 7, planned: 1 });
    expect(found.sums).toMatchObject({ ended: 12, failed: 6, missed: 0, doubled: 0, read: 12 });
    expect(found.ended.slice(0, 8)).toEqual([0, 2, 2, 2, 2, 2, 2, 0]);
    expect(found.runs.failed.map(({ task }) => task.id)).toEqual(new Array(6).fill("bad"));
    const part = { from: START + 11 * MINUTE, to: START + 19 * MINUTE, step: 4 * MINUTE };
    expect((await board(part)).sums).toMatchObject({ ended: 0, failed: 0 });
    expect(found.skips[0]).toMatchObject({ reason: "paused", task: { id: "held" } });
    const byTag = await board({ by: "tag" });
    expect(byTag.rows.map(({ name }) => name)).toEqual(["", "old"]);
    expect(sums(byTag, "old")).toEqual({ planned: 11, skipped: 6 });
    expect(sums(await board({ by: "queue", tag: "old" }), QUEUE)).toEqual({ planned: 11, skipped: 6 });
  });

  it("names the zone of each task whose schedule has one", async () => {
    await put("there", "failing", { schedule: { cron: "*/10 * * * *", timezone: "Asia/Kolkata" } });
    await put("anywhere", "failing");
    await kit.advance("15m");
    const { rows, runs } = await board();
    const zones = [["anywhere"], ["there", "Asia/Kolkata"]];
    expect(rows.map(({ task, timezone }) => [task?.id, timezone].filter(Boolean))).toEqual(zones);
    const failed = runs.failed.map(({ task, timezone }) => [task.id, timezone].filter(Boolean));
    expect(failed.sort()).toEqual(zones);
  });

  it("shows an owner's tasks alone to a client that is bound to it", async () => {
    await put("mine", "fine", { owner: "acme" });
    await put("theirs", "failing", { owner: "globex" });
    await ops.freezes.put({ owner: "globex", note: "secret" });
    await kit.advance("30m");
    const acme = new Client({ store: kit.store, owner: "acme" });
    for (const by of ["task", "queue", "owner", "tag"] as const) {
      const found = await board({ by }, acme);
      expect(JSON.stringify(found)).not.toMatch(/globex|theirs|secret/);
      expect(found.rows).toHaveLength(1);
      expect(found.sums).toMatchObject({ ended: 3, failed: 0 });
    }
    await expect(board({ owner: "globex" }, acme)).rejects.toThrow("bound to owner acme");
  });

  it("tells late and overdue from missed, and shows freezes and pauses as bands", async () => {
    await put("slow", "fine");
    await put("frozen", "fine", { owner: "acme" });
    const until = START + 40 * MINUTE;
    await ops.freezes.put({ owner: "acme", until: new Date(until), note: "an audit" });
    const tasks = [{ queue: QUEUE, owner: "acme", id: "frozen" }];
    await ops.freezes.put({ tasks, from: new Date(until) });
    await kit.worker.pause();
    await kit.advance("15m");
    await kit.worker.resume();
    await kit.advance("10m");
    await kit.client.pause("slow", { by: "bob" });
    const found = await board({ by: "task" });
    expect(sums(found, "system/slow")).toMatchObject({ late: 1 });
    expect(found.lateMs[1]).toBe(5 * MINUTE);
    expect([...found.bands].sort((a, b) => a.from - b.from)).toMatchObject([
      { kind: "freeze", from: START, to: until, owner: "acme", note: "an audit" },
      { kind: "task-paused", id: "slow", by: "bob" },
      { kind: "freeze", from: until, owner: "acme", id: "frozen" },
    ]);
  });

  it("keeps the bands of freezes and pauses that ended, for those who may see their tasks", async () => {
    for (const owner of ["acme", "globex"]) await put("t", "fine", { owner });
    const { freezes, queues, tasks } = ops;
    const later = (minutes: number) => new Date(START + minutes * MINUTE).toISOString();
    await freezes.put({ owner: "acme", until: later(10), note: "planned" });
    for (const note of ["first", "second"]) {
      const { id } = await freezes.put({ owner: "globex", note }, { by: "ann" });
      await kit.client.pause({ owner: "acme", id: "t" }, { note: `${note} pause` });
      await kit.advance("5m");
      await freezes.delete({ id });
      await kit.client.resume({ owner: "acme", id: "t" });
    }
    // A node has deleted the one that is over.
    await kit.advance("10m");
    expect((await kit.store.freezes.list()).length).toBe(0);
    const { id } = await freezes.put({ all: true, from: later(60) });
    await freezes.delete({ id });
    await queues.pause({ queue: QUEUE, note: "a queue" });
    await kit.client.pause({ owner: "globex", id: "t" }, { note: "many" });
    await kit.advance("5m");
    await queues.resume({ queue: QUEUE });
    await tasks.resumeMany({ owner: "globex" });
    const texts = async (client = kit.client, over = {}) =>
      (await board({ by: "task", ...over }, client)).bands
        .map(({ kind, from, to = 0, owner, note }) =>
          [kind, (from - START) / MINUTE, (to - START) / MINUTE, owner, note].join(" "),
        )
        .sort();
    const acme = [
      "freeze 0 10 acme planned",
      "queue-paused 20 25  a queue",
      "task-paused 0 5 acme first pause",
      "task-paused 5 10 acme second pause",
    ];
    const globex = ["freeze 0 5 globex first", "freeze 5 10 globex second", "task-paused 20 25 globex many"];
    expect(await texts()).toEqual([...acme, ...globex].sort());
    expect(await texts(new Client({ store: kit.store, owner: "acme" }))).toEqual(acme);
    const since = { from: START + 20 * MINUTE };
    expect(await texts(kit.client, since)).toEqual([acme[1], globex[2]]);
  });

  it("reads a bounded number of runs, evenly over the time, that stand for all", async () => {
    for (const id of ["a", "b", "c"]) await put(id, "fine");
    await kit.advance("60m");
    const past = { from: START, to: START + 60 * MINUTE, step: 20 * MINUTE };
    const read = await readRuns({ store: kit.store } as never, [QUEUE], past, 8);
    expect(read).toHaveLength(8);
    expect(read.reduce((sum, { stands }) => sum + stands, 0)).toBe(18);
  });

  it("shows a backfilled occurrence at its own time", async () => {
    await put("new", "fine");
    const from = new Date(START - 60 * MINUTE).toISOString();
    const to = new Date(START - 1).toISOString();
    await ops.backfills.start({ id: "new", from, to, overlap: "allow" });
    await kit.advance("1m");
    const found = await board({ from: START - 60 * MINUTE, to: START + 5 * MINUTE });
    expect(sums(found, "system/new")).toEqual({ planned: 6, backfilled: 6 });
    expect(found.sums).toMatchObject({ ended: 6, late: 0, doubled: 0 });
  });

  it("refuses a range that is empty or has too many cells", async () => {
    await expect(board({ to: START })).rejects.toThrow("not after from");
    await expect(board({ step: "1s" })).rejects.toThrow("more than 300 cells");
  });
});
