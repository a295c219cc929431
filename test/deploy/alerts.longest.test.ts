import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { operatorOf } from "@carillon/ops";
import { Client, defineTask, Worker } from "@carillon/sdk";
import { alertWebhook } from "@carillon/sdk/http";
import { internalsOf, storeOf } from "@carillon/sdk/internal";
import { eventually, freePort, type RedisServer, startRedis } from "@carillon/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { killNodes, Node } from "../../apps/scheduler/test/helpers.js";
import { gate, SILENT } from "../helpers.js";
import { Prometheus, prometheusBinary } from "./prometheus.js";

const file = fileURLToPath(new URL("../../deploy/prometheus/rules.yml", import.meta.url));
const RULES = readFileSync(file, "utf8");
/** Alert rules with fifths of seconds in place of minutes, windows of some scrapes, and limits in seconds shortened likewise. */
const QUICK = RULES.replace(/for: (\d+)m/g, (_, minutes) => `for: ${Number(minutes) * 200}ms`)
  .replace(/\[(\d+)m\]/g, (_, minutes) => `[${Math.min(Number(minutes), 9)}s]`)
  .replace(/> (60|300)\b/g, (_, n) => `> ${Number(n) / 60}`);
const ALL = (parse(RULES) as { groups: { rules: { alert: string }[] }[] }).groups.flatMap(({ rules }) =>
  rules.map(({ alert }) => alert),
);

const binary = prometheusBinary();
if (!binary) {
  console.warn(
    "test/deploy/alerts.longest.test.ts is skipped: there is no Prometheus. Install it (apt-get install prometheus), or set CARILLON_PROMETHEUS.",
  );
}

/** Patience for a busy machine. */
const PATIENCE = { timeoutMs: 120_000, intervalMs: 200 };

