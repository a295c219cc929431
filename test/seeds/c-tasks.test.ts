import { hostname } from "node:os";
import { Scheduler } from "@carillon/scheduler";
import { Client, defineTask, Worker } from "@carillon/sdk";
import { internalsOf, storeOf } from "@carillon/store/internal";
import { describe, expect, it } from "vitest";
import { startConsole } from "../../apps/console/test/harness.js";
import { SILENT } from "../helpers.js";
import { anything, Stand } from "./harness.js";

const stand = Stand.use();

const TASK = { id: "nightly", type: "report", queue: "reports" };
const NIGHTLY = { cron: "0 3 * * *", timezone: "Europe/Berlin" };
const report = defineTask("report", { queue: "reports", payload: anything, handler: () => "printed" });

/** Runs the task once, to its end. */
async function runOnce(client: Client, url: string): Promise<string> {
  const worker = new Worker({
    connection: url,
    namespace: client.namespace,
    types: [report],
    logger: SILENT,
  });
  const settled = new Promise<{ run: string }>((resolve) => worker.once("settled", resolve));
  await worker.start();
  try {
    await client.trigger(TASK);
    return (await settled).run;
  } finally {
    await worker.stop();
  }
}

describe("C1 tasks are added, listed, updated, removed, validated and journalled by SDK, HTTP and CLI", () => {
  it("SDK", async () => {
    const client = stand.client();
    const checked = await client.validate({ ...TASK, schedule: NIGHTLY }, { count: 2 });
    expect(checked).toMatchObject({ canonical: "0 3 * * *", humanized: expect.stringContaining("03:00") });
    expect(checked.next).toHaveLength(2);
    expect((await client.list()).tasks).toEqual([]);

    expect(await client.put({ ...TASK, schedule: NIGHTLY })).toMatchObject({ outcome: "created" });
    expect((await client.list()).tasks).toMatchObject([{ ...TASK, schedule: NIGHTLY }]);
    expect(await client.put({ ...TASK, schedule: { every: "1h" } })).toMatchObject({ outcome: "updated" });
    expect(await client.get("nightly")).toMatchObject({ schedule: { every: "1h" } });
    const run = await runOnce(client, stand.redis.url);
    expect((await client.runs.journal({ task: "nightly" })).runs).toMatchObject([
      { id: run, outcome: "succeeded", result: "printed" },
    ]);
    await client.delete("nightly");
    expect((await client.list()).tasks).toEqual([]);
  });

  it("HTTP API", async () => {
    const { api, client, redis, stop } = await startConsole();
    stand.later(stop);
    const path = "/tasks/reports/system/nightly";
    const checked = await api("POST", "/tasks/validate", { task: { ...TASK, schedule: NIGHTLY }, count: 2 });
    expect(checked).toMatchObject({ status: 200, body: { canonical: "0 3 * * *" } });
    expect(checked.body.next).toHaveLength(2);
    expect((await api("GET", "/tasks")).body.tasks).toEqual([]);

    const added = await api("POST", "/tasks", { ...TASK, schedule: NIGHTLY });
    expect(added).toMatchObject({ status: 201, body: { outcome: "created" } });
    expect((await api("GET", "/tasks")).body.tasks).toMatchObject([{ ...TASK, schedule: NIGHTLY }]);
    const updated = await api("PUT", path, { type: "report", schedule: { every: "1h" } });
    expect(updated).toMatchObject({ status: 200, body: { outcome: "updated" } });
    expect((await api("GET", path)).body).toMatchObject({ schedule: { every: "1h" } });
    const run = await runOnce(client, redis.url);
    expect((await api("GET", "/runs/journal?task=nightly")).body.runs).toMatchObject([
      { id: run, outcome: "succeeded", result: "printed" },
    ]);
    expect(await api("DELETE", path)).toMatchObject({ status: 204 });
    expect((await api("GET", "/tasks")).body.tasks).toEqual([]);
  });

  it("CLI", async () => {
    const json = async (args: string[], input?: unknown) => {
      const { code, stdout, stderr } = await stand.carillon(
        [...args, "--json"],
        input === undefined ? "" : JSON.stringify(input),
      );
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      return stdout === "" ? undefined : JSON.parse(stdout);
    };
    const checked = await json(["validate", "--count", "2"], { ...TASK, schedule: NIGHTLY });
    expect(checked).toMatchObject({ canonical: "0 3 * * *", humanized: expect.stringContaining("03:00") });
    expect(checked.next).toHaveLength(2);
    expect(await json(["list"])).toMatchObject({ tasks: [] });

    const [added] = [await json(["put"], { ...TASK, schedule: NIGHTLY })].flat();
    expect(added).toMatchObject({ outcome: "created" });
    expect(await json(["list"])).toMatchObject({ tasks: [{ ...TASK, schedule: NIGHTLY }] });
    const [updated] = [await json(["put"], { ...TASK, schedule: { every: "1h" } })].flat();
    expect(updated).toMatchObject({ outcome: "updated" });
    expect((await json(["list"])).tasks).toMatchObject([{ schedule: { every: "1h" } }]);
    const run = await runOnce(stand.client(), stand.redis.url);
    expect((await json(["journal", "nightly"])).runs).toMatchObject([
      { id: run, outcome: "succeeded", result: "printed" },
    ]);
    await json(["rm", "nightly"]);
    expect(await json(["list"])).toMatchObject({ tasks: [] });
  });
});

