import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { Scheduler } from "@carillon/scheduler";
import { defineTask, Worker } from "@carillon/sdk";
import { alertWebhook, verifySignature } from "@carillon/sdk/http";
import { eventually, type TestKit } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { startConsole } from "../../apps/console/test/harness.js";
import { enqueued, SILENT } from "../helpers.js";
import { anything, PATIENCE, Stand, task } from "./harness.js";

const stand = Stand.use();
let kit: TestKit;

const NO = () => Promise.reject(new Error("out of paper"));

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A server on this machine that records its requests. */
async function receiver(): Promise<{ url: string; host: string; received: Received[] }> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    received.push({ headers: request.headers, body });
    response.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stand.later(() => {
    server.closeAllConnections();
    server.close();
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url: `http://${host}/alerts`, host, received };
}

describe("E7 a failing task is marked in lists, and an alert hook is called once", () => {
  it("function and signed webhook are called once for each series of failures, whatever the number of nodes", async () => {
    const KEY = "a key of more than sixteen characters";
    const { url, host, received } = await receiver();
    const heard: { kind: string; run?: string; error?: string }[] = [];
    const nodes = Array.from({ length: 3 }, () => {
      return new Scheduler({
        connection: stand.redis.url,
        namespace: stand.namespace,
        logger: SILENT,
        unsafeRedis: "warn",
        onAlert: (alert) => void heard.push(alert),
      });
    });
    let bad = true;
    const worker = stand.worker([
      task(() => (bad ? NO() : "fine")),
      alertWebhook({ signingKey: KEY, allow: [host] }),
    ]);
    stand.later(() => Promise.all(nodes.map((node) => node.stop())));
    await Promise.all([worker.start(), ...nodes.map((node) => node.start())]);
    const client = stand.client();
    await client.put({
      id: "t",
      type: "work",
      queue: "bells",
      schedule: { every: "365d" },
      alerts: [
        { on: ["failed"], url },
        { on: ["missed-deadline"], url: `${url}/never` },
      ],
    });

    const ran = async () => {
      const triggered = enqueued(await client.trigger("t", { overlap: "allow" }));
      await eventually(async () => (await client.runs.get(triggered.run)).state === "final", PATIENCE);
      return triggered.run;
    };
    // The first retry of the first run comes before the retry of the last run.
    const runs: string[] = [];
    for (let n = 1; n <= 3; n++) {
      bad = true;
      runs.push(await ran());
      await ran();
      bad = false;
      const recovered = await ran();
      await eventually(() => {
        expect(heard.length).toBeGreaterThanOrEqual(2 * n);
        expect(received.length).toBeGreaterThanOrEqual(n);
      }, PATIENCE);
      expect(heard[2 * n - 1]).toMatchObject({ kind: "recovered", run: recovered, ended: ["failed"] });
    }
    const failures = heard.filter(({ kind }) => kind === "failed");
    expect(failures.map(({ run }) => run)).toEqual(runs);
    expect(heard).toHaveLength(6);
    expect(heard[0]?.error).toContain("out of paper");
    expect(received.map(({ body }) => JSON.parse(body).run)).toEqual(runs);
    for (const { headers, body } of received) {
      expect(verifySignature(body, headers["carillon-signature"], KEY)).toBe(true);
      expect(JSON.parse(body)).toEqual({
        kind: "failed",
        namespace: stand.namespace,
        task: { queue: "bells", owner: "system", id: "t" },
        type: "work",
        outcome: "failed",
        attempts: 1,
        cause: expect.stringMatching(/^[0-9a-f]{8}$/),
        error: "Error: out of paper",
        nominal: expect.any(Number),
        at: expect.any(Number),
        run: expect.any(String),
        consecutiveFailures: expect.any(Number),
      });
    }
    // One job for each, by BullMQ's count.
    expect(await stand.queue("carillon-alerts").getCompletedCount()).toBe(3);
  });

  it("the list shows the error until a run succeeds", async () => {
    let bad = true;
    const type = task(() => (bad ? NO() : "fine"));
    kit = await stand.kit({ types: [type] });
    const schedule = { every: "1h" };
    await kit.client.put(type, { id: "bad", schedule, payload: {} });
    await kit.client.put(type, { id: "new", schedule: { every: "365d" }, payload: {} });
    await kit.advanceTo("1:30:00");
    const listed = async () => {
      const { tasks } = await kit.client.list();
      return Object.fromEntries(tasks.map(({ id, lastStatus }) => [id, lastStatus]));
    };
    const before = await listed();
    expect(before.new).toBeUndefined();
    expect(before.bad).toMatchObject({ outcome: "failed", error: expect.stringContaining("out of paper") });
    bad = false;
    await kit.advanceTo("2:30:00");
    const after = await listed();
    expect(after.bad).toMatchObject({ outcome: "succeeded" });
    expect(after.bad).not.toHaveProperty("error");
  });

  it("the command line shows it too", async () => {
    const type = task(NO);
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, { id: "bad", schedule: { every: "1h" }, payload: {} });
    await kit.advanceTo("1:30:00");
    const { stdout } = await stand.carillon(["list"]);
    expect(stdout).toContain("system/bad");
    expect(stdout).toContain("failed");
  });
});

