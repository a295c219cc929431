import { type InputTo, operatorOf } from "@carillon/ops";
import { type Client, defineTask, Worker } from "@carillon/sdk";
import type { RunItem } from "@carillon/sdk/internal";
import { eventually } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { gate, SILENT } from "../helpers.js";
import { anything, PATIENCE, Stand } from "./harness.js";

const stand = Stand.use();

async function trigger(client: Client, type: string): Promise<string> {
  await client.put({ id: "t", type, queue: "bells", schedule: { every: "365d" } });
  const triggered = await client.trigger("t");
  if (triggered.outcome !== "enqueued") throw new Error(triggered.outcome);
  return triggered.run;
}

const outputsOf = (items: readonly RunItem[]) => items.flatMap(({ output }) => output ?? []);

describe("E11 each item of a fan-out has a record; a retry repeats exactly the failed ones", () => {
  const COUNT = 10_000;
  const fails = (n: number) => n % 20 === 7;

  it(`${COUNT} items, one in 20 fails: all are listed in pages, and those that failed are retried in one command`, async () => {
    let broken = true;
    const done: { n: number; key: string }[] = [];
    const type = defineTask("fan-out", {
      queue: "bells",
      payload: anything,
      generate: () => Array.from({ length: COUNT }, (_, n) => ({ order: `order-${n}` })),
      process: ({ order }, { index, idempotencyKey, log }) => {
        done.push({ n: index, key: idempotencyKey });
        log(`mailing ${order}`);
        if (broken && fails(index)) throw new Error(`no paper for ${order}`);
        return { sent: order };
      },
      itemRetry: { attempts: 2, backoff: "fixed", delay: "1ms" },
    });
    const worker = new Worker({
      connection: stand.redis.url,
      namespace: stand.namespace,
      types: [type],
      concurrency: 50,
      logger: SILENT,
    });
    stand.later(() => worker.stop());
    const client = stand.client();
    // Waits for the end itself, however long that takes.
    const ended = new Map<string, ReturnType<typeof gate<void>>>();
    const endOf = (id: string) => ended.get(id) ?? ended.set(id, gate()).get(id)!;
    for (const event of ["settled", "cancelled"] as const)
      (worker as NodeJS.EventEmitter).on(event, ({ run: id }: { run: string }) => endOf(id).resolve());
    const final = (id: string) => endOf(id).promise;
    await worker.start();
    const run = await trigger(client, "fan-out");
    await expect(operatorOf(client).runs.retryItems({ id: run })).rejects.toMatchObject({ code: "CONFLICT" });
    await final(run);

    const items = await allItems(client, run);
    expect(items.map(({ index }) => index)).toEqual(Array.from({ length: COUNT }, (_, n) => n));
    const record = await client.runs.get(run);
    for (const item of items) {
      const failed = fails(item.index);
      const order = `order-${item.index}`;
      const { planned, started = 0, finished = 0, error, ...rest } = item;
      expect(rest).toEqual({
        index: item.index,
        data: { order },
        maxAttempts: 2,
        pid: process.pid,
        worker: record.worker,
        output: `log mailing ${order}\n`,
        attempts: failed ? 2 : 1,
        ...(failed ? { status: "failed" } : { status: "completed", result: { sent: order } }),
      });
      expect(error?.split("\n")[0]).toBe(failed ? `Error: no paper for ${order}` : undefined);
      const times = [record.started, planned, started, finished, record.finished] as number[];
      expect(times).toEqual([...times].sort((a, b) => a - b));
    }
    const failed = items.filter(({ status }) => status === "failed");
    expect(failed).toHaveLength(COUNT / 20);
    expect(await allItems(client, run, "failed")).toEqual(failed);
    expect(await allItems(client, run, ["waiting", "active", "cancelled"])).toEqual([]);

    const before = done.splice(0);
    broken = false;
    await operatorOf(client).queues.pause({ queue: "bells" });
    const other = await client.trigger("t");
    const open = other.outcome === "enqueued" ? other.run : "";
    await expect(operatorOf(client).runs.retryItems({ id: run })).rejects.toMatchObject({
      code: "SKIPPED_OVERLAP",
    });
    await client.runs.cancel(open);
    await operatorOf(client).queues.resume({ queue: "bells" });
    await final(open);
    // The items of a paused task are retried too.
    await client.pause("t");
    const again = await stand.carillon(["retry-items", run, "--json"]);
    const { run: retried } = JSON.parse(again.stdout) as { run: string };
    // A second request does not start a second run.
    expect(await operatorOf(client).runs.retryItems({ id: run })).toMatchObject({ run: retried });
    await final(retried);
    const order = (a: { n: number }, b: { n: number }) => a.n - b.n;
    // The first attempts of the failed items have the same keys.
    const expected = [...new Map(before.map((one) => [one.n, one])).values()].filter(({ n }) => fails(n));
    expect(done.sort(order)).toEqual(expected.sort(order));
    expect(await client.runs.get(retried)).toMatchObject({
      itemsOf: run,
      key: record.key,
      outcome: "succeeded",
      result: { total: COUNT / 20, succeeded: COUNT / 20 },
    });
    const second = await allItems(client, retried);
    expect(second.map(({ index, status, data }) => ({ index, status, data }))).toEqual(
      failed.map(({ index, data }) => ({ index, status: "completed", data })),
    );
    expect(await operatorOf(client).runs.retryItems({ id: run })).toMatchObject({ run: retried });
    await expect(operatorOf(client).runs.retryItems({ id: retried })).rejects.toMatchObject({
      code: "CONFLICT",
    });

    await client.delete("t");
    expect(await stand.admin.keys(`*${stand.namespace}*~items:*`)).toEqual([]);
  });

  it("unfinished items of a cancelled run are cancelled; a run without items has none to retry", async () => {
    const started = gate();
    const fan = defineTask("fan-out", {
      queue: "bells",
      payload: anything,
      generate: () => [0, 1, 2],
      process: async (_, { signal }) => {
        started.resolve();
        await new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        });
      },
      concurrency: 1,
    });
    const plain = defineTask("plain", { queue: "bells", payload: anything, handler: () => {} });
    const worker = new Worker({
      connection: stand.redis.url,
      namespace: stand.namespace,
      types: [fan, plain],
      logger: SILENT,
    });
    stand.later(() => worker.stop());
    const client = stand.client();
    await worker.start();
    const run = await trigger(client, "fan-out");
    await started.promise;
    await client.runs.cancel(run);
    await eventually(async () => {
      const { items } = await operatorOf(client).runs.items({ id: run });
      expect(items.map(({ status }) => status)).toEqual(["cancelled", "cancelled", "cancelled"]);
      expect(items.every(({ finished }) => finished !== undefined)).toBe(true);
    }, PATIENCE);
    await eventually(async () => (await client.runs.get(run)).state === "final", PATIENCE);
    await expect(operatorOf(client).runs.retryItems({ id: run })).rejects.toMatchObject({ code: "CONFLICT" });

    await client.put({ id: "p", type: "plain", queue: "bells", schedule: { every: "365d" } });
    const triggered = await client.trigger("p");
    const other = triggered.outcome === "enqueued" ? triggered.run : "";
    await eventually(async () => (await client.runs.get(other)).state === "final", PATIENCE);
    expect(await operatorOf(client).runs.items({ id: other })).toEqual({ items: [], cursor: undefined });
    await expect(operatorOf(client).runs.retryItems({ id: other })).rejects.toMatchObject({
      code: "CONFLICT",
    });
    await expect(operatorOf(client).runs.retryItems({ id: "none@x.1" })).rejects.toMatchObject({
      code: "RUN_NOT_FOUND",
    });
  });
});

