import type { TaskFilter } from "@carillon/store";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Bench } from "./bench.js";
import { onEveryEngine } from "./engines.js";

const QUEUES = ["alpha", "beta", "gamma"];
const OWNERS = ["a", "a-", "a-b", "a.b", "aa", "b", "system"];

onEveryEngine("list and locate", (connection) => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await Bench.open(connection(), { queues: QUEUES });
  });
  afterEach(async () => {
    await bench.close();
  });

  /** Every owner has three tasks in every queue. */
  async function seed(): Promise<string[]> {
    const all: string[] = [];
    for (const queue of QUEUES) {
      for (const owner of OWNERS) {
        for (const id of ["x", "y", "z"]) {
          await bench.put({ id, owner, queue, tags: [owner, `only-${id}`], enabled: id !== "z" });
          all.push(`${queue} ${owner}/${id}`);
        }
      }
    }
    return all.sort();
  }
  const said = (tasks: readonly { definition: { queue: string; owner: string; id: string } }[]) =>
    tasks.map(({ definition: { queue, owner, id } }) => `${queue} ${owner}/${id}`);

  /** All pages, each no longer than `limit`. */
  async function pages(filter: TaskFilter, limit: number): Promise<string[]> {
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await bench.store.tasks.list(filter, limit, cursor);
      expect(page.tasks.length).toBeLessThanOrEqual(limit);
      found.push(...said(page.tasks));
      cursor = page.cursor;
    } while (cursor !== undefined);
    return found;
  }

  it("pages through everything, none twice, none missing, in one order", async () => {
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

  it("a cursor of one owner's page shows nothing of it to another", async () => {
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
    await expect(bench.store.tasks.list({}, 10, cursor)).rejects.toMatchObject({
      code: "INVALID_OPTION",
      field: "cursor",
      remedy: expect.any(String),
    });
  });

  it("goes on where it was, though tasks come and go between the pages", async () => {
    const all = await seed();
    const first = await bench.store.tasks.list({}, 10);
    await bench.store.tasks.delete({ queue: "alpha", owner: "a", id: "x" });
    const last = first.tasks.at(-1)?.definition;
    await bench.store.tasks.delete({ queue: "alpha", owner: last?.owner as string, id: last?.id as string });
    await bench.put({ id: "new", owner: "zz", queue: "gamma" });
    const rest = await bench.store.tasks.list({}, 1_000, first.cursor);
    expect(said(rest.tasks)).toEqual([...all.slice(10), "gamma zz/new"]);
  });

  it("finds a task whose queue was not said, unless several have it", async () => {
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
      remedy: "Say which queue.",
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
