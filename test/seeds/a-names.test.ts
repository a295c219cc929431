import { type AnswerTo, operatorOf } from "@carillon/ops";
import { Client, defineTask, type JobData, nameOf, type PutResult, textOfName } from "@carillon/sdk";
import { describe, expect, test } from "vitest";
import { explained } from "../../packages/ops/test/in-words.js";
import { enqueued } from "../helpers.js";
import { anything, Stand } from "./harness.js";

type Upcoming = AnswerTo<"occurrences.upcoming">["upcoming"][number];

const stand = Stand.use();
const bell = { id: "t", type: "ring", queue: "bells", schedule: { every: "1h" } };

describe("A10 owners are isolated from each other", () => {
  async function twoOwners(): Promise<{ all: Client; acme: Client; beta: Client; run: string }> {
    const [all, acme, beta] = [
      stand.client(),
      stand.client({ owner: "acme" }),
      stand.client({ owner: "beta" }),
    ];
    await acme.put({ ...bell, payload: { whose: "acme" } });
    await beta.put({ ...bell, payload: { whose: "beta" } });
    await beta.put({ ...bell, id: "only", payload: { whose: "beta" } });
    const triggered = enqueued(await beta.trigger("only"));
    return { all, acme, beta, run: triggered.run };
  }

  test("two owners with a task of the same id see their own", async () => {
    const { all, acme, beta } = await twoOwners();
    expect(await acme.get("t")).toMatchObject({ owner: "acme", payload: { whose: "acme" } });
    expect(await beta.get("t")).toMatchObject({ owner: "beta", payload: { whose: "beta" } });
    const names = async (client: Client) =>
      (await client.list()).tasks.map(({ owner, id }) => `${owner}/${id}`);
    expect(await names(acme)).toEqual(["acme/t"]);
    expect(await names(beta)).toEqual(["beta/only", "beta/t"]);
    expect(await names(all)).toEqual(["acme/t", "beta/only", "beta/t"]);
    expect((await acme.list({ owner: "beta" })).tasks).toEqual([]);
    expect((await operatorOf(acme).occurrences.upcoming()).upcoming.map(({ task }) => task.owner)).toEqual([
      "acme",
    ]);
    expect(
      new Set(
        (await operatorOf(acme).occurrences.upcoming({ within: "3h" })).upcoming.map(
          ({ task }) => task.owner,
        ),
      ),
    ).toEqual(new Set(["acme"]));
  });

  test("tasks of one id and many owners, due together, are each enqueued", async () => {
    const kit = await stand.kit({ worker: false });
    const owners = Array.from({ length: 24 }, (_, n) => `owner-${n}`).sort();
    await kit.client.putMany(owners.map((owner) => ({ ...bell, owner, schedule: { every: "1m" } })));
    await kit.advance("1m");
    const jobs = await stand.queue("bells").getWaiting();
    expect(jobs.map(({ data }) => data.occurrence.owner).sort()).toEqual(owners);
    for (const owner of owners) await kit.expect(`${owner}/t`).firedAt(["01:00"]);
  });

  test("many tasks of another owner do not hide one's own from upcoming", async () => {
    const [acme, all] = [stand.client({ owner: "acme" }), stand.client()];
    const now = await stand.time();
    await acme.put({ ...bell, id: "own", schedule: { at: now + 3_600_000 } });
    const soon = { at: now + 600_000 };
    const crowd = Array.from({ length: 30 }, (_, n) => ({
      ...bell,
      id: `x${n}`,
      owner: "beta",
      schedule: soon,
    }));
    await all.putMany(crowd);
    const names = (upcoming: Upcoming[]) => upcoming.map(({ task }) => `${task.owner}/${task.id}`);
    expect(names((await operatorOf(acme).occurrences.upcoming()).upcoming)).toEqual(["acme/own"]);
    expect(
      names((await operatorOf(acme).occurrences.upcoming({ within: "2h", limit: 20 })).upcoming),
    ).toEqual(["acme/own"]);
  });

  test("a task of another owner is not found by any call", async () => {
    const { all, acme, run } = await twoOwners();
    const before = await all.get("beta/only");
    const named = (ref: string) => (ref.includes("/") ? { owner: "beta", id: "only" } : { id: ref });
    const acts: ((ref: string | { id: string; owner: string; queue: string }) => Promise<unknown>)[] = [
      (ref) => acme.get(ref),
      (ref) => acme.delete(ref),
      (ref) => acme.pause(ref),
      (ref) => acme.resume(ref),
      (ref) => acme.trigger(ref),
      (ref) => acme.runs.list(ref),
      (ref) => acme.runs.skips(ref),
      (ref) => acme.runs.stats(ref),
      (ref) => acme.runs.journal({ task: ref }),
      (ref) => explained(acme, ref, before.nextExecution ?? 0),
      (ref) =>
        operatorOf(acme).backfills.start({ ...(typeof ref === "string" ? named(ref) : ref), from: 0, to: 0 }),
    ];
    for (const act of acts) {
      for (const ref of ["beta/only", "only", { id: "only", owner: "beta", queue: "bells" }]) {
        await expect(act(ref)).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
      }
    }
    await expect(acme.runs.get(run)).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
    await expect(acme.runs.cancel(run)).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
    await expect(acme.put({ ...bell, owner: "beta" })).rejects.toMatchObject({
      code: "FORBIDDEN",
      field: "owner",
    });
    await expect(operatorOf(acme).tasks.deleteMany({ owner: "beta" })).rejects.toMatchObject({
      code: "FORBIDDEN",
    });
    expect(await operatorOf(acme).tasks.deleteMany({ queue: "bells" })).toMatchObject({ count: 1 });
    expect(await all.get("beta/only")).toEqual(before);
    expect((await all.list({ owner: "beta" })).tasks).toHaveLength(2);
  });

  test("a bound client finds no backfill of another owner, and deletes no queue", async () => {
    const { all, acme, beta } = await twoOwners();
    const range = { from: "2024-01-01T00:00:00Z", to: "2024-01-01T02:00:00Z" };
    const { id, total } = await operatorOf(beta).backfills.start({ id: "only", ...range });
    expect(total).toBe(3);
    const missing = { code: "BACKFILL_NOT_FOUND" };
    await expect(operatorOf(acme).backfills.get({ id: id as string })).rejects.toMatchObject(missing);
    await expect(operatorOf(acme).backfills.cancel({ id: id as string })).rejects.toMatchObject(missing);
    await expect(operatorOf(acme).queues.delete({ queue: "bells" })).rejects.toMatchObject({
      code: "FORBIDDEN",
      field: "owner",
    });
    await expect(operatorOf(acme).tasks.pauseMany({ queue: "bells", owner: "beta" })).rejects.toMatchObject({
      code: "FORBIDDEN",
    });
    expect(await operatorOf(beta).backfills.get({ id: id as string })).toMatchObject({
      id,
      task: { owner: "beta", id: "only" },
    });
    expect((await operatorOf(beta).backfills.cancel({ id: id as string })).changed).toBe(true);
    expect(await all.count()).toBe(3);
  });

  test("the journal of a bound client has its own runs only", async () => {
    const ring = defineTask("ring", { queue: "bells", payload: anything, handler: () => {} });
    const kit = await stand.kit({ types: [ring] });
    for (const owner of ["acme", "beta"]) {
      await kit.client.put(ring, { owner, id: "t", schedule: { every: "1h" }, payload: {} });
    }
    await kit.advance("2h");
    expect((await kit.client.runs.journal()).runs).toHaveLength(4);
    const acme = new Client({ store: kit.store, owner: "acme" });
    const owners = (await acme.runs.journal()).runs.map(({ task }) => task.owner);
    expect(owners).toEqual(["acme", "acme"]);
  });

  test("a bound client counts its own tasks, and lists only their queues", async () => {
    const { all, acme, beta } = await twoOwners();
    await beta.put({ ...bell, queue: "gongs" });
    // Names next to the owner's in the order of the index.
    await all.putMany(["acm", "acme-", "acme.a", "acme0", "acmea"].map((owner) => ({ ...bell, owner })));
    const tasks = Array.from({ length: 30 }, (_, n) => ({ ...bell, id: `t${n}` }));
    await acme.putMany(tasks);
    expect([await all.count(), await acme.count(), await beta.count()]).toEqual([39, 31, 3]);
    expect([await acme.count({ queue: "gongs" }), await beta.count({ queue: "gongs" })]).toEqual([0, 1]);
    expect([
      (await operatorOf(all).names.list({ of: "queue" })).names,
      (await operatorOf(acme).names.list({ of: "queue" })).names,
      (await operatorOf(beta).names.list({ of: "queue" })).names,
    ]).toEqual([["bells", "gongs"], ["bells"], ["bells", "gongs"]]);
    expect((await operatorOf(stand.client({ owner: "none" })).names.list({ of: "queue" })).names).toEqual([]);
  });

  test("namespaces share nothing", async () => {
    await twoOwners();
    const other = stand.client({ namespace: `${stand.namespace}-other` });
    await expect(other.get("acme/t")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
    expect(await other.count()).toBe(0);
  });

  test("the bound command line does not find another owner's tasks", async () => {
    await twoOwners();
    const own = await stand.carillon(["show", "t", "--owner", "acme", "--json"]);
    expect(own.code).toBe(0);
    expect(own.stdout).toContain('"whose":"acme"');
    for (const args of [
      ["show", "only"],
      ["rm", "only"],
      ["show", "beta/only"],
    ]) {
      const { code, stderr } = await stand.carillon([...args, "--owner", "acme", "--json"]);
      expect(code).toBe(3);
      expect(JSON.parse(stderr)).toMatchObject({ error: { code: "TASK_NOT_FOUND" } });
    }
  });
});

describe("A11 one task per owner and id, put atomically", () => {
  test("ten parallel puts of one task make one task", async () => {
    const clients = Array.from({ length: 10 }, () => stand.client({ owner: "acme" }));
    const puts = await Promise.all(clients.map((client) => client.put(bell)));
    const outcomes = puts.map(({ outcome }) => outcome).sort();
    expect(outcomes).toEqual(["created", ...Array.from({ length: 9 }, () => "unchanged")]);
    expect(new Set(puts.map(({ nextExecution }) => nextExecution)).size).toBe(1);
    expect(await clients[0]?.count()).toBe(1);
    const { upcoming } = await operatorOf(clients[0] as Client).occurrences.upcoming();
    expect(upcoming).toHaveLength(1);
  });

  test("ten parallel puts of different definitions store one of them, whole, with one due time", async () => {
    const clients = Array.from({ length: 10 }, () => stand.client({ owner: "acme" }));
    const versions = clients.map((_, n) => ({
      ...bell,
      schedule: { every: `${n + 2}h` },
      payload: { version: n },
      tags: [`v${n}`],
      priority: n,
      subject: `version ${n}`,
    }));
    const puts = await Promise.all(
      clients.map((client, n) => client.put(versions[n] as (typeof versions)[number])),
    );
    expect(puts.filter(({ outcome }: PutResult) => outcome === "created")).toHaveLength(1);
    expect(puts.filter(({ outcome }: PutResult) => outcome === "updated")).toHaveLength(9);

    const [client] = clients as [Client];
    expect(await client.count()).toBe(1);
    const task = await client.get("t");
    const won = (task.payload as { version: number }).version;
    expect(task).toMatchObject(versions[won] as object);
    const hours = (won + 2) * 3_600_000;
    expect(task.nextExecution).toBe(Math.floor(task.updated / hours + 1) * hours);
    expect((await operatorOf(client).occurrences.upcoming()).upcoming).toMatchObject([
      { task: { id: "t" }, due: task.nextExecution },
    ]);
    // The task is not found by the tag of a rejected version either.
    for (const [n] of versions.entries()) {
      expect((await client.list({ tag: `v${n}` })).tasks).toHaveLength(n === won ? 1 : 0);
    }
  });
});

describe("A21 an account of any name is an owner", () => {
  test("whose task runs under it, is found by it, and is nobody else's", async () => {
    const accounts = [
      "coop/ada",
      "coop_2Fada",
      "ada@example.org",
      "auth0|5f7c",
      "Überstunden",
      "coop",
      "a:b c",
    ];
    const ring = defineTask("ring", { queue: "bells", payload: anything, handler: () => {} });
    const kit = await stand.kit({ types: [ring] });
    for (const account of accounts)
      await kit.client.put({
        ...bell,
        owner: nameOf(account),
        payload: { account },
        schedule: { every: "1m" },
      });
    await kit.advance("1m");
    for (const account of accounts) {
      const own = stand.client({ owner: nameOf(account) });
      const { tasks } = await own.list();
      expect(tasks).toMatchObject([{ payload: { account }, lastStatus: { outcome: "succeeded" } }]);
      expect(tasks.map(({ owner }) => textOfName(owner))).toEqual([account]);
    }
    expect(await kit.client.count()).toBe(accounts.length);
  });
});

describe("A11 a put compares what it has read", () => {
  test("parallel puts leave the due time of the schedule that is stored, and a pause", async () => {
    const clients = Array.from({ length: 10 }, () => stand.client({ owner: "acme" }));
    const [client] = clients as [Client];
    await client.put(bell);
    for (let round = 1; round <= 5; round++) {
      // Half of them leave the schedule as they have read it, and so its due time.
      await Promise.all(
        clients.map((one, n) =>
          one.put({ ...bell, schedule: { every: n % 2 === 0 ? "7h" : "1h" }, payload: { round, n } }),
        ),
      );
      const { schedule, nextExecution, updated } = await client.get("t");
      const every = ("every" in schedule && schedule.every === "7h" ? 7 : 1) * 3_600_000;
      expect(nextExecution).toBe(Math.floor(updated / every + 1) * every);
      await client.put(bell);
    }
    await client.pause("t");
    await Promise.all(clients.map((one, n) => one.put({ ...bell, payload: { n } })));
    expect(await client.get("t")).toMatchObject({ state: "paused", nextExecution: undefined });
  });
});

describe("A12 subject, submitter, group, priority and payload are stored and passed to the handler", () => {
  const given = {
    subject: "Ring the noon bell",
    submitter: "quasimodo",
    group: "tower",
    priority: 7,
    payload: { bells: ["Marie", "Emmanuel"], times: 12, soft: false, note: null, "Ü ": "✓" },
  };

  test("they are in the task, the job, the handler's context and the command line", async () => {
    const heard: unknown[] = [];
    const ring = defineTask("ring", {
      queue: "bells",
      payload: anything,
      handler(payload, { occurrence: { subject, submitter, group } }) {
        heard.push({ subject, submitter, group, payload });
      },
    });
    const kit = await stand.kit({ types: [ring] });
    await kit.worker.pause();
    await kit.client.put(ring, { id: "t", schedule: { every: "1m" }, ...given });
    expect(await kit.client.get("t")).toMatchObject(given);
    const { stdout } = await stand.carillon(["show", "t", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject(given);

    await kit.advance("1m");
    const [job] = await stand.queue("bells").getPrioritized();
    const { priority, payload, ...references } = given;
    expect(job?.opts.priority).toBe(priority);
    const data = job?.data as JobData;
    expect(data.payload).toEqual(payload);
    expect(data.occurrence).toMatchObject(references);

    await kit.worker.resume();
    await kit.advance("1s");
    expect(heard).toEqual([{ ...references, payload }]);
  });

  test("a higher priority runs first", async () => {
    const done: string[] = [];
    const ring = defineTask("ring", {
      queue: "bells",
      payload: anything,
      handler: (_payload, { occurrence }) => void done.push(occurrence.task),
    });
    const kit = await stand.kit({ types: [ring], concurrency: 1 });
    await kit.worker.pause();
    for (const [id, priority] of [
      ["low", 9],
      ["middle", 5],
      ["high", 1],
    ] as const) {
      await kit.client.put(ring, { id, priority, schedule: { at: kit.now + 10_000 }, payload: {} });
    }
    await kit.advance("10s");
    await kit.worker.resume();
    await kit.advance("1s");
    expect(done).toEqual(["high", "middle", "low"]);
  });
});
