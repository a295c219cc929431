import type { TaskName } from "@carillon/core";
import type { TaskFilter } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { expect, it } from "vitest";
import { onEveryEngine } from "../../../test/helpers.js";
import { Bench, START } from "./bench.js";

const QUEUES = ["alpha", "beta", "gamma"];
const OWNERS = ["a", "a-", "a-b", "a.b", "aa", "b", "system"];

onEveryEngine("list and locate", (connection) => {
  const bench = Bench.use(connection, { queues: QUEUES });

  /** Every owner has three tasks in every queue. */
  async function seed(): Promise<string[]> {
    const ids = OWNERS.flatMap((owner) => ["x", "y", "z"].map((id) => ({ owner, id })));
    for (const queue of QUEUES) {
      const inputs = ids.map(({ owner, id }) => ({
        owner,
        id,
        tags: [owner, `only-${id}`],
        enabled: id !== "z",
      }));
      await bench.putAll(queue, inputs);
    }
    return QUEUES.flatMap((queue) => ids.map(({ owner, id }) => `${queue} ${owner}/${id}`)).sort();
  }
  const said = (tasks: readonly { definition: { queue: string; owner: string; id: string } }[]) =>
    tasks.map(({ definition: { queue, owner, id } }) => `${queue} ${owner}/${id}`);

  /** All pages, each no longer than `limit`. */
  async function pages(
    filter: TaskFilter,
    limit: number,
    read: "list" | "listDue" | "listLast" = "list",
  ): Promise<string[]> {
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await bench.store.tasks[read](filter, limit, cursor);
      expect(page.tasks.length).toBeLessThanOrEqual(limit);
      found.push(...said(page.tasks));
      expect(found.length).toBeLessThanOrEqual(1_000);
      cursor = page.cursor;
    } while (cursor !== undefined);
    return found;
  }

  it("pages through all tasks in one order, each once", async () => {
    const all = await seed();
    for (const limit of [1, 2, 7, 62, 63, 64, 1_000]) expect(await pages({}, limit)).toEqual(all);
  });

  it.each<[string, TaskFilter, (name: string) => boolean]>([
    ["queue", { queue: "beta" }, (name) => name.startsWith("beta ")],
    ["a queue that is not there", { queue: "delta" }, () => false],
    ...OWNERS.map((owner): [string, TaskFilter, (name: string) => boolean] => [
      `owner ${owner}`,
      { owner },
      (name) => name.includes(` ${owner}/`),
    ]),
    ["tag", { tag: "only-y" }, (name) => name.endsWith("/y")],
    ["tag and owner", { tag: "only-y", owner: "a" }, (name) => name.endsWith(" a/y")],
    ["another owner's tag", { tag: "a.b", owner: "a" }, () => false],
    ["state", { state: "paused" }, (name) => name.endsWith("/z")],
    [
      "queue, owner and state",
      { queue: "gamma", owner: "b", state: "scheduled" },
      (name) => /^gamma b\/[xy]$/.test(name),
    ],
  ])("filters by %s", async (_what, filter, wanted) => {
    const all = await seed();
    expect(await pages(filter, 2)).toEqual(all.filter(wanted));
    expect(await pages(filter, 500)).toEqual(all.filter(wanted));
  });

  it.each<[string, TaskFilter, (name: string) => boolean]>([
    ["all", {}, () => true],
    ["a queue", { queue: "beta" }, (name) => name.startsWith("beta ")],
    ["all but a queue", { except: "beta" }, (name) => !name.startsWith("beta ")],
    ["an owner", { owner: "a" }, (name) => name.includes(" a/")],
    ["a tag", { tag: "only-y" }, (name) => name.endsWith("/y")],
  ])("pages by next time, also within one instant: %s", async (_what, filter, wanted) => {
    // All tasks are due at 10 s, in eight shards; paused ones have no next time.
    const all = (await seed()).filter((name) => !name.endsWith("/z"));
    await bench.put({ id: "y", owner: "later", queue: "alpha", tags: ["only-y"], schedule: { every: "1m" } });
    await bench.put({ id: "y", owner: "a", queue: "gamma", tags: ["only-y"], schedule: { every: "5s" } });
    const moved = ["gamma a/y", ...all.filter((name) => name !== "gamma a/y"), "alpha later/y"];
    for (const limit of [1, 7, 500])
      expect(await pages(filter, limit, "listDue")).toEqual(moved.filter(wanted));
  });

  it.each([101, 1_000])("pages by next time through %i tasks that are due at one instant", async (count) => {
    const { keys, link } = internalsOf(bench.store);
    const { dues, task } = keys.queue("alpha");
    const names = Array.from({ length: count }, (_, i) => `o/${String(i * 7)}`);
    await bench.put({ id: "0", owner: "o", queue: "alpha" });
    const hash = await link.client.hgetall(task("o/0"));
    await link.client.del(...dues);
    const all = link.client.pipeline();
    for (const [i, name] of names.entries())
      all.hset(task(name), hash).zadd(dues[i % 3] as string, 5_000, name);
    await all.exec();
    const wanted = names.map((name) => `alpha ${name}`).sort();
    for (const limit of [40, 500]) expect(await pages({}, limit, "listDue")).toEqual(wanted);
  });

  it.each(["list", "listDue"] as const)(
    "%s reads 5,000 tasks for a page, and continues from there",
    async (read) => {
      const { keys, link } = internalsOf(bench.store);
      const { tasks, dues } = keys.queue("alpha");
      await bench.put({ id: "last", owner: "z", queue: "alpha" });
      // Names without tasks, none of which matches.
      const names = Array.from({ length: 5_100 }, (_, i) => `o/${i}`);
      const index = read === "list" ? tasks : (dues[0] as string);
      await link.client.zadd(index, ...names.flatMap((name) => [0, name]));
      const first = await bench.store.tasks[read]({ state: "scheduled" }, 100);
      expect(first).toEqual({ tasks: [], unreadable: [], cursor: expect.any(String) });
      const second = await bench.store.tasks[read]({ state: "scheduled" }, 100, first.cursor);
      expect([said(second.tasks), second.cursor]).toEqual([["alpha z/last"], undefined]);
    },
  );

  it("filters by the outcome of the last run, and reads the statistics of many", async () => {
    await seed();
    const { keys, link } = internalsOf(bench.store);
    const ended = async (queue: string, local: string, lastOutcome: string) => {
      await link.client.hset(keys.queue(queue).stats(local), {
        ends: `3 ${lastOutcome} - - - -`,
        [lastOutcome]: "2 7",
      });
      await link.client.zadd(keys.queue(queue).lastOutcome(lastOutcome), -1, local);
    };
    await ended("alpha", "b/x", "failed");
    await ended("beta", "a/y", "crashed");
    await ended("gamma", "a.b/z", "succeeded");
    const outcomes = new Set(["failed", "crashed"] as const);
    for (const limit of [1, 2, 100])
      expect(await pages({ outcomes }, limit)).toEqual(["alpha b/x", "beta a/y"]);
    expect(await pages({ outcomes }, 1, "listDue")).toEqual(["alpha b/x", "beta a/y"]);
    expect(await pages({ outcomes, owner: "a" }, 1)).toEqual(["beta a/y"]);

    await link.client.hset(keys.queue("alpha").task("b/x"), "open", "b.x@1.1");
    await link.client.hset(keys.queue("beta").task("a/y"), "open", "*");
    await link.client.zadd(keys.queue("beta").open("a/y"), 1, "a.y@1.1", 2, "a.y@1.2");
    await link.client.set(keys.queue("alpha").stats("b/y"), "someone else's");
    const names = ["beta a/y", "alpha b/x", "alpha b/y", "alpha b/z"].map((name) => {
      const [queue = "", owner = "", id = ""] = name.split(/[ /]/);
      return { queue, owner, id };
    });
    expect(await bench.store.runs.manyStats(names)).toEqual([
      { stored: { consecutiveFailures: "3", lastOutcome: "crashed", crashed: "2", failureMs: "7" }, open: 2 },
      { stored: { consecutiveFailures: "3", lastOutcome: "failed", failed: "2", failureMs: "7" }, open: 1 },
      { stored: {}, open: 0 },
      { stored: {}, open: 0 },
    ]);
  });

  /** Claims a task and ends its run, a second later. */
  async function run(name: TaskName, outcome: "succeeded" | "failed" | "nothing-to-do"): Promise<void> {
    const { runs, claims } = bench.store;
    const token = `${name.queue}${name.id}${await bench.store.serverTime()}`;
    await claims.trigger(name, { key: token, token, node: "n" }, "allow");
    const [id = ""] = await runs.open(name);
    const { fence } = await bench.begun(name, id);
    await bench.clock.advance(1_000);
    expect(await bench.settle(name, id, fence, { outcome })).toBe("OK");
  }

  it("keeps the last outcome of each task, by the end of its last run, from its first run to its deletion", async () => {
    for (const queue of ["alpha", "beta"])
      for (const id of ["x", "y", "z"]) await bench.put({ id, owner: "o", queue });
    const at = (queue: string, id: string) => ({ queue, owner: "o", id });
    const { tasks } = bench.store;
    const ended = async (filter: TaskFilter) => said((await tasks.listLast(filter, 100)).tasks);
    await run(at("alpha", "x"), "failed");
    await run(at("beta", "x"), "nothing-to-do");
    await run(at("alpha", "y"), "succeeded");
    expect(await ended({})).toEqual(["alpha o/y", "beta o/x", "alpha o/x"]);
    expect(await pages({}, 1, "listLast")).toEqual(["alpha o/y", "beta o/x", "alpha o/x"]);
    expect(await pages({ neverRan: true }, 2)).toEqual(["alpha o/z", "beta o/y", "beta o/z"]);
    expect(await ended({ outcomes: new Set(["nothing-to-do"]) })).toEqual(["beta o/x"]);
    // A run that had nothing to do does not replace an earlier one as the last run.
    await run(at("alpha", "x"), "nothing-to-do");
    await run(at("beta", "x"), "failed");
    expect(await ended({ outcomes: new Set(["nothing-to-do"]) })).toEqual([]);
    expect(await ended({ outcomes: new Set(["failed"]) })).toEqual(["beta o/x", "alpha o/x"]);
    const counts = { failed: 2, succeeded: 1 };
    expect(await tasks.counts({}, 0)).toMatchObject({ all: 6, neverRan: 3, outcomes: counts });
    expect(await tasks.counts({ owner: "o" }, 0)).toMatchObject({ all: 6, neverRan: 3, outcomes: counts });
    for (const queue of ["alpha", "beta"])
      for (const id of ["x", "y", "z"]) await tasks.delete(at(queue, id));
    expect((await bench.ownKeys()).filter((key) => key.includes(":~last:"))).toEqual([]);
  });

  it("counts the tasks of each filter, whichever way it counts", async () => {
    await seed();
    await bench.put({ id: "over", owner: "a", queue: "alpha", tags: ["a"], schedule: { at: START - 1 } });
    await bench.put({ id: "soon", owner: "a", queue: "alpha", tags: ["a"], schedule: { every: "1s" } });
    const { tasks } = bench.store;
    const dueBefore = START + 5_000;
    for (const filter of [
      {},
      { owner: "a" },
      { tag: "a" },
      { queue: "beta" },
      { queue: "alpha", owner: "a" },
    ]) {
      const found = async (more: TaskFilter) => (await pages({ ...filter, ...more }, 500)).length;
      expect([filter, await tasks.counts(filter, dueBefore)]).toMatchObject([
        filter,
        {
          all: await found({}),
          states: {
            scheduled: await found({ state: "scheduled" }),
            paused: await found({ state: "paused" }),
            finished: await found({ state: "finished" }),
          },
          overdue: await found({ dueBefore }),
          neverRan: await found({ neverRan: true }),
        },
      ]);
    }
    expect(await pages({ dueBefore }, 1, "listDue")).toEqual(["alpha a/soon"]);
  });

  it("finds tasks by a part of their name or type, in each order", async () => {
    await bench.put({ id: "Nightly", owner: "acme", queue: "alpha", type: "disk.Report" });
    await bench.put({ id: "nightly", owner: "b", queue: "beta", type: "mail", schedule: { every: "5s" } });
    await bench.put({ id: "x", owner: "acme", queue: "beta", type: "mail", tags: ["t"] });
    await bench.put({ id: "x.1", owner: "acme", queue: "beta", type: "mail" });
    const cases: [string, string[]][] = [
      ["night", ["alpha acme/Nightly", "beta b/nightly"]],
      ["acme/x", ["beta acme/x", "beta acme/x.1"]],
      ["report", ["alpha acme/Nightly"]],
      ["acme/x mail", ["beta acme/x"]],
      ["mail", ["beta acme/x", "beta acme/x.1", "beta b/nightly"]],
      ["none", []],
      // A match across the end of the type and the lower-case copy.
      ["report acme", []],
      ["%", []],
    ];
    for (const [text, names] of cases) {
      for (const limit of [1, 2, 100]) expect([text, await pages({ text }, limit)]).toEqual([text, names]);
      const due = await pages({ text }, 1, "listDue");
      expect([text, [...due].sort()]).toEqual([text, names]);
      if (names.includes("beta b/nightly")) expect(due[0]).toBe("beta b/nightly");
    }
    expect(await pages({ text: "x", tag: "t" }, 1)).toEqual(["beta acme/x"]);
    expect(await pages({ text: "x", owner: "b" }, 1)).toEqual([]);
    // Changes the type, and removes it.
    await bench.put({ id: "x", owner: "acme", queue: "beta", type: "sms" });
    expect(await pages({ text: "sms" }, 1)).toEqual(["beta acme/x"]);
    expect(await pages({ text: "mail" }, 100)).toEqual(["beta acme/x.1", "beta b/nightly"]);
    await bench.store.tasks.delete({ queue: "beta", owner: "acme", id: "x" });
    expect(await pages({ text: "acme/x" }, 1)).toEqual(["beta acme/x.1"]);
  });

  it("reads at most 16,000 names in a text search for a page, and continues there", async () => {
    const { keys, link } = internalsOf(bench.store);
    await bench.put({ id: "last", owner: "z", queue: "alpha" });
    const names = Array.from({ length: 16_100 }, (_, i) => `o/${i} t`);
    await link.client.zadd(keys.queue("alpha").tasks, ...names.flatMap((name) => [0, name]));
    const first = await bench.store.tasks.list({ text: "last" }, 100);
    expect(first).toEqual({ tasks: [], unreadable: [], cursor: expect.any(String) });
    const second = await bench.store.tasks.list({ text: "last" }, 100, first.cursor);
    expect([said(second.tasks), second.cursor]).toEqual([["alpha z/last"], undefined]);
  });

  it("does not show one owner's tasks to another by a cursor", async () => {
    await seed();
    for (const from of OWNERS) {
      const { cursor } = await bench.store.tasks.list({ owner: from }, 1);
      for (const owner of OWNERS) {
        const page = await bench.store.tasks.list({ owner }, 100, cursor);
        expect(new Set(page.tasks.map(({ definition }) => definition.owner))).toEqual(
          new Set(page.tasks.length > 0 ? [owner] : []),
        );
      }
    }
  });

  it.each([
    "",
    "x",
    "%%%",
    Buffer.from("one").toString("base64url"),
    Buffer.from(" a/b").toString("base64url"),
  ])("refuses the cursor %j", async (cursor) => {
    for (const read of ["list", "listDue"] as const) {
      await expect(bench.store.tasks[read]({}, 10, cursor)).rejects.toMatchObject({
        code: "INVALID_OPTION",
        field: "cursor",
        remedy: expect.any(String),
      });
    }
  });

  it("refuses a cursor of the other order", async () => {
    await seed();
    for (const [one, other] of [
      ["list", "listDue"],
      ["listDue", "list"],
    ] as const) {
      const { cursor } = await bench.store.tasks[one]({}, 1);
      await expect(bench.store.tasks[other]({}, 1, cursor)).rejects.toMatchObject({ field: "cursor" });
    }
  });

  it("continues at its position while tasks are added and deleted", async () => {
    const all = await seed();
    const first = await bench.store.tasks.list({}, 10);
    await bench.store.tasks.delete({ queue: "alpha", owner: "a", id: "x" });
    const last = first.tasks.at(-1)?.definition;
    await bench.store.tasks.delete({ queue: "alpha", owner: last?.owner as string, id: last?.id as string });
    await bench.put({ id: "new", owner: "zz", queue: "gamma" });
    const rest = await bench.store.tasks.list({}, 1_000, first.cursor);
    expect(said(rest.tasks)).toEqual([...all.slice(10), "gamma zz/new"]);
  });

  it("finds a task without its queue, unless several queues have one", async () => {
    await bench.put({ id: "one", queue: "beta", owner: "a" });
    await bench.put({ id: "one", queue: "beta", owner: "a.b" });
    await bench.put({ id: "two", queue: "alpha" });
    await bench.put({ id: "two", queue: "gamma" });
    const { tasks } = bench.store;
    const ref = (id: string, owner: string, queue?: string) => ({ id, owner, queue });
    expect(await tasks.locate(ref("one", "a"))).toEqual({ queue: "beta", owner: "a", id: "one" });
    await expect(tasks.locate(ref("one", "system"))).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
    await expect(tasks.locate(ref("two", "system"))).rejects.toMatchObject({
      code: "AMBIGUOUS_TASK",
      field: "queue",
      remedy: "Name the queue.",
      message: expect.stringContaining("alpha, gamma"),
    });
    expect(await tasks.locate(ref("two", "system", "gamma"))).toEqual({
      queue: "gamma",
      owner: "system",
      id: "two",
    });
    await expect(tasks.locate(ref("two", "system", "beta"))).rejects.toMatchObject({
      code: "TASK_NOT_FOUND",
    });
  });
});