describe.skipIf(!binary)(
  "each alert of deploy/prometheus/rules.yml fires by its fault, and ends with it",
  () => {
    let redis: RedisServer;
    let client: Client;
    let worker: Worker;
    let prometheus: Prometheus;
    let ports: number[];
    const nodes: Node[] = [];
    const held = gate();
    const fired = new Set<string>();

    const startNode = (i: number, env: Record<string, string> = {}) => {
      nodes[i] = new Node({
        REDIS_URL: redis.url,
        CARILLON_PORT: String(ports[i]),
        CARILLON_HEARTBEAT_MS: "500",
        CARILLON_METRICS_TAG: "watched",
        CARILLON_LOG_LEVEL: "info",
        ...env,
      });
    };
    const kill = async (i: number) => nodes[i]?.kill();
    const fires = async (alert: string, labels: Record<string, string> = {}, by = prometheus) => {
      await eventually(
        async () =>
          expect(await by.firing()).toContainEqual(expect.objectContaining({ alertname: alert, ...labels })),
        PATIENCE,
      );
      fired.add(alert);
    };
    const ends = (alert: string) =>
      eventually(
        async () =>
          expect((await prometheus.firing()).map(({ alertname }) => alertname)).not.toContain(alert),
        PATIENCE,
      );
    const allEnd = () =>
      eventually(
        async () => expect((await prometheus.firing()).map(({ alertname }) => alertname)).toEqual([]),
        PATIENCE,
      );
    /** The runs that wait in a queue were enqueued `ago` ms before now. */
    const waitSince = async (queue: string, ago: number) => {
      const store = storeOf(client);
      const { link, keys } = internalsOf(store);
      const at = (await store.serverTime()) - ago;
      for (const run of await store.queues.waiting(queue, 10))
        await link.client.hset(keys.queue(queue).run(run), "of", `system/${queue} ${at} n`);
    };
    const setting = (name: string, value: string) =>
      internalsOf(storeOf(client)).link.client.call("CONFIG", "SET", name, value);

    beforeAll(async () => {
      redis = await startRedis({ appendonly: true });
      client = new Client({ connection: redis.url });
      const type = (name: string, handler: () => unknown) =>
        defineTask(name, { queue: name, payload: z.object({}).loose(), handler: handler as () => null });
      const fail = () => Promise.reject(new Error("planted"));
      const types = [type("good", () => null), type("bad", fail), type("slow", () => held.promise)];
      worker = new Worker({
        connection: redis.url,
        types,
        concurrency: 1,
        heartbeatEvery: 500,
        logger: SILENT,
      });
      await worker.start();
      // A task that is due every second.
      await client.put({ id: "tick", queue: "good", type: "good", schedule: { every: "1s" } });
      ports = [await freePort(), await freePort()];
      startNode(0);
      startNode(1);
      for (const node of nodes) await node.ready(200);
      prometheus = await Prometheus.start(binary as string, QUICK, ports);
    });
    afterAll(async () => {
      held.resolve();
      await prometheus?.stop();
      await killNodes();
      await worker?.stop();
      await client?.close();
      await redis?.stop();
    });

    it("none fires while all is well", async () => {
      await eventually(
        async () => expect(await prometheus.query("count(carillon_ready == 1) == 2")).toHaveLength(1),
        PATIENCE,
      );
      await eventually(
        async () =>
          expect(
            await prometheus.query('carillon_runs_total{queue="good",outcome="succeeded"} > 0'),
          ).toHaveLength(2),
        PATIENCE,
      );
      await allEnd();
    });

    it("Prometheus takes the rules as they are shipped, and each query of the dashboard", async () => {
      const shipped = await Prometheus.start(binary as string, RULES, ports);
      await shipped.stop();
      const dashboard = readFileSync(new URL("../../deploy/grafana/carillon.json", import.meta.url), "utf8");
      const { panels } = JSON.parse(dashboard) as { panels: { targets?: { expr: string }[] }[] };
      for (const { expr } of panels.flatMap(({ targets = [] }) => targets)) {
        await prometheus.query(expr.replaceAll("$queue", ".*").replaceAll("$__rate_interval", "10s"));
      }
    });

    // At the same time, because none of these faults touches another one, and rates of a window end long after their fault.
    describe.concurrent("of queues and tasks", () => {
      it("CarillonQueuePaused: someone paused a queue", async () => {
        await operatorOf(client).queues.pause({ queue: "good" });
        await fires("CarillonQueuePaused", { queue: "good" });
        await operatorOf(client).queues.resume({ queue: "good" });
        await ends("CarillonQueuePaused");
      });

      it("CarillonNoWorker: a queue that no worker works", async () => {
        await client.put({ id: "orphan", queue: "nobody", type: "orphan", schedule: { every: "1d" } });
        await client.trigger("orphan");
        await fires("CarillonNoWorker", { queue: "nobody" });
        await operatorOf(client).queues.delete({ queue: "nobody" });
        await ends("CarillonNoWorker");
      });

      it("CarillonJobsWait: a worker that is busy with something else", async () => {
        await client.put({
          id: "slow",
          queue: "slow",
          type: "slow",
          overlap: "allow",
          schedule: { every: "1d" },
        });
        for (let i = 0; i < 2; i++) await client.trigger("slow");
        await waitSince("slow", 61_000);
        await fires("CarillonJobsWait", { queue: "slow" });
        held.resolve();
        await ends("CarillonJobsWait");
      });

      it("CarillonJobsNotTaken: a worker that is ready takes nothing", async () => {
        const store = storeOf(client);
        const at = await store.serverTime();
        await store.registry.beatWorker({
          id: "mute",
          host: "h",
          pid: 1,
          queues: ["mute"],
          types: ["mute"],
          started: at,
          beat: at,
          every: 600_000,
          versions: { carillon: "1", bullmq: "1", node: "1" },
          stopping: false,
          running: 0,
          runs: [],
        });
        await client.put({ id: "mute", queue: "mute", type: "mute", schedule: { every: "1d" } });
        await client.trigger("mute");
        await waitSince("mute", 16_000);
        await fires("CarillonJobsNotTaken", { queue: "mute" });
        await store.registry.removeWorker("mute");
        await operatorOf(client).queues.delete({ queue: "mute" });
        await ends("CarillonJobsNotTaken");
      });

      it("CarillonTaskFailing: a task with the tag fails three times", async () => {
        const task = { id: "watched", queue: "bad", type: "bad", schedule: { every: "1d" as const } };
        await client.put({ ...task, tags: ["watched"] });
        await client.put({ ...task, id: "untagged" });
        for (let failures = 1; failures <= 3; failures++) {
          for (const id of ["watched", "untagged"]) {
            await client.trigger(id);
            await eventually(
              async () => expect((await client.runs.stats(id)).consecutiveFailures).toBe(failures),
              PATIENCE,
            );
          }
        }
        await fires("CarillonTaskFailing", { queue: "bad", owner: "system", task: "watched" });
        const failing = (await prometheus.firing()).filter(
          ({ alertname }) => alertname === "CarillonTaskFailing",
        );
        expect(failing).toHaveLength(1);
        for (const id of ["watched", "untagged"]) await client.delete(id);
        await ends("CarillonTaskFailing");
      });

      it("CarillonRunsFailing: all runs of a queue fail", async () => {
        await client.put({ id: "bad", queue: "bad", type: "bad", schedule: { every: "1s" } });
        // Those of the tasks before were enough too: their metric is still there when these runs begin.
        await eventually(async () => {
          const { notes } = await operatorOf(client).health.status();
          expect(notes).toContainEqual(expect.objectContaining({ code: "RUNS_FAIL", queues: ["bad"] }));
        }, PATIENCE);
        await fires("CarillonRunsFailing");
        await client.delete("bad");
        await ends("CarillonRunsFailing");
      });

      it("CarillonClaimsFailing: foreign data in place of a queue's due indexes", async () => {
        await client.put({ id: "b", queue: "broken", type: "broken", schedule: { every: "1s" } });
        const { link, keys } = internalsOf(storeOf(client));
        const { dues } = keys.queue("broken");
        for (const due of dues) await link.client.set(due, "foreign");
        await fires("CarillonClaimsFailing", { queue: "broken", code: "REDIS_ERROR" });
        await link.client.unlink(...dues);
        await operatorOf(client).queues.delete({ queue: "broken" });
        await ends("CarillonClaimsFailing");
      });

      it("CarillonAlertsUndelivered: no worker has alertWebhook; CarillonAlertsFail: a receiver refuses them", async () => {
        const alerts = [{ on: ["failed" as const], url: "https://hooks.example.com/x" }];
        await client.put({ id: "loud", queue: "bad", type: "bad", alerts, schedule: { every: "1d" } });
        await client.trigger("loud");
        await fires("CarillonAlertsUndelivered");
        await client.delete("loud");
        await operatorOf(client).queues.delete({ queue: "carillon-alerts" });
        await ends("CarillonAlertsUndelivered");
        const receiver = createServer((_, response) => response.writeHead(500).end()).listen(0, "127.0.0.1");
        await once(receiver, "listening");
        const host = `127.0.0.1:${(receiver.address() as AddressInfo).port}`;
        const type = alertWebhook({ allow: [host], signingKey: "k".repeat(32) });
        const deliverer = new Worker({ connection: redis.url, types: [type], logger: SILENT });
        await deliverer.start();
        const refused = [{ on: ["failed" as const], url: `http://${host}/` }];
        await client.put({
          id: "refused",
          queue: "bad",
          type: "bad",
          alerts: refused,
          schedule: { every: "1d" },
        });
        await client.trigger("refused");
        await fires("CarillonAlertsFail");
        await client.delete("refused");
        await deliverer.stop();
        receiver.close();
        await operatorOf(client).queues.delete({ queue: "carillon-alerts" });
        await ends("CarillonAlertsFail");
      });
    });

    it("CarillonClockWentBack: the clock of Redis is an hour behind what nodes saw", async () => {
      const { link, keys } = internalsOf(storeOf(client));
      await storeOf(client).registry.countBeat(Date.now() + 3_600_000);
      await fires("CarillonClockWentBack");
      await link.client.zrem(keys.history, "clock");
      await allEnd();
    });

    it("CarillonRedisUnsafe: a setting of Redis changes under its nodes", async () => {
      await setting("maxmemory-policy", "allkeys-lru");
      await fires("CarillonRedisUnsafe", { what: "EVICTION" });
      await setting("maxmemory-policy", "noeviction");
      await allEnd();
    });

    it("CarillonRedisMemory: Redis is nearly full", async () => {
      const [info] = await storeOf(client).info();
      await setting("maxmemory", String(Math.round((info?.memory.used ?? 0) * 1.15)));
      await fires("CarillonRedisMemory");
      await setting("maxmemory", "0");
      await allEnd();
    });

    it("CarillonRedisSlow: something holds Redis again and again", async () => {
      // Scrapes of a node with a slow Redis take longer than half a second.
      const patient = await Prometheus.start(binary as string, QUICK, ports, "5s");
      const held = new AbortController();
      const holding = (async () => {
        while (!held.signal.aborted)
          await internalsOf(storeOf(client)).link.client.call("CLIENT", "PAUSE", "400", "ALL");
      })();
      await fires("CarillonRedisSlow", {}, patient).finally(() => held.abort());
      await holding;
      await patient.stop();
      await allEnd();
    });

    it("CarillonTooFewNodes: one of two nodes is killed", async () => {
      await kill(1);
      await fires("CarillonTooFewNodes");
    });

    it("CarillonClockSkew: a node whose clock is a minute ahead", async () => {
      const ahead = "const now = Date.now; Date.now = () => now() + 60_000";
      startNode(1, { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(ahead)}` });
      await fires("CarillonClockSkew", { instance: `127.0.0.1:${ports[1]}` });
      await kill(1);
      startNode(1);
      await allEnd();
    });

    it("CarillonNodeNotReady and CarillonBehind: Redis refuses writes", async () => {
      await setting("min-replicas-to-write", "1");
      await fires("CarillonNodeNotReady", { instance: `127.0.0.1:${ports[0]}`, reason: "REDIS_UNAVAILABLE" });
      await fires("CarillonBehind", { queue: "good" });
      await setting("min-replicas-to-write", "0");
      await allEnd();
    });

    it("CarillonStopped: all nodes are killed", async () => {
      for (const i of [0, 1]) await kill(i);
      await fires("CarillonStopped");
      for (const i of [0, 1]) startNode(i);
      await allEnd();
    });

    it("CarillonEmpty: Redis loses its data under the nodes", async () => {
      await internalsOf(storeOf(client)).link.client.flushall();
      await fires("CarillonEmpty");
      await client.put({ id: "tick", queue: "good", type: "good", schedule: { every: "1s" } });
      await allEnd();
    });

    it("all have fired", () => {
      expect([...fired].sort()).toEqual([...ALL].sort());
    });
  },
);
