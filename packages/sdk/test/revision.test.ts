import { Client, defineTask } from "@carillon/sdk";
import { internalsOf } from "@carillon/store/internal";
import { afterEach, beforeEach, expect, it, test } from "vitest";
import { z } from "zod";
import { onEveryEngine } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "../../store/test/bench.js";

const count = defineTask("count", {
  queue: QUEUE,
  payload: z.object({ n: z.number() }),
  handler: () => {},
});

onEveryEngine("a put on a condition", (connection) => {
  const bench = Bench.use(connection);
  let client: Client;
  beforeEach(async () => {
    client = new Client({ store: bench.store });
  });
  afterEach(async () => {
    await client.close();
  });

  const task = (rest: object = {}) => ({
    id: "t",
    type: "noop",
    queue: QUEUE,
    schedule: { every: "10s" },
    ...rest,
  });
  const revision = async () => (await client.get("t")).revision;
  const refused = { code: "CONFLICT", field: "ifRevision", remedy: expect.stringContaining("again") };

  it("changes a task only if it was not changed since it was read", async () => {
    await client.put(task());
    const first = await revision();
    expect(await client.put(task({ priority: 1 }), { ifRevision: first })).toMatchObject({
      outcome: "updated",
    });
    const second = await revision();
    expect(second).not.toBe(first);
    await expect(client.put(task({ priority: 2 }), { ifRevision: first })).rejects.toMatchObject(refused);
    expect(await client.get("t")).toMatchObject({ priority: 1, revision: second });
    // Sends the put again, as after a lost answer.
    expect(await client.put(task({ priority: 1 }), { ifRevision: first })).toMatchObject({
      outcome: "unchanged",
    });
    expect(await client.put(task(), { ifRevision: second })).toMatchObject({ outcome: "updated" });
    // It is the definition of the first put again, but someone has changed it since.
    expect(await revision()).not.toBe(first);
    await expect(client.put(task({ priority: 2 }), { ifRevision: first })).rejects.toMatchObject(refused);
  });

  it("tells nothing about the definition", async () => {
    await client.put(task({ payload: { pin: "1234" } }));
    const { generation } = await client.get("t");
    expect(await revision()).toBe(String(generation));
    const pinned = await client.enqueue(count, { n: 1 }, { id: "now" });
    expect((await client.get(pinned.task)).revision).toMatch(/^\d{16}$/);
  });

  it("stays as it is at a pause, a trigger and a decided time", async () => {
    await client.put(task());
    const first = await revision();
    await bench.clock.set(START + 10_000);
    await client.trigger("t");
    await client.pause("t");
    expect(await revision()).toBe(first);
    expect(await client.put(task({ schedule: { every: "20s" } }), { ifRevision: first })).toMatchObject({
      outcome: "updated",
      state: "paused",
    });
    expect((await client.list()).tasks).toMatchObject([{ revision: await revision() }]);
  });

  it("does not restore a deleted task", async () => {
    await client.put(task());
    const first = await revision();
    await client.delete("t");
    await expect(client.put(task({ priority: 1 }), { ifRevision: first })).rejects.toMatchObject(refused);
    expect(await client.count()).toBe(0);
    expect(await client.put(task(), { ifRevision: "absent" })).toMatchObject({ outcome: "created" });
    expect(await client.put(task(), { ifRevision: "absent" })).toMatchObject({ outcome: "unchanged" });
    const again = client.put(task({ priority: 1 }), { ifRevision: "absent" });
    await expect(again).rejects.toMatchObject({ ...refused, message: expect.stringContaining("already") });
    expect(await client.get("t")).toMatchObject({ priority: 0 });
  });

  it("takes its condition as last argument with a task type", async () => {
    const typed = { id: "t", schedule: { every: "10s" } };
    await client.put(count, { ...typed, payload: { n: 1 } });
    const first = await revision();
    await client.put(count, { ...typed, payload: { n: 2 } }, { ifRevision: first });
    const put = client.put(count, { ...typed, payload: { n: 3 } }, { ifRevision: first });
    await expect(put).rejects.toMatchObject(refused);
    expect(await client.get("t")).toMatchObject({ payload: { n: 2 } });
  });

  it("returns every field of a put, and no others", async () => {
    await client.put(task({ tags: ["a"], enabled: false, description: undefined }));
    await client.update("t", (now) => {
      const policies = { overlap: "skip", catchUp: "one" };
      const stored = { ...task({ tags: ["a"], enabled: false }), owner: "system", payload: {}, priority: 0 };
      expect(now).toStrictEqual({ ...stored, ...policies });
      return now;
    });
  });

  it("loses none of many concurrent changes", async () => {
    await client.put(task({ payload: { n: 0 } }));
    const more = () =>
      client.update("t", (now) => ({ ...now, payload: { n: (now.payload as { n: number }).n + 1 } }));
    await Promise.all(Array.from({ length: 8 }, more));
    expect(await client.get("t")).toMatchObject({ payload: { n: 8 }, schedule: { every: "10s" } });
  });

  it("calls the change again with the definition that another put meanwhile", async () => {
    await client.put(task({ tags: ["a"], overlap: "allow" }));
    const seen: (number | undefined)[] = [];
    const put = await client.update("t", async (now) => {
      seen.push(now.priority);
      if (seen.length === 1) await client.put(task({ tags: ["a"], overlap: "allow", priority: 3 }));
      return { ...now, description: "mine" };
    });
    expect(seen).toEqual([0, 3]);
    expect(put.outcome).toBe("updated");
    const after = { priority: 3, description: "mine", tags: ["a"], overlap: "allow" };
    expect(await client.get("t")).toMatchObject(after);
  });

  it("is applied even if it was made by another client and undone by a third", async () => {
    await client.put(task({ payload: { n: 0 } }));
    const { link } = internalsOf(bench.store);
    const { run } = link;
    let asked = 0;
    await client.update("t", async (now) => {
      asked += 1;
      if (asked === 1) {
        await client.put(task({ payload: { n: 1 } }));
        link.run = async (...sent) => {
          const answer = await run.apply(link, sent);
          if (sent[0].name === "put") {
            link.run = run;
            await client.put(task({ payload: { n: 0 } }));
          }
          return answer;
        };
      }
      return { ...now, payload: { n: (now.payload as { n: number }).n + 1 } };
    });
    expect(asked).toBe(2);
    expect(await client.get("t")).toMatchObject({ payload: { n: 1 } });
    expect(await client.update("t", (now) => now)).toMatchObject({ outcome: "unchanged" });
  });

  it("fails with a conflict if other clients always win", async () => {
    await client.put(task());
    let others = 0;
    const change = client.update("t", async (now) => {
      await client.put(task({ priority: ++others }));
      return { ...now, description: "mine" };
    });
    await expect(change).rejects.toMatchObject({ code: "CONFLICT" });
    expect(others).toBe(10);
  });

  it("is not called again after another error", async () => {
    await client.put(task());
    let asked = 0;
    const change = client.update("t", (now) => {
      asked += 1;
      return { ...now, priority: -1 };
    });
    await expect(change).rejects.toMatchObject({ code: "INVALID_TASK", field: "priority" });
    expect(asked).toBe(1);
  });

  it("keeps a task that runs once, unless its new schedule repeats", async () => {
    const soon = { id: "t", at: START + 60_000 };
    const later = { id: "t", at: START + 90_000 };
    await client.enqueue(count, { n: 1 }, soon);
    await client.update("t", (now) => ({ ...now, description: "mine" }));
    // For a task that is not a one-off, `enqueue` would be refused.
    expect(await client.enqueue(count, { n: 2 }, later)).toMatchObject({ at: later.at });
    await client.update("t", (now) => ({ ...now, schedule: { every: "1h" } }));
    await expect(client.enqueue(count, { n: 3 }, soon)).rejects.toMatchObject({ code: "CONFLICT" });
  });

  it("never moves or creates a task", async () => {
    await client.put(task());
    for (const field of ["queue", "owner", "id"]) {
      const moved = client.update("t", (now) => ({ ...now, [field]: "u" }));
      await expect(moved).rejects.toMatchObject({ code: "INVALID_NAME", field });
    }
    await expect(client.update("u", (now) => now)).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
    const deleted = client.update("t", async (now) => {
      await client.delete("t");
      return { ...now, priority: 1 };
    });
    await expect(deleted).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
    expect(await client.count()).toBe(0);
  });
});

test.each([
  [{ ifRevision: "" }, "ifRevision"],
  [{ ifRevision: "W/abc" }, "ifRevision"],
  [{ ifRevision: "1".repeat(21) }, "ifRevision"],
  [{ ifRevision: 7 as unknown as string }, "ifRevision"],
  [{ ifMatch: "x" } as object, "ifMatch"],
])("a put with %j is refused", async (options, field) => {
  const client = new Client({ connection: "redis://127.0.0.1:1" });
  const put = client.put({ id: "t", type: "noop", queue: "q", schedule: { every: "10s" } }, options);
  await expect(put).rejects.toMatchObject({ code: "INVALID_OPTION", field });
  await client.close();
});
