import { Client } from "@carillon/sdk";
import { Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ownRedis } from "../../../test/helpers.js";
import { examined } from "../../ops/test/in-words.js";

const QUEUE = "bells";
/** Tasks by their defect; each has the same definition. */
const BROKEN = {
  schedule: ["schedule", "{{{"],
  due: ["due", "tuesday"],
  newer: ["v", "99"],
} as const;
const NAMES = ["due", "gen", "list", "newer", "schedule"];

describe("tasks whose data cannot be read", () => {
  const redis = ownRedis({ appendonly: true, config: { "slowlog-log-slower-than": -1 } });
  let store: Store;
  let client: Client;
  const task = (id: string) => ({ id, type: "ring", queue: QUEUE, schedule: { every: "1d" as const } });
  beforeAll(async () => {
    store = new Store({ connection: redis.url });
    client = new Client({ store });
  });
  afterAll(async () => {
    await store.close();
  });
  beforeEach(async () => {
    await store.serverTime();
    const { link, keys } = internalsOf(store);
    const key = (id: string) => keys.queue(QUEUE).task(`system/${id}`);
    await link.client.flushall();
    await client.putMany([task("sound"), ...NAMES.map(task)]);
    for (const [id, [field, value]] of Object.entries(BROKEN)) await link.client.hset(key(id), field, value);
    await link.client.hdel(key("gen"), "gen");
    await link.client.set(key("list"), "foreign");
  });
  const ids = (names: readonly { id: string }[] = []) => names.map(({ id }) => id);

  it("are named beside the list, also page by page, and by name or next time", async () => {
    const { tasks, unreadable } = await client.list();
    expect([ids(tasks), ids(unreadable)]).toEqual([["sound"], NAMES]);
    expect(unreadable?.[0]).toEqual({ queue: QUEUE, owner: "system", id: "due" });
    expect(ids((await client.list({ sort: "next" })).unreadable).sort()).toEqual(NAMES);
    expect(ids((await client.list({ search: "sche" })).unreadable)).toEqual(["schedule"]);
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await client.list({ limit: 2, cursor });
      found.push(...ids(page.tasks), ...ids(page.unreadable));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(found.sort()).toEqual([...NAMES, "sound"].sort());
    const owner = new Client({ store, owner: "acme" });
    expect(await owner.list()).toEqual({ tasks: [], cursor: undefined });
  });

  it("are named by the list of overdue tasks", async () => {
    const { link, keys } = internalsOf(store);
    for (const due of keys.queue(QUEUE).dues)
      await link.client.zadd(due, "XX", 1, "system/newer", 1, "system/due");
    const { tasks, unreadable } = await client.list({ overdue: true });
    expect([ids(tasks), ids(unreadable)]).toEqual([[], ["due", "newer"]]);
  });

  it("are findings of the doctor, with their remedies", async () => {
    const { state, findings } = await examined(client);
    expect(state).toBe("errors");
    const found = findings.filter(({ code }) => code === "UNREADABLE");
    expect(found.map(({ task }) => task?.id).sort()).toEqual(NAMES);
    const about = (id: string) => found.find(({ task }) => task?.id === id);
    expect(about("newer")).toMatchObject({
      message: "system/newer was written in format 99, which is newer than this version supports.",
      remedy: expect.stringContaining("Upgrade Carillon"),
    });
    expect(about("due")).toMatchObject({
      message: "system/due holds corrupt or foreign data.",
      remedy: expect.stringContaining("Delete it and put it again"),
    });
    expect(about("list")?.remedy).toContain("Delete it and put it again");
  });

  it.each(Object.keys(BROKEN))("refuse a put over %s with the remedy, which works", async (id) => {
    await expect(client.put(task(id))).rejects.toMatchObject({ code: "UNSUPPORTED_FORMAT" });
    await client.delete({ id, queue: QUEUE });
    await client.put(task(id));
    expect(ids((await client.list()).tasks)).toContain(id);
  });
});