describe("C2 plain words and the next execution are computed when asked for, never stored", () => {
  it("the Redis hash has neither", async () => {
    const client = stand.client();
    const key = internalsOf(storeOf(client)).keys.queue("reports").task("system/nightly");
    await client.put({ ...TASK, schedule: NIGHTLY });
    const before = await stand.admin.hgetall(key);
    const task = await client.get("nightly");
    const { tasks } = await client.list();
    expect(task.humanized).toBe("at 03:00, every day (Europe/Berlin)");
    expect(tasks[0]).toMatchObject({ humanized: task.humanized, nextExecution: task.nextExecution });
    expect(task.nextExecution).toBeGreaterThan(await stand.time());

    // A preview stores nothing.
    const hash = await stand.admin.hgetall(key);
    expect(hash).toEqual(before);
    expect(Object.keys(hash).sort()).toEqual(["gen", "nominal", "rev", "schedule", "state", "type"].sort());
    expect(JSON.stringify(hash)).not.toContain(task.humanized);
    expect(JSON.parse(hash.schedule ?? "")).toEqual(NIGHTLY);
  });

  it("they follow the stored task at once", async () => {
    const client = stand.client();
    const key = internalsOf(storeOf(client)).keys.queue("reports").task("system/nightly");
    await client.put({ ...TASK, schedule: NIGHTLY });
    await stand.admin.hset(key, "schedule", JSON.stringify({ every: "90s" }));
    expect((await client.get("nightly")).humanized).toMatch(/^every 1m30s/);
    // Due times stay on record, although a paused task has no next time.
    await client.pause("nightly");
    expect(await stand.admin.hget(key, "nominal")).not.toBeNull();
    expect((await client.get("nightly")).nextExecution).toBeUndefined();
  });
});

