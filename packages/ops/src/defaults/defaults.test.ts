import { type Operator, operatorOf } from "@carillon/ops";
import { Client, defineTask } from "@carillon/sdk";
import { beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { sharedRedis } from "../../../../test/helpers.js";

const redis = sharedRedis();
let client: Client;
let ops: Operator;
let serial = 0;
beforeEach(() => {
  client = new Client({ connection: redis.url, namespace: `defaults-${serial++}` });
  ops = operatorOf(client);
  return () => client.close();
});

const task = (rest: object = {}) => ({
  id: "a",
  queue: "q",
  type: "report",
  schedule: { every: "1h" },
  ...rest,
});

describe("default policies", () => {
  it("apply to tasks without their own: a type's precede an owner's, which precede those of all", async () => {
    expect(
      await ops.defaults.set({ scope: "all", policies: { timeLimit: "50%", linger: "1d", tolerance: "5s" } }),
    ).toEqual({ changed: true });
    expect(
      await ops.defaults.set({ scope: "all", policies: { timeLimit: "50%", linger: "1d", tolerance: "5s" } }),
    ).toEqual({ changed: false });
    await ops.defaults.set({ scope: "owner:acme", policies: { linger: "2d", pauseAfterFailures: 3 } });
    await ops.defaults.set({ scope: "type:report", policies: { pauseAfterFailures: 5 } });
    await client.put(task({ owner: "acme" }));
    const given = { timeLimit: "50%", linger: "2d", pauseAfterFailures: 5, tolerance: "5s" };
    expect(await client.get({ owner: "acme", id: "a" })).toMatchObject(given);
    // A second put of the same task changes nothing.
    expect(await client.put(task({ owner: "acme" }))).toMatchObject({ outcome: "unchanged" });
    await client.put(task({ id: "own", type: "mail", timeLimit: "1m", minGap: "1s" }));
    const own = await client.get("own");
    expect(own).toMatchObject({ timeLimit: "1m", minGap: "1s", linger: "1d" });
    expect(own.tolerance).toBeUndefined();
    expect(own.pauseAfterFailures).toBeUndefined();
  });

  it("fill in each threshold of alertIf by itself", async () => {
    const { defaults } = ops;
    await defaults.set({ scope: "all", policies: { alertIf: { noSuccessFor: "1d", skipsInARow: 9 } } });
    await defaults.set({ scope: "type:report", policies: { alertIf: { skipsInARow: 3 } } });
    await client.put(task({ alertIf: { slowerThan: "1h" } }));
    const { alertIf } = await client.get("a");
    expect(alertIf).toEqual({ slowerThan: "1h", skipsInARow: 3, noSuccessFor: "1d" });
  });

  it("are filled in by every kind of put", async () => {
    await ops.defaults.set({ scope: "all", policies: { timeLimit: "7m" } });
    const [type, later] = [
      defineTask("t", { queue: "q", payload: z.object({}), handler: () => {} }),
      { delay: "1h" },
    ];
    await client.putMany([task({ id: "many" })]);
    await client.enqueue(type, {}, { ...later, id: "once" });
    await client.put(task({ id: "changed", timeLimit: "1m" }));
    await client.update("changed", ({ timeLimit: _, ...rest }) => rest);
    for (const id of ["many", "once", "changed"]) expect((await client.get(id)).timeLimit).toBe("7m");
  });

  it("do not change stored tasks, and end when they are removed", async () => {
    await client.put(task());
    await ops.defaults.set({ scope: "all", policies: { timeLimit: "7m" } });
    expect((await client.get("a")).timeLimit).toBeUndefined();
    expect((await ops.defaults.list()).defaults).toEqual({ all: { timeLimit: "7m" } });
    expect(await ops.defaults.set({ scope: "all", policies: null })).toEqual({ changed: true });
    expect(await ops.defaults.set({ scope: "all", policies: null })).toEqual({ changed: false });
    expect((await ops.defaults.list()).defaults).toEqual({});
  });

  it.each([
    ["all", { timeLimit: "never" }, "INVALID_DURATION"],
    ["all", { timelimit: "1m" }, "INVALID_TASK"],
    ["everything", {}, "INVALID_OPTION"],
    ["owner:a b", {}, "INVALID_NAME"],
  ])("%s %j: %s", async (scope, policies, code) => {
    await expect(
      ops.defaults.set({ scope: scope as "all", policies: policies as object }),
    ).rejects.toMatchObject({ code });
    expect((await ops.defaults.list()).defaults).toEqual({});
  });

  it("do not mix minGap and tolerance", async () => {
    await expect(client.put(task({ minGap: "1m", tolerance: "1s" }))).rejects.toMatchObject({
      code: "INVALID_TASK",
      field: "tolerance",
    });
  });
});