describe("E11 items of a run whose jobs were removed from outside", () => {
  it("those that waited are cancelled, in lists and filters", async () => {
    const fan = defineTask("fan-out", {
      queue: "bells",
      payload: anything,
      generate: () => [0, 1, 2],
      process: () => kit.sleep("1h"),
      concurrency: 1,
    });
    const kit = await stand.kit({ types: [fan], concurrency: 1 });
    await kit.client.put({ id: "t", type: "fan-out", queue: "bells", schedule: { at: kit.now + 60_000 } });
    await kit.advance("2m");
    const [run] = await kit.client.runs.list("t");
    await kit.worker.crash();
    await stand.queue("bells").obliterate({ force: true });
    await kit.advance("10m");
    const id = run?.id ?? "";
    expect(await kit.client.runs.get(id)).toMatchObject({ state: "final", outcome: "lost" });
    const { items } = await operatorOf(kit.client).runs.items({ id });
    expect(items.map(({ status }) => status)).not.toContain("waiting");
    expect(items.slice(1).map(({ status }) => status)).toEqual(["cancelled", "cancelled"]);
    expect((await operatorOf(kit.client).runs.items({ id, status: "waiting" })).items).toEqual([]);
  });
});

async function allItems(
  client: Client,
  run: string,
  status?: InputTo<"runs.items">["status"],
): Promise<RunItem[]> {
  const found: RunItem[] = [];
  let cursor: string | undefined;
  do {
    const page = await operatorOf(client).runs.items({ id: run, status, cursor, limit: 300 });
    expect(page.items.length).toBeLessThanOrEqual(300);
    found.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

describe("E17 a retry of failed items is a retry", () => {
  it("three hours later, with alertIf: { notStartedFor: 5 }m: by ann, with its own trigger, not late, no late-start", async () => {
    let broken = true;
    const type = defineTask("fan-out", {
      queue: "bells",
      payload: anything,
      generate: () => [0, 1],
      process: (n) => {
        if (broken && n === 1) throw new Error("no paper");
      },
    });
    const kit = await stand.kit({ types: [type], start: "2026-01-01T00:00:00Z" });
    const schedule = { at: "2026-01-01T01:00:00Z" };
    await kit.client.put({
      id: "t",
      type: "fan-out",
      queue: "bells",
      schedule,
      alertIf: { notStartedFor: "5m" },
    });
    await kit.advance("4h");
    const [failed] = await kit.client.runs.list("t");
    broken = false;
    const retry = ["retry-items", failed?.id ?? "", "--by", "ann", "--json"];
    const { stdout } = await stand.carillon(retry);
    const { run } = JSON.parse(stdout) as { run: string };
    await kit.advance("10m");
    const record = await kit.client.runs.get(run);
    expect(record).toMatchObject({
      trigger: "items",
      by: "ann",
      outcome: "succeeded",
      nominal: failed?.nominal,
    });
    expect(record.lateMs).toBeUndefined();
    expect((await kit.client.runs.stats("t")).incidents).toEqual([]);
  });
});

describe("E17 a failed retry of items", () => {
  it("no rerun of the task follows it", async () => {
    const type = defineTask("fan-out", {
      queue: "bells",
      payload: anything,
      generate: () => [0],
      process: () => Promise.reject(new Error("no paper")),
    });
    const kit = await stand.kit({ types: [type] });
    const task = { id: "t", type: "fan-out", queue: "bells", schedule: { every: "1d" } } as const;
    await kit.client.put(task);
    await kit.advance("24h");
    await kit.client.put({ ...task, rerun: { delay: "1m" } });
    const [failed] = await kit.client.runs.list("t");
    await operatorOf(kit.client).runs.retryItems({ id: failed?.id ?? "" });
    await kit.advance("1h");
    await kit.expect("t").outcomes(["failed", "failed"]);
    expect((await kit.client.get("t")).pending).toEqual([]);
  });
});

describe("E15 what a run prints is in its record within 5 s", () => {
  it("while its handler goes on: a worker that does what it does every 5 s or more often saves it", async () => {
    const rounds: (() => void)[] = [];
    const real = globalThis.setInterval;
    const seen = (act: () => void, ms = 0) => {
      const isSoon = ms <= 5_000;
      if (isSoon) rounds.push(act);
      // Later rounds do not count, however long the test takes.
      return real(isSoon ? act : () => {}, ms);
    };
    globalThis.setInterval = seen as typeof real;
    stand.later(() => {
      globalThis.setInterval = real;
    });
    const [begun, ends] = [gate(), gate()];
    const type = defineTask("ring", {
      queue: "bells",
      payload: anything,
      handler: async (_, { log }) => {
        log("begun");
        begun.resolve();
        await ends.promise;
      },
    });
    const on = { connection: stand.redis.url, namespace: stand.namespace, logger: SILENT };
    const worker = new Worker({ ...on, types: [type] });
    stand.later(() => worker.stop());
    stand.later(() => ends.resolve());
    await worker.start();
    const client = stand.client();
    const run = await trigger(client, "ring");
    await begun.promise;
    for (const act of rounds) act();
    const output = async () => (await client.runs.get(run)).output.map(({ text }) => text).join("");
    await eventually(async () => expect(await output()).toContain("begun"), PATIENCE);
  });
});

describe("E15 output of what runs can be read, and is kept if its process dies", () => {
  it.each([
    [
      "a run",
      "ring",
      async (client: Client, run: string) => (await client.runs.get(run)).output.map(({ text }) => text),
    ],
    [
      "an item",
      "fan-out",
      async (client: Client, run: string) =>
        outputsOf((await operatorOf(client).runs.items({ id: run })).items),
    ],
  ])("of %s, by client and CLI", async (_what, type, read) => {
    const program = stand.program("test/seeds/items-worker.mjs");
    const client = stand.client();
    const run = await trigger(client, type);
    const printed = type === "ring" ? "ring" : "first";
    await program.says({ printed });
    const output = [`log begun ${printed}\nerr to err ${printed}\n`];
    // It waits for a word that never comes.
    await eventually(async () => expect(await read(client, run)).toEqual(output), PATIENCE);
    expect((await client.runs.get(run)).finished).toBeUndefined();
    await program.kill();
    expect(await read(client, run)).toEqual(output);
    const { stdout } = await stand.carillon([type === "ring" ? "run" : "items", run, "--json"]);
    expect(stdout).toContain(JSON.stringify(output[0]));
  });
});

describe("E16 items on several processes: worker and pid of each are those that did it", () => {
  it("two worker processes, an item each", async () => {
    const programs = [
      stand.program("test/seeds/items-worker.mjs"),
      stand.program("test/seeds/items-worker.mjs"),
    ];
    await Promise.all(
      programs.map((program) => eventually(() => expect(program.said).toHaveLength(1), PATIENCE)),
    );
    const client = stand.client();
    const run = await trigger(client, "fan-out");
    // Each works one item at a time, and ends none before it is told to.
    await Promise.all(
      programs.map((program) => eventually(() => expect(program.said).toHaveLength(2), PATIENCE)),
    );
    for (const program of programs) program.tell("go on");
    await eventually(async () => (await client.runs.get(run)).state === "final", PATIENCE);
    const { items } = await operatorOf(client).runs.items({ id: run });
    const said = programs.map(({ said: [working, printed] }) => ({
      data: printed?.["printed"],
      pid: printed?.["pid"],
      worker: working?.["working"],
      status: "completed",
    }));
    expect(items).toEqual(expect.arrayContaining(said.map((one) => expect.objectContaining(one))));
    const pids = items.map(({ pid }) => pid);
    expect(new Set([...pids, process.pid]).size).toBe(3);
  });
});