describe("C11 plain words and the next execution are in the answers of validate, put and list alike", () => {
  const task = { ...TASK, schedule: { at: "2100-01-01T03:00:00Z" } };
  const told = { humanized: "once, at 2100-01-01T03:00:00Z", nextExecution: Date.UTC(2100, 0, 1, 3) };
  const valid = { humanized: told.humanized, next: [{ nominal: told.nextExecution }] };

  it("SDK", async () => {
    const client = stand.client();
    expect(await client.validate(task)).toMatchObject(valid);
    const put = await client.put(task);
    expect(put).toMatchObject(told);
    expect(JSON.parse(JSON.stringify(put))).toMatchObject(told);
    expect(await client.putMany([task])).toMatchObject([told]);
    expect((await client.list()).tasks).toMatchObject([told]);
  });

  it("HTTP API", async () => {
    const { api, stop } = await startConsole();
    stand.later(stop);
    expect((await api("POST", "/tasks/validate", { task })).body).toMatchObject(valid);
    expect((await api("POST", "/tasks", task)).body).toMatchObject(told);
    expect((await api("GET", "/tasks")).body.tasks).toMatchObject([told]);
  });

  it("CLI", async () => {
    const json = async (args: string[], input = "") =>
      JSON.parse((await stand.carillon([...args, "--json"], input)).stdout);
    expect(await json(["validate"], JSON.stringify(task))).toMatchObject(valid);
    expect(await json(["put"], JSON.stringify(task))).toMatchObject(told);
    expect(await json(["list"])).toMatchObject({ tasks: [told] });
  });
});

describe("C4 the last status of a task is reported and cannot be written", () => {
  it("it has time, place, error and result", async () => {
    let bad = true;
    const type = defineTask("report", {
      queue: "reports",
      payload: anything,
      handler: async () => {
        await kit.sleep("5s");
        if (bad) throw new Error("out of paper");
        return { pages: 3 };
      },
    });
    const kit = await stand.kit({ types: [type] });
    const at = (time: string) => Date.parse(`2026-01-01T${time}Z`);
    await kit.client.put({ ...TASK, schedule: { every: "1h" } });
    expect((await kit.client.get("nightly")).lastStatus).toBeUndefined();
    await kit.advanceTo("1:00:10");
    const [node] = [expect.stringContaining(hostname())];
    const failed = (await kit.client.get("nightly")).lastStatus;
    expect(failed).toMatchObject({
      executedAt: at("01:00:00"),
      finishedAt: at("01:00:05"),
      node,
      outcome: "failed",
      error: expect.stringContaining("out of paper"),
    });
    expect(failed).not.toHaveProperty("result");
    bad = false;
    // During the next run, the last final one is shown.
    await kit.advanceTo("2:00:02");
    expect((await kit.client.get("nightly")).lastStatus).toEqual(failed);
    await kit.advanceTo("2:00:10");
    const fine = (await kit.client.get("nightly")).lastStatus;
    expect(fine).toMatchObject({
      executedAt: at("02:00:00"),
      node,
      outcome: "succeeded",
      result: { pages: 3 },
    });
    expect(fine).not.toHaveProperty("error");
  });

  it("writing it is refused by SDK, HTTP and CLI", async () => {
    const lastStatus = { executedAt: 0, node: "mine", outcome: "succeeded", result: "forged" };
    const forged = { ...TASK, schedule: { every: "1h" }, lastStatus };
    const refused = { code: "INVALID_TASK", field: "lastStatus" };
    const client = stand.client();
    await expect(client.put(forged as never)).rejects.toMatchObject(refused);
    expect(await client.list()).toMatchObject({ tasks: [] });
    await client.put({ ...TASK, schedule: { every: "1h" } });
    const before = await stand.admin.hgetall(
      internalsOf(storeOf(client)).keys.queue("reports").task("system/nightly"),
    );
    await expect(client.put(forged as never)).rejects.toMatchObject(refused);
    const cli = await stand.carillon(["put", "--json"], JSON.stringify(forged));
    expect(cli.code).toBe(2);
    expect(JSON.parse(cli.stderr)).toMatchObject({ error: refused });
    const after = await stand.admin.hgetall(
      internalsOf(storeOf(client)).keys.queue("reports").task("system/nightly"),
    );
    expect(after).toEqual(before);

    const { api, stop } = await startConsole();
    stand.later(stop);
    expect(await api("POST", "/tasks", forged)).toMatchObject({ status: 400, body: { error: refused } });
    expect((await api("GET", "/tasks")).body.tasks).toEqual([]);
  });
});

