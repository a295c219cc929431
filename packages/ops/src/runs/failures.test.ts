import { Client, defineTask, type TaskInput } from "@carillon/sdk";
import { beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { eachKit } from "../../../../test/each-kit.js";
import { operatorOf } from "../operator.js";

const QUEUE = "bells";
const START = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;

/** Message of the handler's error, by the task's id; undefined: it succeeds. */
let fault: (id: string) => string | undefined;
/** The error that it throws instead; undefined: none. */
let thrown: (id: string) => unknown;
const send = defineTask("send", {
  queue: QUEUE,
  payload: z.looseObject({}),
  handler: (_, { occurrence: { task } }) => {
    if (thrown(task) !== undefined) throw thrown(task);
    const message = fault(task);
    if (message !== undefined) throw new Error(message);
  },
});

describe("failures", () => {
  const { kit } = eachKit({ types: [send], start: START });
  beforeEach(() => {
    fault = (id) => `connect ECONNREFUSED 10.0.0.${id.length}:5432`;
    thrown = () => undefined;
  });

  const ops = (owner?: string) =>
    operatorOf(owner === undefined ? kit.client : new Client({ store: kit.store, owner }));
  const put = (owner: string, id: string, more: Partial<TaskInput> = {}) =>
    kit.client.put({
      owner,
      id,
      type: "send",
      queue: QUEUE,
      schedule: { every: "1m" },
      payload: {},
      ...more,
    });

  it("of one cause are one group, over tasks and owners", async () => {
    for (const owner of ["acme", "beta"]) for (const id of ["a", "bb", "ccc"]) await put(owner, id);
    await put("acme", "slow", { schedule: { every: "2m" } });
    fault = (id) => (id === "slow" ? "HTTP 503" : `connect ECONNREFUSED 10.0.0.${id.length}:5432`);
    await kit.advance("2m");
    const { runs, groups, from, to } = await ops().runs.failures();
    expect({ runs, from, to }).toEqual({ runs: 13, from: kit.now - 24 * 60 * MINUTE, to: kit.now });
    expect(groups).toMatchObject([
      {
        cause: { outcome: "failed", error: "Error: connect ECONNREFUSED …" },
        ...{ runs: 12, madeUp: 0, owed: 12, tasks: 6, failing: 6, owners: 2, queues: 1 },
        ...{ first: START + MINUTE, last: START + 2 * MINUTE },
      },
      { cause: { outcome: "failed", error: "Error: HTTP 503" }, runs: 1, tasks: 1, owners: 1 },
    ]);
    const [one] = groups;
    expect(one?.cause?.frame).toMatch(/failures\.test\.ts/);
    expect(new Set(one?.examples.map(({ task }) => `${task.owner}/${task.id}`)).size).toBe(3);
    expect(one?.strip.reduce((sum, n) => sum + n)).toBe(12);
  });

  it("have the causes that alerts about them name", async () => {
    const errors: Record<string, unknown> = {
      plain: new Error("no paper"),
      lines: new Error("no paper\nin tray 7\n    at a table"),
      long: new Error(`no ${"paper ".repeat(400)}`),
      wide: new Error(`kein ${"ü".repeat(600)}`),
      text: "no paper",
      none: new Error(""),
      own: Object.assign(new Error("no ink"), {
        stack:
          "Error: no ink\n    at node:internal/x:1:1\n    at load (/app/node_modules/a/b.js:1:2)\n    at print (/app/src/print.js:3:4)",
      }),
      deep: Object.assign(new Error("no ink"), {
        stack: `Error: no ink\n${"    at f (/app/node_modules/a/b.js:1:2)\n".repeat(40)}    at print (/app/src/print.js:3:4)`,
      }),
    };
    thrown = (id) => errors[id];
    for (const id of Object.keys(errors)) await put("acme", id);
    await kit.advance("1m");
    const { alerts } = await ops().alerts.list();
    const { groups } = await ops().runs.failures();
    const found = groups.flatMap(({ cause, examples }) => examples.map(({ run }) => [run, cause?.id]));
    expect(found).toHaveLength(Object.keys(errors).length);
    expect(Object.fromEntries(alerts.map(({ run, cause }) => [run, cause]))).toEqual(
      Object.fromEntries(found),
    );
    expect(new Set(found.map(([, cause]) => cause)).size).toBeGreaterThan(4);
  });

  it("of one owner, queue or task are one group each, and one cause can be asked for", async () => {
    await put("acme", "a");
    await put("beta", "bb");
    await put("beta", "ccc", { schedule: { every: "2m" } });
    await kit.advance("2m");
    const by = async (by: "owner" | "queue" | "task") => (await ops().runs.failures({ by })).groups;
    expect(await by("owner")).toMatchObject([
      { owner: "beta", runs: 3, tasks: 2 },
      { owner: "acme", runs: 2, tasks: 1 },
    ]);
    expect(await by("queue")).toMatchObject([{ queue: QUEUE, runs: 5, owners: 2 }]);
    const tasks = (await by("task")).map(({ task, runs }) => `${task?.owner}/${task?.id} ${runs}`);
    expect(tasks.sort()).toEqual(["acme/a 2", "beta/bb 2", "beta/ccc 1"]);
    const [all] = (await ops().runs.failures()).groups;
    expect(await ops().runs.failures({ cause: all?.cause?.id })).toMatchObject({ runs: 5 });
    expect(await ops().runs.failures({ cause: "00000000" })).toMatchObject({ runs: 0, groups: [] });
    expect(await ops().runs.failures({ by: "task", limit: 1 })).toMatchObject({ more: 2 });
  });

  it("say what was made up since, and whether it still happens", async () => {
    await put("acme", "a");
    await put("acme", "bb");
    await kit.advance("2m");
    fault = (id) => (id === "a" ? undefined : "connect ECONNREFUSED 10.0.0.2:5432");
    await kit.advance("1m");
    expect((await ops().runs.failures()).groups).toMatchObject([
      { runs: 5, madeUp: 2, owed: 3, tasks: 2, failing: 1 },
    ]);
    fault = () => undefined;
    await kit.advance("1m");
    expect((await ops().runs.failures()).groups).toMatchObject([{ owed: 0, madeUp: 5, failing: 0 }]);
  });

  it("name the change before them, of the task that failed first", async () => {
    fault = () => undefined;
    await put("acme", "a");
    await put("acme", "bb", { schedule: { every: "1h" } });
    await kit.advance("10m");
    const edit = (v: number, by: string) => {
      const task = { owner: "acme", id: "a", type: "send", queue: QUEUE, payload: { v } };
      return ops().tasks.put({ task: { ...task, schedule: { every: "1m" } } }, { by });
    };
    await edit(2, "ann");
    const changedAt = kit.now;
    fault = () => "no column v";
    await kit.advance("1m");
    await edit(3, "bob");
    await kit.advance("1m");
    const [one] = (await ops().runs.failures()).groups;
    expect(one?.change).toMatchObject({ kind: "put", by: "ann", at: changedAt });
  });

  it("blame an apply for the tasks that it changed, not for the others of its set", async () => {
    fault = () => undefined;
    const apply = (version: string, every: string) => {
      const one = (id: string, its: string) => ({
        ...{ owner: "acme", id, type: "send", queue: QUEUE, payload: {} },
        schedule: { every: its },
      });
      return ops().sets.apply({ set: "bells", version, tasks: [one("a", "1m"), one("bb", every)] });
    };
    await apply("1", "2m");
    await kit.advance("10m");
    await apply("2", "3m");
    fault = (id) => (id === "a" ? "no paper" : "no ink");
    await kit.advance("6m");
    const { groups } = await ops().runs.failures();
    expect(groups.map(({ cause, change }) => [cause?.error, change?.kind, change?.text])).toEqual([
      ["Error: no paper", "apply", "bells 1"],
      ["Error: no ink", "apply", "bells 2"],
    ]);
  });

  it("are only those of its owner for a caller that is bound to one", async () => {
    await put("acme", "a");
    await put("beta", "bb");
    await kit.advance("1m");
    expect(await ops("acme").runs.failures({ by: "owner" })).toMatchObject({
      runs: 1,
      groups: [{ owner: "acme" }],
    });
  });

  it("of a range are those that ended in it", async () => {
    await put("acme", "a");
    await kit.advance("5m");
    const answer = await ops().runs.failures({ from: START, to: START + 2 * MINUTE });
    expect(answer).toMatchObject({ from: START, to: START + 2 * MINUTE, runs: 2 });
    await expect(ops().runs.failures({ from: START + 1, to: START })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      field: "from",
    });
  });
});