describe("E7 a failing task is marked by HTTP and in Bull Board", () => {
  it("with its error, until a run succeeds", async () => {
    const { api, admin, board, client, redis, stop } = await startConsole();
    stand.later(stop);
    let bad = true;
    const { namespace } = client;
    const types = [task(() => (bad ? NO() : "fine"))];
    const worker = new Worker({ connection: redis.url, namespace, types, logger: SILENT });
    stand.later(() => worker.stop());
    await worker.start();
    await client.put({ id: "bad", type: "work", queue: "bells", schedule: { every: "365d" } });
    await board.refresh();
    const run = async () => {
      const triggered = enqueued(await client.trigger("bad"));
      await eventually(async () => (await client.runs.get(triggered.run)).state === "final", PATIENCE);
    };
    const listed = async () => {
      const http = (await api("GET", "/tasks?failing=true")).body.tasks as {
        lastStatus?: { error?: string };
      }[];
      const [shown] = (await admin("GET", "/queues/api/job-schedulers")).body.schedulers ?? [];
      return [http.map(({ lastStatus }) => lastStatus?.error), shown?.["name"]];
    };
    await run();
    expect(await listed()).toEqual([
      [expect.stringContaining("out of paper")],
      "work · last run failed: Error: out of paper",
    ]);
    bad = false;
    await run();
    expect(await listed()).toEqual([[], "work · last run succeeded"]);
  });
});