describe("C5 the journal filters by task, node, time and outcome, in pages", () => {
  it("each filter works, and all together", async () => {
    const type = defineTask("report", {
      queue: "reports",
      payload: anything,
      handler: (_payload, { occurrence }) => {
        if (new Date(occurrence.nominal).getUTCMinutes() % 3 === 0) throw new Error("no");
      },
    });
    const kit = await stand.kit({ types: [type], nodes: 2 });
    const { client } = kit;
    await client.put({ ...TASK, id: "one", schedule: { every: "1m" } });
    await client.put({ ...TASK, id: "two", schedule: { every: "2m" } });
    await kit.advance("30m");
    const all = (await client.runs.journal()).runs;
    expect(all).toHaveLength(45);
    // Newest first.
    const ends = all.map(({ finished }) => finished as number);
    expect(ends).toEqual([...ends].sort((a, b) => b - a));

    const ids = async (filter: Parameters<typeof client.runs.journal>[0]) =>
      (await client.runs.journal(filter)).runs.map(({ id }) => id).sort();
    const those = (test: (run: (typeof all)[number]) => boolean) => {
      const found = all.filter(test).map(({ id }) => id);
      expect(found.length).toBeGreaterThan(0);
      expect(found.length).toBeLessThan(all.length);
      return found.sort();
    };
    expect(await ids({ task: "one" })).toEqual(those(({ task }) => task.id === "one"));
    for (const node of ["node-1", "node-2"]) {
      expect(await ids({ node })).toEqual(those((run) => run.node === node));
    }
    expect(await ids({ outcome: "failed" })).toEqual(those(({ outcome }) => outcome === "failed"));
    expect(await ids({ outcome: "lost" })).toEqual([]);
    const [from, to] = [Date.parse("2026-01-01T00:05:00Z"), Date.parse("2026-01-01T00:10:00Z")];
    const within = ({ finished = 0 }) => from <= finished && finished <= to;
    expect(await ids({ from, to })).toEqual(those(within));
    expect(await ids({ from, to, task: "two", outcome: "succeeded", node: "node-1" })).toEqual(
      all
        .filter(within)
        .filter(
          ({ task, outcome, node }) => task.id === "two" && outcome === "succeeded" && node === "node-1",
        )
        .map(({ id }) => id)
        .sort(),
    );
    await expect(client.runs.journal({ outcome: "fine" as never })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      field: "outcome",
    });

    const paged: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await client.runs.journal({ limit: 7, cursor });
      expect(page.runs.length).toBeLessThanOrEqual(7);
      paged.push(...page.runs.map(({ id }) => id));
      cursor = page.cursor;
      // A run that ends between two pages does not shift the list.
      if (paged.length === 14) await kit.advance("2m");
    } while (cursor !== undefined);
    expect(paged).toEqual(all.map(({ id }) => id));
  });

  it("it filters by worker", async () => {
    const client = stand.client();
    await client.put({ ...TASK, schedule: { every: "1h" } });
    const run = await runOnce(client, stand.redis.url);
    const { worker } = await client.runs.get(run);
    expect((await client.runs.journal({ node: worker })).runs.map(({ id }) => id)).toEqual([run]);
    expect((await client.runs.journal({ node: "nobody" })).runs).toEqual([]);
    const byCli = async (node = "") =>
      JSON.parse((await stand.carillon(["journal", "--node", node, "--json"])).stdout).runs;
    expect(await byCli(worker)).toMatchObject([{ id: run }]);
    expect(await byCli("nobody")).toEqual([]);
  });
});

