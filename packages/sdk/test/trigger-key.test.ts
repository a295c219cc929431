import { operatorOf } from "@carillon/ops";
import { Client } from "@carillon/sdk";
import { afterEach, beforeEach, expect, it } from "vitest";
import { onEveryEngine } from "../../../test/helpers.js";
import { Bench, QUEUE } from "../../store/test/bench.js";

onEveryEngine("a key of a trigger", (connection) => {
  const bench = Bench.use(connection);
  /** A process of its own: with its own connection and locks. */
  let others: Bench;
  let client: Client;
  let other: Client;
  beforeEach(async () => {
    others = await Bench.open(connection(), { namespace: bench.store.namespace });
    client = new Client({ store: bench.store });
    other = new Client({ store: others.store });
  });
  afterEach(async () => {
    await Promise.all([client.close(), other.close()]);
    await others.close();
  });
  const key = "deploy-42";
  const keys = async () => (await bench.jobs()).map(({ data }) => data.occurrence.key as string);

  it("makes one run, however many processes call with it at once", async () => {
    await bench.put({ id: "t", overlap: "allow" });
    const calls = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? client : other).trigger("t", { key }));
    const answers = await Promise.all(calls);
    const [run] = await client.runs.list("t");
    for (const answer of answers)
      expect(answer).toMatchObject({ outcome: "enqueued", run: run?.id, enqueued: run?.enqueued });
    expect(answers.filter((answer) => "repeated" in answer && !answer.repeated)).toHaveLength(1);
    expect(await keys()).toEqual([`${QUEUE}/system/t#${key}`]);
    const { changes } = await operatorOf(client).changes.list();
    expect(changes.filter(({ kind }) => kind === "trigger")).toHaveLength(1);
  });

  it("is known after others, and after its run and record are deleted", async () => {
    await bench.put({ id: "t", overlap: "allow", retention: { successes: 0 } });
    const first = await client.trigger("t", { key });
    for (let n = 0; n < 40; n++) await client.trigger("t", n % 2 === 0 ? {} : { key: `other-${n}` });
    await bench.workAll();
    await bench.clock.advance(60_000);
    await bench.reconcile();
    await bench.clock.advance(3_600_000);
    await bench.reconcile();
    expect(await client.runs.list("t")).toEqual([]);
    expect(await other.trigger("t", { key })).toEqual({ ...first, repeated: true });
  });

  it("is known while its occurrence waits, and after that has run", async () => {
    await bench.put({ id: "t", overlap: "queue-one", schedule: { every: "1h" } });
    await client.trigger("t");
    const queued = { outcome: "queued", key: `${QUEUE}/system/t#${key}` };
    expect(await client.trigger("t", { key })).toMatchObject({ ...queued, repeated: false });
    expect(await other.trigger("t", { key })).toMatchObject({ ...queued, repeated: true });
    await bench.workAll();
    await bench.reconcile();
    await bench.clock.advance(10_000);
    await bench.reconcile();
    await bench.claim("t", "next");
    await bench.workAll();
    expect(await other.trigger("t", { key })).toMatchObject({ ...queued, repeated: true });
    expect((await keys()).filter((one) => one.endsWith(key))).toHaveLength(1);
  });

  it("holds for its task alone", async () => {
    await bench.put({ id: "t", overlap: "allow" });
    await bench.put({ id: "u", overlap: "allow" });
    await client.trigger("t", { key });
    expect(await operatorOf(client).tasks.triggerMany({ queue: QUEUE, key })).toMatchObject({ count: 1 });
    expect(await operatorOf(client).tasks.triggerMany({ queue: QUEUE, key })).toMatchObject({
      count: 0,
      refused: { count: 0 },
    });
    expect((await keys()).sort()).toEqual([`${QUEUE}/system/t#${key}`, `${QUEUE}/system/u#${key}`]);
  });

  it("is not used up by a trigger that was skipped", async () => {
    await bench.put({ id: "t" });
    await client.trigger("t");
    expect(await client.trigger("t", { key })).toMatchObject({ outcome: "skipped" });
    expect(await client.trigger("t", { key, overlap: "allow" })).toMatchObject({
      outcome: "enqueued",
      repeated: false,
    });
  });

  it("is answered during a freeze", async () => {
    await bench.put({ id: "t", overlap: "allow" });
    const first = await client.trigger("t", { key });
    await operatorOf(client).freezes.put({ all: true });
    expect(await other.trigger("t", { key })).toEqual({ ...first, repeated: true });
    await expect(other.trigger("t", { key: "other" })).rejects.toMatchObject({ code: "FROZEN" });
  });

  it("is known after the clock went back beyond the creation of its task", async () => {
    await bench.put({ id: "t", overlap: "allow" });
    await bench.clock.advance(-60_000);
    const first = await client.trigger("t", { key });
    expect(await other.trigger("t", { key })).toEqual({ ...first, repeated: true });
    expect(await keys()).toHaveLength(1);
  });

  it("is unknown to a task that was put again", async () => {
    await bench.put({ id: "t", overlap: "allow" });
    await client.trigger("t", { key });
    await client.delete("t");
    await bench.clock.advance(1);
    await bench.put({ id: "t", overlap: "allow" });
    expect(await client.trigger("t", { key })).toMatchObject({ outcome: "enqueued", repeated: false });
  });

  it.each(["", "a b", "ümlaut", "x".repeat(129)])("is refused as %j", async (wrong) => {
    const refused = { code: "INVALID_NAME", field: "key" };
    await expect(client.trigger("t", { key: wrong })).rejects.toMatchObject(refused);
    await expect(operatorOf(client).tasks.triggerMany({ queue: QUEUE, key: wrong })).rejects.toMatchObject(
      refused,
    );
  });
});