describe("E8 retries are counted and limited, back off, and give way to the next occurrence", () => {
  const at = (time: string) => Date.parse(`2026-01-01T${time}Z`);

  it("attempts of a run are counted and limited, and each wait doubles", async () => {
    const starts: number[] = [];
    const type = task(({ attempt }) => {
      starts.push(kit.now);
      expect(attempt).toBe(starts.length);
      return NO();
    });
    kit = await stand.kit({ types: [type] });
    const retry = { attempts: 4, delay: "10s" };
    await kit.client.put(type, { id: "t", schedule: { every: "1h" }, retry, payload: {} });
    await kit.advanceTo("1:30:00");
    expect(starts).toEqual(["01:00:00", "01:00:10", "01:00:30", "01:01:10"].map(at));
    const [run] = await kit.client.runs.list("t");
    expect(run).toMatchObject({ outcome: "failed", attempts: 4, maxAttempts: 4, finished: at("01:01:10") });
    expect((await kit.client.get("t")).retry).toMatchObject({ attempts: 4, backoff: "exponential" });
  });

  it("the limit is that of the time of enqueueing", async () => {
    kit = await stand.kit({ types: [task(() => kit.sleep("10m").then(NO))] });
    const put = (retry?: { attempts: number }) =>
      kit.client.put({
        id: "t",
        type: "work",
        queue: "bells",
        schedule: { every: "1h" },
        ...(retry ? { retry } : {}),
      });
    await put({ attempts: 3 });
    await kit.advanceTo("1:05:00");
    await put();
    const [run] = await kit.client.runs.list("t");
    expect(run).toMatchObject({ state: "running", attempts: 1, maxAttempts: 3 });
    await kit.advanceTo("2:05:00");
    const [second, first] = await kit.client.runs.list("t");
    expect(first).toMatchObject({ attempts: 3, maxAttempts: 3, outcome: "failed" });
    expect(second).toMatchObject({ attempts: 1 });
    expect(second).not.toHaveProperty("maxAttempts");
  });

  it("each child has its own retries", async () => {
    const tries: Record<string, number[]> = { good: [], twice: [], never: [] };
    const type = defineTask("fan-out", {
      queue: "bells",
      payload: anything,
      generate: () => ["good", "twice", "never"],
      process: async (item: string, { attempt }) => {
        const list = tries[item] ?? [];
        list.push(kit.now);
        expect(attempt).toBe(list.length);
        if (item === "never" || (item === "twice" && attempt < 3)) await NO();
      },
      itemRetry: { attempts: 3, delay: "10s" },
    });
    kit = await stand.kit({ types: [type] });
    await kit.client.put(type, { id: "t", schedule: { every: "1h" }, payload: {} });
    await kit.advanceTo("1:30:00");
    const [first, second, third] = ["01:00:00", "01:00:10", "01:00:30"].map(at);
    expect(tries).toEqual({ good: [first], twice: [first, second, third], never: [first, second, third] });
    const [run] = await kit.client.runs.list("t");
    expect(run).toMatchObject({
      outcome: "failed",
      result: { total: 3, succeeded: 2, failed: 1, failures: [{ index: 2 }] },
    });
  });

  it("a retry due with the next occurrence or later is one run, with one reason", async () => {
    const type = task(({ occurrence }) => (occurrence.nominal === at("01:00:00") ? NO() : undefined));
    kit = await stand.kit({ types: [type] });
    const rerun = { delay: "1h", backoff: "fixed", jitter: 0 } as const;
    await kit.client.put(type, { id: "t", schedule: { every: "1h" }, rerun, payload: {} });
    await kit.advanceTo("2:30:00");
    await kit.expect("t").ranAt(["1:00:00", "2:00:00"]).outcomes(["failed", "succeeded"]);
    expect(await kit.client.runs.skips("t")).toMatchObject([
      { reason: "retry-superseded", from: at("01:00:00"), to: at("01:00:00"), decisions: 1 },
    ]);
    const { runs } = await kit.history("t");
    expect(runs.map(({ trigger }) => trigger)).toEqual(["schedule", "schedule"]);
  });

  it("a retry delayed to the next occurrence is merged into it", async () => {
    const type = task(({ occurrence }) => {
      if (occurrence.trigger === "manual") return kit.sleep("31m");
      return occurrence.nominal === at("01:00:00") ? NO() : undefined;
    });
    kit = await stand.kit({ types: [type] });
    const rerun = { delay: "30m", jitter: 0 };
    const policies = { rerun, overlap: "queue-one", payload: {} } as const;
    await kit.client.put(type, { id: "t", schedule: { every: "1h" }, ...policies });
    // From 01:29:30 to 02:00:30: covers the retry at 01:30 and the occurrence of 02:00.
    kit.at("1:29:30", () => kit.client.trigger("t"));
    await kit.advanceTo("2:30:00");
    await kit.expect("t").ranAt(["1:00:00", "1:29:30", "2:00:30"]);
    const { runs } = await kit.history("t");
    expect(runs.map(({ trigger, nominal }) => [trigger, nominal])).toEqual([
      ["schedule", at("01:00:00")],
      ["manual", at("01:29:30")],
      ["schedule", at("02:00:00")],
    ]);
    expect(await kit.client.runs.skips("t")).toMatchObject([
      { reason: "retry-superseded", from: at("01:00:00"), to: at("01:00:00"), decisions: 1 },
    ]);
  });

  it("an occurrence during attempts of the run before is skipped, with its reason", async () => {
    const type = task(({ attempt }) => (attempt === 1 ? NO() : undefined));
    kit = await stand.kit({ types: [type] });
    const retry = { attempts: 2, delay: "50m" };
    kit.at("20:00", () => {});
    await kit.client.put(type, { id: "t", schedule: { cron: "*/45 * * * *" }, retry, payload: {} });
    await kit.advanceTo("1:20:00");
    // 00:45 fails, and is retried at 01:35; 01:00 comes in between.
    await kit.expect("t").fired(1).skipped("overlap", 1);
    await kit.advanceTo("1:40:00");
    await kit.expect("t").ranAt(["45:00"]).finishedAt(["1:35:00"]).outcomes(["succeeded"]);
    expect((await kit.client.runs.skips("t"))[0]).toMatchObject({ reason: "overlap", from: at("01:00:00") });
  });
});