describe("C12 the description and the last status", () => {
  it("a description is kept with its accents by put, get, list, HTTP and CLI", async () => {
    const { api, client, stop } = await startConsole();
    stand.later(stop);
    const description = "Résumé quotidien: Übersicht, 日次, 🔔";
    const path = "/tasks/reports/system/nightly";
    await api("PUT", path, { type: "report", schedule: NIGHTLY, description });
    expect((await api("GET", path)).body.description).toBe(description);
    expect((await client.get("nightly")).description).toBe(description);
    expect((await client.list()).tasks).toMatchObject([{ description }]);
    await stand.client().put({ ...TASK, schedule: NIGHTLY, description });
    expect((await stand.carillon(["show", "nightly"])).stdout).toContain(description);
  });

  it("the last status equals the journal's newest run, after each of three", async () => {
    const client = stand.client();
    await client.put({ ...TASK, schedule: NIGHTLY });
    for (let n = 0; n < 3; n++) {
      const run = await runOnce(client, stand.redis.url);
      const [newest] = (await client.runs.journal({ task: "nightly" })).runs;
      const { lastStatus } = await client.get("nightly");
      expect(newest?.id).toBe(run);
      expect(lastStatus).toEqual({
        run,
        executedAt: newest?.started,
        finishedAt: newest?.finished,
        node: newest?.worker,
        outcome: newest?.outcome,
        result: newest?.result,
      });
    }
  });
});

describe("C13 late, not missed", () => {
  /** Runs and skips of a task of each second, by a node that is `late` ms late after the fifth: the sixth was due 1 s after that. */
  async function node(late: number) {
    const START = Date.parse("2026-01-01T00:00:00Z");
    const { store, clock } = await stand.virtual("reports", START);
    const client = new Client({ store });
    await client.put({ ...TASK, schedule: { every: "1s" }, overlap: "allow" });
    const scheduler = new Scheduler({ store, logger: SILENT });
    for (const at of [1_000, 2_000, 3_000, 4_000, 5_000, 5_000 + late]) {
      await clock.set(START + at);
      for (let n = 0; n < 10; n++) await scheduler.tick();
    }
    const seconds = (time: number) => (time - START) / 1_000;
    const runs = (await client.runs.list("nightly", { limit: 100 })).toReversed();
    const skips = await client.runs.skips("nightly");
    return {
      runs: runs.map(({ nominal, trigger }) => [seconds(nominal), trigger]),
      skips: skips.map(({ reason, from, to }) => [reason, seconds(from), seconds(to)]),
    };
  }
  const each = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, n) => [from + n, "schedule"]);

  it("a node that is 4 s late runs each occurrence of each second, oldest first", async () => {
    expect(await node(5_000)).toEqual({ runs: each(1, 10), skips: [] });
  });

  it("one that is 6 s late runs the latest; the others are one range in the skips", async () => {
    const { runs, skips } = await node(7_000);
    expect(skips).toEqual([["missed", 6, 11]]);
    expect(runs).toEqual([...each(1, 5), [12, "catch-up"]]);
  });
});

describe("C11 the answer of a put that updates", () => {
  it("has plain words and the next execution, by SDK, HTTP and CLI", async () => {
    const { api, client, stop } = await startConsole();
    stand.later(stop);
    const updated = { outcome: "updated", humanized: expect.any(String), nextExecution: expect.any(Number) };
    await client.put({ ...TASK, schedule: NIGHTLY });
    expect(await client.put({ ...TASK, schedule: { every: "1h" } })).toMatchObject(updated);
    const path = "/tasks/reports/system/nightly";
    const { body } = await api("PUT", path, { type: "report", schedule: NIGHTLY });
    expect(body).toMatchObject({ ...updated, humanized: expect.stringContaining("Europe/Berlin") });
    const put = (schedule: object) =>
      stand.carillon(["put", "--json"], JSON.stringify({ ...TASK, schedule }));
    await put(NIGHTLY);
    expect((await put({ every: "1h" })).stdout).toMatch(
      /"outcome":\s*"updated"[\s\S]*"nextExecution":\s*\d+/,
    );
  });
});
