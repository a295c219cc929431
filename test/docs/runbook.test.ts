import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { OPERATIONS, operatorOf } from "@carillon/ops";
import { type Context, defineTask, type TaskInput } from "@carillon/sdk";
import { alertWebhook } from "@carillon/sdk/http";
import { bullVersion, Store, VERSION } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { type TestKit, type TestKitOptions, testKit } from "@carillon/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { z } from "zod";
import { carillon } from "../../apps/cli/test/helpers.js";
import { nodeInfo, ownRedis, workerInfo } from "../helpers.js";
import { anything } from "../seeds/harness.js";

/*
 * Faults, each planted on a real Redis under a node and a worker in virtual time. `status` and `doctor` must report it, and the commands of
 * their remedy are typed as they are printed. Each section of the runbook has a fault on which its commands are typed as they stand there.
 */

const [QUEUE, ALERTS] = ["bells", "carillon-alerts"];
const START = Date.parse("2026-01-01T00:00:00Z");
const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];
const YEAR = 365 * 24 * HOUR;
const REFUSED = new Error("connect ECONNREFUSED 10.0.0.5:5432");
const BULLMQ = await bullVersion();

const redis = ownRedis({ appendonly: true, config: { "slowlog-log-slower-than": -1 } });
/** Settings that faults change, as they were. */
const SOUND = {
  appendonly: "yes",
  "maxmemory-policy": "noeviction",
  maxmemory: "0",
  "min-replicas-to-write": "0",
  requirepass: "",
};

let kit: TestKit;
/** Time by which Redis is ahead of what the node has done. */
let ahead = 0;
/** What the type `ring` does. */
let handler: (context: Context) => unknown;
/** Values of the names in capitals. */
let names: Record<string, string>;
/** A Redis to connect to, instead of the store in virtual time. */
let url: string | undefined;
/** Closes what a test has opened. */
const closing: (() => unknown)[] = [];

const ring = defineTask("ring", {
  queue: QUEUE,
  payload: anything,
  handler: async (_payload, context) => void (await handler(context)),
});
const fail = () => Promise.reject(REFUSED);
const hang = ({ signal }: Context) => kit.sleep("1d", { signal });
const ops = () => operatorOf(kit.client);
const link = () => internalsOf(kit.store).link.client;
const keys = (queue = QUEUE) => internalsOf(kit.store).keys.queue(queue);
const admin = (...command: string[]) => link().call(...(command as [string, ...string[]]));
const config = (name: string, value: string) => admin("CONFIG", "SET", name, value);
const put = (id: string, more: Partial<TaskInput> = {}) =>
  kit.client.put({
    ...{ id, owner: "acme", type: "ring", queue: QUEUE, schedule: { every: "1d" } },
    ...{ tags: ["db-main"], overlap: "allow" },
    ...more,
  });
const trigger = async (id: string) => {
  const triggered = await kit.client.trigger(`acme/${id}`);
  return "run" in triggered ? triggered.run : "";
};
const node = (id: string, more: object = {}) =>
  kit.store.registry.beat({
    ...nodeInfo(id, { version: VERSION, bullmq: BULLMQ, every: YEAR, beat: kit.now }),
    ...more,
  });
const worker = (id: string, more: object = {}) =>
  kit.store.registry.beatWorker({
    ...workerInfo(id, { every: YEAR, beat: kit.now, queues: [QUEUE], types: ["ring"] }),
    versions: { carillon: VERSION, bullmq: BULLMQ, node: "20" },
    ...more,
  });
/** Redis answers to `INFO` with other fields. */
const informs = (change: (text: string) => string) => {
  const { info } = link();
  vi.spyOn(link(), "info").mockImplementation(async () => change(await info.call(link())));
};
const informsAgain = () => vi.mocked(link().info).mockRestore();
/** Alerts of a failure go to this address. */
const alertsTo = (address: string, more: object = {}) => ({
  alerts: [{ on: ["failed" as const], url: address, ...more }],
});
/** Redis' clock goes on, and no node claims. */
async function late(ms: number): Promise<void> {
  ahead = ms;
  await link().set(`{${kit.namespace}}:~clock`, String(kit.now + ms));
}
/** A server that answers with this status, and a worker that may send to it. */
async function receiver(status: { code: number }): Promise<{ address: string; opening: TestKitOptions }> {
  const server = createServer((_request, response) => response.writeHead(status.code).end());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(() => server.close());
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const webhook = alertWebhook({ signingKey: "a key of more than sixteen characters", allow: [host] });
  names["URL"] = `http://${host}/alerts`;
  return { address: names["URL"], opening: { types: [ring, webhook] } };
}

async function open(options: TestKitOptions = {}): Promise<void> {
  kit = await testKit({ redis, start: START, types: [ring], ...options });
  closing.push(async () => {
    await admin("REPLICAOF", "NO", "ONE");
    for (const [name, value] of Object.entries(SOUND)) await config(name, value);
    await kit.close();
  });
  await node("n");
}

beforeEach(async () => {
  [ahead, url, handler] = [0, undefined, () => {}];
  names = { QUEUE, OWNER: "acme", TAG: "db-main", TASK: "acme/report", WHY: "INC-77", RUNS: "10" };
  names["TIME"] = new Date(START).toISOString();
  const probe = new Store({ connection: redis.url });
  const registry = Object.getPrototypeOf(probe.registry) as typeof probe.registry;
  await probe.close();
  vi.spyOn(Store.prototype, "serverTime").mockImplementation(async () => kit.now + ahead);
  // The kit's worker beats in real time.
  const { beatWorker } = registry;
  vi.spyOn(registry, "beatWorker").mockImplementation(function (this: typeof registry, info) {
    const own = info.pid === process.pid && { beat: kit?.now ?? START, every: YEAR };
    return beatWorker.call(this, { ...info, ...own });
  });
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  vi.restoreAllMocks();
});

/** Commands that were typed, with their names. */
const typed = new Set<string>();

/** Types a command line. @returns what it prints to stdout */
async function type(line: string): Promise<string> {
  if (line.startsWith("CONFIG ")) return String(await admin(...line.split(" ")));
  const [command = "", ...pipe] = line.split(" | ");
  const filled = command.replace(/\b[A-Z]{2,}\b/g, (name) => {
    if (names[name] === undefined) throw new Error(`No value for ${name}: ${line}`);
    return names[name];
  });
  typed.add(filled);
  const [program, ...args] = filled.split(" ");
  expect(program).toBe("carillon");
  const env = { REDIS_URL: url ?? redis.url, CARILLON_NAMESPACE: kit.namespace, USER: "ann", EDITOR };
  const running = carillon(args, { env, ...(url === undefined && { store: kit.store }) });
  // It waits for a worker.
  if (args.join(" ").startsWith("alerts test")) {
    let over = false;
    void running.finally(() => {
      over = true;
    });
    while (!over) await kit.advance(0);
  }
  const { code, stdout, stderr } = await running;
  await kit.store.changes.settled();
  const verdict = ["status", "doctor"].includes(args[0] ?? "") && [10, 11].includes(code ?? 0);
  expect({ line, code: verdict ? 0 : code, stderr }).toMatchObject({ code: 0 });
  const [, id] = /^(?:freeze|silence) (\S+):|carillon undo (\S+) takes/m.exec(stdout)?.filter(Boolean) ?? [];
  if (id !== undefined) names["ID"] = id;
  return pipe.length === 0 ? stdout : piped(stdout, pipe);
}

/** Types what the rest of a pipe makes of the output of a command. */
async function piped(stdout: string, [filter = "", each = "", ...more]: string[]): Promise<string> {
  expect([each.startsWith("xargs -L1 carillon "), more]).toEqual([true, []]);
  const lines = execFileSync("sh", ["-c", filter], { input: stdout, encoding: "utf8" });
  const outputs: string[] = [];
  for (const line of lines.trim().split("\n")) outputs.push(await type(`${each.slice(10)} ${line}`));
  return outputs.join("");
}

/** An editor that mends a time zone. */
const EDITOR = "sed -i s/Mars.Olympus/UTC/";

interface Printed {
  /** Absent: by the status. */
  readonly severity?: string | undefined;
  readonly code: string;
  readonly text: string;
  readonly remedy: string;
}

/** The findings, or the reasons and notes, with their remedies, as they are printed. Neighbours may share one. */
function printed(stdout: string): Printed[] {
  const found: (Printed & { remedy: string })[] = [];
  for (const line of stdout.split("\n")) {
    const [, severity, text, code] =
      /^(?:(error|warning): )?(.*) \[([A-Z_]+)\](?: since .*)?$/.exec(line) ?? [];
    if (text !== undefined && code !== undefined) found.push({ severity, code, text, remedy: "" });
    else if (line.startsWith("  ")) for (const one of found) one.remedy ||= line.trim();
  }
  return found;
}
async function examined(): Promise<Printed[]> {
  const stdout = await type("carillon doctor");
  expect(stdout).not.toContain("s3cret");
  return printed(stdout);
}

/** Commands within a sentence: each ends with a mark, or with the text. */
const commandsIn = (remedy: string) =>
  remedy
    .split(/(?=\bcarillon [a-z$])/)
    .filter((part) => part.startsWith("carillon "))
    .map((part) => (part.split(/[`"'\n]/)[0] ?? "").split(/[,;.)]+(?:\s|$)/)[0]?.trim() ?? "");

interface Fault {
  readonly code: string;
  /** Its sentence. */
  readonly says: RegExp;
  /** Nothing waits: the status does not have it. */
  readonly isQuiet?: true;
  /** Further codes. */
  readonly beside?: readonly string[];
  readonly open?: TestKitOptions | (() => Promise<TestKitOptions>);
  readonly plant: () => unknown;
  /** What must be done before the commands of its remedy work. */
  readonly first?: () => unknown;
  /** What its remedy asks for besides commands, and the time that passes until it ends. */
  readonly mend?: () => unknown;
}

const receiving = { code: 500 };

const FAULTS: Readonly<Record<string, Fault>> = {
  "Redis accepts no writes": {
    code: "REDIS_UNAVAILABLE",
    says: /^error: Redis accepts no writes: too few replicas/,
    plant: () => config("min-replicas-to-write", "1"),
    mend: () => config("min-replicas-to-write", "0"),
  },
  "this Redis is a replica": {
    code: "REDIS_READ_ONLY",
    says: /^error: This Redis is a read-only replica\.$/,
    beside: ["REPLICA"],
    plant: () => admin("REPLICAOF", "127.0.0.1", "1"),
    mend: () => admin("REPLICAOF", "NO", "ONE"),
  },
  "Redis is out of memory": {
    code: "REDIS_OUT_OF_MEMORY",
    says: /^error: Redis is out of memory\.$/,
    beside: ["MEMORY"],
    plant: () => config("maxmemory", "1"),
    mend: () => config("maxmemory", "0"),
  },
  "the password is wrong": {
    code: "REDIS_AUTH",
    says: /^error: Redis refused us: WRONGPASS/,
    plant: () => {
      url = redis.url.replace("redis://", "redis://nobody:wrong@");
    },
    mend: () => {
      url = redis.url;
    },
  },
  "the password was changed": {
    code: "REDIS_AUTH",
    says: /^error: Redis wants a password\.$/,
    plant: async () => {
      await config("requirepass", "secret");
      url = redis.url;
    },
    mend: () => {
      url = redis.url.replace("redis://", "redis://:secret@");
    },
  },
  "a key holds foreign data": {
    code: "REDIS_ERROR",
    says: /^error: .*WRONGTYPE/,
    plant: async () => {
      await link().del(`{${kit.namespace}}:queues`);
      await link().set(`{${kit.namespace}}:queues`, "foreign");
    },
    mend: () => link().del(`{${kit.namespace}}:queues`),
  },
  "Redis came back empty": {
    code: "EMPTY",
    says: /^error: Redis has lost its data: no task of this namespace is left\.$/,
    beside: ["HISTORY_LOST"],
    plant: () => node("n", { lost: { at: kit.now } }),
    mend: () => put("report"),
  },
  "no node is alive": {
    code: "NO_NODE",
    says: /^error: No scheduler node is alive\.$/,
    plant: () => kit.store.registry.removeNode("n"),
    mend: () => node("n"),
  },
  "no node is ready": {
    code: "NODES_NOT_READY",
    says: /^error: The node is not ready: Redis refused the user carillon-node\.$/,
    plant: () => node("n", { ready: false, why: "Redis refused the user carillon-node." }),
    mend: () => node("n"),
  },
  "the clock of Redis went back": {
    code: "CLOCK_WENT_BACK",
    says: /^error: The clock of Redis went back by 1 h: tasks that had run wait until .*T\S+/,
    plant: () => kit.store.registry.countBeat(kit.now + HOUR),
    mend: () => kit.advance("1h"),
  },
  "AOF is off": {
    code: "AOF_OFF",
    says: /^error: Appendonly is off: a restart of Redis loses acknowledged writes\.$/,
    plant: async () => {
      await config("appendonly", "no");
      await node("n", { unsafe: [{ code: "AOF_OFF", since: kit.now }] });
    },
    mend: async () => {
      await config("appendonly", "yes");
      await node("n");
    },
  },
  "Redis evicts": {
    code: "EVICTION",
    says: /^error: Maxmemory-policy is allkeys-lru: Redis may drop tasks and jobs\.$/,
    plant: async () => {
      await config("maxmemory-policy", "allkeys-lru");
      await node("n", { unsafe: [{ code: "EVICTION", policy: "allkeys-lru", since: kit.now }] });
    },
    mend: async () => {
      await config("maxmemory-policy", "noeviction");
      await node("n");
    },
  },
  "Redis hides its settings": {
    code: "UNKNOWN_SETTINGS",
    says: /^warning: Redis does not show appendonly and maxmemory-policy\.$/,
    plant: () => informs((text) => text.replace(/^(aof_enabled|maxmemory_policy):.*$/gm, "")),
    mend: informsAgain,
  },
  "Redis cannot save": {
    code: "PERSISTENCE_FAILS",
    says: /^error: Redis has rdb_last_bgsave_status:err\.$/,
    plant: () => informs((text) => text.replace("rdb_last_bgsave_status:ok", "rdb_last_bgsave_status:err")),
    mend: informsAgain,
  },
  "memory is nearly full": {
    code: "MEMORY",
    says: /^warning: Redis uses \d+% of its maxmemory; at 100% it refuses writes\.$/,
    plant: async () => {
      const [info] = await kit.store.info();
      await config("maxmemory", String(Math.round((info?.memory.used ?? 0) * 1.1)));
    },
    mend: () => config("maxmemory", "0"),
  },
  "a replica lags": {
    code: "REPLICA",
    says: /^warning: The replica slave0 has not answered for 15 s\.$/,
    plant: () =>
      informs((text) => `${text}\r\nslave0:ip=10.0.0.2,port=6379,state=online,offset=1,lag=15\r\n`),
    mend: informsAgain,
  },
  "Redis answers slowly": {
    code: "SLOW_REDIS",
    says: /^warning: Redis takes 300 ms to answer the nearest node, so that each claim is late\.$/,
    plant: () => node("n", { roundTrip: 300 }),
    mend: () => node("n", { roundTrip: 2 }),
  },
  "the network to a node is slow": {
    code: "SLOW_REDIS",
    says: /^warning: Redis takes 300 ms to answer the node m on h, and 2 ms to answer the nearest\.$/,
    plant: async () => {
      await node("n", { roundTrip: 2 });
      await node("m", { roundTrip: 300 });
    },
    mend: () => node("m", { roundTrip: 2 }),
  },
  "Redis went back to an older state": {
    code: "HISTORY_LOST",
    says: /^warning: Redis went back to an older state 0 ms ago: it has lost what was written in the 45 s before\.$/,
    plant: async () => {
      await put("report");
      await node("n", { lost: { at: kit.now, to: kit.now - 45 * SECOND } });
    },
    mend: () => node("n"),
  },
  "two nodes have one id": {
    code: "SAME_NODE_ID",
    says: /^warning: 2 nodes have the id twin: process 1 on h, process 1 on h\.$/,
    plant: async () => {
      for (const instance of ["a", "b"]) await node("twin", { instance });
    },
    mend: () => kit.store.registry.removeNode("twin", "b"),
  },
  "a node died": {
    code: "NODE_DEAD",
    says: /^warning: Last heard of, and not stopped in good order: node m on h \(1 min 30 s ago\)\.$/,
    plant: () => node("m", { beat: kit.now - 90 * SECOND, every: 10 * SECOND }),
    mend: () => kit.store.registry.removeNode("m"),
  },
  "a worker died": {
    code: "WORKER_DEAD",
    says: /^warning: Last heard of, and not stopped in good order: worker v on h \(1 min 30 s ago\)\.$/,
    plant: () => worker("v", { beat: kit.now - 90 * SECOND, every: 5 * SECOND }),
    mend: () => kit.store.registry.removeWorker("v"),
  },
  "one of two nodes does not claim": {
    code: "NODE_NOT_READY",
    says: /^warning: The node m on h does not claim: Redis refused the user carillon-node\.$/,
    plant: () => node("m", { ready: false, why: "Redis refused the user carillon-node." }),
    mend: () => node("m"),
  },
  "two versions run": {
    code: "VERSION_SKEW",
    says: /^warning: Processes that are alive have different versions of Carillon: .*9\.9\.9/,
    plant: () => node("m", { version: "9.9.9" }),
    mend: () => node("m"),
  },
  "two versions of BullMQ run": {
    code: "BULLMQ_SKEW",
    says: /^warning: .*different versions of BullMQ: 1\.0\.0, /,
    plant: () => worker("v", { versions: { carillon: VERSION, bullmq: "1.0.0", node: "20" } }),
    mend: () => worker("v"),
  },
  "time zone data differ": {
    code: "TZDATA_SKEW",
    says: /^warning: .*different versions of time zone data: 2020a, 2026a/,
    plant: () => node("m", { tzdata: "2020a" }),
    mend: () => node("m"),
  },
  "a clock is ahead": {
    code: "CLOCK",
    says: /^warning: The clock of node m is 5 s ahead of Redis\.$/,
    plant: () => node("m", { clockOffset: 5 * SECOND }),
    mend: () => node("m"),
  },
  "a clock is behind": {
    code: "CLOCK",
    says: /^warning: The clock of node m is 5 s behind Redis\.$/,
    plant: () => node("m", { clockOffset: -5 * SECOND }),
    mend: () => node("m"),
  },
  "all alerts are silenced": {
    code: "SILENCED",
    says: /^warning: All alerts are silenced by ann until .*: INC-77\.$/,
    plant: () => type("carillon silence --all --until 1h --note WHY --by ann"),
  },
  "a freeze holds": {
    code: "FROZEN",
    says: /^warning: Tag db-main: frozen by ann until .*: INC-77\.$/,
    plant: () => type("carillon freeze --tag TAG --until 1h --note WHY --by ann"),
  },
  "a queue is paused": {
    code: "QUEUE_PAUSED",
    says: /^warning: The queue bells is paused by ann: INC-77\.$/,
    plant: async () => {
      await put("report");
      await type("carillon queues pause QUEUE --note WHY --by ann");
    },
  },
  "a queue is paused by plain BullMQ": {
    code: "QUEUE_PAUSED",
    says: /^error: The queue bells is paused\.$/,
    plant: async () => {
      await put("report");
      await link().hset(`${keys().bull}meta`, "paused", 1);
    },
  },
  "no worker works a queue": {
    code: "NO_WORKER",
    says: /^error: No worker works the queue bells\.$/,
    open: { worker: false },
    plant: async () => {
      await put("report");
      await trigger("report");
    },
    mend: async () => {
      await kit.work({ types: [ring] });
      await kit.advance(0);
    },
  },
  "a queue has tasks and no worker": {
    code: "NO_WORKER",
    says: /^error: No worker works the queue other\.$/,
    isQuiet: true,
    plant: () => put("a", { queue: "other" }),
    mend: () => worker("v", { queues: ["other"] }),
  },
  "a worker lacks a type": {
    code: "NO_WORKER",
    says: /^error: The worker v fails the runs of type ring that it takes from the queue bells: it does not have the type\.$/,
    plant: async () => {
      await put("report");
      await worker("v", { types: ["x"], lacking: [{ queue: QUEUE, type: "ring", since: kit.now }] });
    },
    mend: () => kit.store.registry.removeWorker("v"),
  },
  "a type has no worker": {
    code: "TYPE_UNHANDLED",
    says: /^error: No worker of the queue bells handles the type unknown: its 1 worker does not have it\.$/,
    plant: () => put("a", { type: "unknown" }),
    mend: () => worker("v", { types: ["unknown"] }),
  },
  "workers take no jobs": {
    code: "JOBS_NOT_TAKEN",
    says: /^error: The queue bells: 1 job has waited for 20 s, and its worker takes none\.$/,
    plant: async () => {
      await put("report");
      await kit.worker.pause();
      await trigger("report");
      await kit.advance("20s");
    },
    mend: async () => {
      await kit.worker.resume();
      await kit.advance(0);
    },
  },
  "runs wait for workers that hang": {
    code: "JOBS_WAIT",
    says: /^warning: The queue bells: 2 jobs wait, the oldest for 1 min 10 s; its worker has 1 run under way for 1 min 10 s\.$/,
    open: { concurrency: 1 },
    plant: async () => {
      handler = hang;
      await put("report");
      names["RUN"] = await trigger("report");
      for (let i = 0; i < 2; i++) await trigger("report");
      await kit.advance("70s");
    },
    mend: () => kit.advance("1m"),
  },
  "a limit of BullMQ's holds jobs": {
    code: "JOBS_LIMITED",
    says: /^warning: The queue bells: 1 job has waited for 1 min 15 s; BullMQ's own limit of 1 run at a time holds them\.$/,
    plant: async () => {
      handler = ({ signal }) => kit.sleep("50s", { signal });
      await put("report");
      await link().hset(`${keys().bull}meta`, "concurrency", 1);
      for (let i = 0; i < 3; i++) await trigger("report");
      await kit.advance("75s");
    },
    mend: async () => {
      await link().hdel(`${keys().bull}meta`, "concurrency");
      // BullMQ's workers check again every few seconds of real time.
      await link().zadd(`${keys().bull}marker`, 0, "0");
      await kit.advance("2m");
    },
  },
  "an occurrence is overdue": {
    code: "OVERDUE",
    says: /^warning: The queue bells has occurrences that are due and that no node has claimed: 2 of 3 are of owner acme\.$/,
    plant: async () => {
      for (const id of ["a", "b"]) await put(id, { schedule: { every: "1m" } });
      await put("c", { owner: "other", schedule: { every: "1m" } });
      await late(90 * SECOND);
    },
    mend: async () => {
      ahead = 0;
      await kit.advance("2m");
    },
  },
  "a move was interrupted": {
    code: "TASK_HELD",
    says: /^error: The task acme\/report does not run: a move from queue bells to gongs holds it\.$/,
    open: { queues: ["gongs"] },
    plant: async () => {
      await put("report");
      const { moves } = kit.store;
      const { end } = moves;
      moves.end = () => Promise.reject(new Error("killed"));
      await expect(ops().tasks.move({ id: "report", owner: "acme", to: "gongs" })).rejects.toThrow("killed");
      moves.end = end;
      await kit.advance("2m");
    },
  },
  "most runs fail": {
    code: "RUNS_FAIL",
    says: /^warning: 12 of the newest 12 runs of the queue bells failed, 12 with: Error: connect ECONNREFUSED 10\.0\.0\.5:5432\.$/,
    plant: async () => {
      handler = fail;
      for (const owner of ["acme", "beta"])
        for (const id of ["a", "b", "c"]) await put(id, { owner, schedule: { every: "1m" } });
      await kit.advance("2m");
    },
    mend: async () => {
      handler = () => {};
      for (const { id } of (await ops().freezes.list()).freezes) await ops().freezes.delete({ id });
      await kit.advance("3m");
    },
  },
  "alerts wait for their delivery": {
    code: "ALERTS_UNDELIVERED",
    says: /^error: Alerts wait for their delivery: no worker works the queue carillon-alerts\.$/,
    beside: ["NO_DELIVERER"],
    plant: async () => {
      handler = fail;
      await put("report", alertsTo("https://example.com/hook"));
      await trigger("report");
      await kit.advance("1s");
    },
    mend: async () => {
      await kit.bullWorker(ALERTS, async () => ({}));
      await kit.advance(0);
    },
  },
  "a receiver refuses alerts": {
    code: "ALERTS_FAIL",
    says: /^warning: 1 delivery of alerts has failed or waits for another try, to 127\.0\.0\.1:\d+: HttpError: .* answered 500\.$/,
    open: async () => (await receiver(Object.assign(receiving, { code: 500 }))).opening,
    plant: async () => {
      handler = fail;
      await put("report", alertsTo(names["URL"] ?? ""));
      await trigger("report");
      await kit.advance("2s");
    },
    first: () => Object.assign(receiving, { code: 204 }),
    mend: () => kit.advance("1h"),
  },
  "alerts have no deliverer": {
    code: "NO_DELIVERER",
    says: /^error: 1 task has alerts by webhook, and no worker works the queue carillon-alerts\.$/,
    plant: () => put("a", alertsTo("https://example.com/hook")),
    mend: () => worker("v", { queues: [ALERTS], types: ["carillon.webhook"] }),
  },
  "the defaults have alerts without a deliverer": {
    code: "NO_DELIVERER",
    says: /^error: The defaults of all have alerts by webhook, and no worker works the queue carillon-alerts\.$/,
    plant: () => ops().defaults.set({ scope: "all", policies: alertsTo("https://example.com/hook") }),
    mend: () => worker("v", { queues: [ALERTS], types: ["carillon.webhook"] }),
  },
  "alerts by e-mail have a deliverer of webhooks": {
    code: "NO_DELIVERER",
    says: /^error: 1 task has alerts by e-mail, and no worker of the queue carillon-alerts handles the type carillon\.email: /,
    plant: async () => {
      await worker("v", { queues: [ALERTS], types: ["carillon.webhook"] });
      await put("a", { alerts: [{ on: ["failed"], email: "ops@example.com" }] });
    },
    mend: () => worker("v", { queues: [ALERTS], types: ["carillon.webhook", "carillon.email"] }),
  },
  "a service refuses the format of alerts": {
    code: "ALERT_FORMAT",
    says: /^error: 1 task has alerts to hooks\.slack\.com in the format json, which it refuses\.$/,
    beside: ["NO_DELIVERER"],
    plant: () => put("a", alertsTo("https://hooks.slack.com/services/s3cret")),
    mend: () => put("a", alertsTo("https://hooks.slack.com/services/s3cret", { format: "slack" })),
  },
  "a time zone is gone": {
    code: "NOT_PLANNED",
    says: /^error: acme\/a: Its schedule cannot be computed, so it does not run: .*Mars\/Olympus/,
    plant: async () => {
      await put("a");
      const schedule = JSON.stringify({ cron: "0 3 * * *", timezone: "Mars/Olympus" });
      await link().hset(keys().task("acme/a"), "schedule", schedule);
    },
  },
  "a queue was renamed in code": {
    code: "SAME_ID_ELSEWHERE",
    says: /^warning: Another task acme\/report is in the queue renamed: both run\.$/,
    open: { queues: ["renamed"] },
    plant: async () => {
      await put("report");
      await put("report", { queue: "renamed" });
    },
  },
  "a task never ran": {
    code: "NEVER_RAN",
    says: /^warning: acme\/report: It was put 3 min ago, its times have passed, and it never ran\.$/,
    beside: ["FROZEN"],
    plant: async () => {
      await put("report", { schedule: { every: "1m" } });
      await type("carillon freeze --tag TAG");
      await kit.advance("3m");
    },
    mend: async () => {
      await type("carillon unfreeze ID");
      await kit.advance("1m");
    },
  },
  "a limit holds a task": {
    code: "NEVER_RAN",
    says: /^warning: acme\/held: It was put 3 min ago, .* and it never ran: held by the limit of 1 run of owner acme\.$/,
    plant: async () => {
      handler = ({ occurrence, signal }) => occurrence.task === "long" && kit.sleep("1h", { signal });
      await put("long");
      await ops().queues.limit({ queue: QUEUE, owner: "acme", runs: 1 });
      await trigger("long");
      await kit.advance(0);
      await put("held", { schedule: { every: "1m" } });
      names["TASK"] = "acme/held";
      await kit.advance("3m");
    },
    mend: () => kit.advance("1m"),
  },
  "a run takes longer than its interval": {
    code: "RUN_TOO_LONG",
    says: /^warning: acme\/a: Its present run has taken 1 min 30 s, and it is due every 1 min\.$/,
    plant: async () => {
      handler = hang;
      await put("a", { schedule: { every: "1m" }, overlap: "skip" });
      await kit.advance("150s");
      handler = () => {};
    },
    mend: () => kit.advance("1m"),
  },
  "a run took longer than its interval": {
    code: "RUN_TOO_LONG",
    says: /^warning: acme\/a: Its last run took 1 min 30 s, and it is due every 1 min\.$/,
    plant: async () => {
      handler = ({ signal }) => kit.sleep("90s", { signal });
      await put("a", { schedule: { every: "1m" }, overlap: "skip" });
      await kit.advance("151s");
      handler = () => {};
    },
    mend: () => kit.advance("1m"),
  },
  "many are due at once": {
    code: "HERD",
    says: /^warning: 120 of the 120 tasks read of queue bells are due at .*\.$/,
    plant: async () => {
      const all = Array.from({ length: 120 }, (_, i) => ({
        ...{ id: `t${i}`, owner: "acme", type: "ring", queue: QUEUE },
        schedule: { cron: "0 9 * * *" },
      }));
      await kit.client.putMany(all);
      names["MINUTE"] = new Date(START + 9 * HOUR).toISOString();
    },
  },
  "a newer version wrote a task": {
    code: "UNREADABLE",
    says: /^error: acme\/a was written in format 99, which is newer than this version supports\.$/,
    plant: async () => {
      await put("a");
      await link().hset(keys().task("acme/a"), "v", "99");
    },
    mend: () => link().hdel(keys().task("acme/a"), "v"),
  },
  "the data of a task is corrupt": {
    code: "UNREADABLE",
    says: /^error: acme\/a holds corrupt or foreign data\.$/,
    plant: async () => {
      await put("a");
      await link().hset(keys().task("acme/a"), "schedule", "{");
    },
    mend: async () => {
      await type("carillon rm acme/a");
      await put("a");
    },
  },
  "an index names what is not there": {
    code: "ORPHAN",
    says: /^warning: 1 names in the indexes of queue bells have no definition: acme\/nobody\.$/,
    plant: async () => {
      await put("report");
      await link().zadd(keys().tasks, 0, "acme/nobody");
    },
    // As nodes do once a day.
    mend: () => kit.store.tasks.audit(QUEUE),
  },
};

/** Plants the fault. */
async function planted({ open: given = {}, plant }: Pick<Fault, "open" | "plant">): Promise<void> {
  await open(typeof given === "function" ? await given() : given);
  await plant();
}

type Codes = readonly z.ZodObject<{ code: z.ZodType }>[];
const codesOf = (options: unknown) =>
  (options as Codes).flatMap(({ shape }) => [...(shape.code._zod.values ?? [])].map(String));
const { doctor, status } = OPERATIONS.health;
const FINDINGS = codesOf(doctor.output?.shape.findings.unwrap().element.options);
const REASONS = codesOf(status.output?.shape.reasons.unwrap().element.options);

/** With this code a node refuses to start: no status has it. */
const NEVER = ["REDIS_UNSAFE"];

describe("a fault that status and doctor report", () => {
  it.each(Object.entries(FAULTS))("%s", async (_, fault) => {
    await planted(fault);
    const found = await examined();
    expect(found.map(({ code }) => code).sort()).toEqual([fault.code, ...(fault.beside ?? [])].sort());
    const { severity, text, remedy } = found.find(({ code }) => code === fault.code) as Printed;
    expect(`${severity}: ${text}`).toMatch(fault.says);
    expect(remedy).not.toBe("");
    if (REASONS.includes(fault.code) && !fault.isQuiet)
      expect(printed(await type("carillon status"))).toContainEqual({ code: fault.code, text, remedy });
    await fault.first?.();
    for (const command of commandsIn(remedy)) await type(command);
    await fault.mend?.();
    expect((await examined()).map(({ code }) => code)).not.toContain(fault.code);
  });

  it("is one of these for each code, and each command of a remedy was typed", () => {
    const known = new Set(Object.values(FAULTS).map(({ code }) => code));
    expect(FINDINGS.length).toBeGreaterThan(40);
    expect([...FINDINGS, ...REASONS].filter((code) => !known.has(code) && !NEVER.includes(code))).toEqual([]);
    const sources = ["finding", "status"].map((file) => read(`packages/ops/src/words/${file}.ts`));
    const shapes = commandsIn(sources.join("\n").replace(/\$\{[^{}"'`]*\}/g, "$X"));
    expect(shapes.length).toBeGreaterThan(15);
    const isTyped = (shape: string) => {
      const pattern = new RegExp(`^${shape.replace(/\$X|\b[A-Z]{2,}\b/g, "\\S+")}$`);
      return [...typed].some((line) => pattern.test(line));
    };
    expect(shapes.filter((shape) => !isTyped(shape))).toEqual([]);
  });
});

function read(file: string): string {
  return readFileSync(fileURLToPath(new URL(`../../${file}`, import.meta.url)), "utf8");
}

/** The commands of the page by heading, in blocks of code and within sentences. */
const PAGE = new Map(
  read("docs/runbook.md")
    .split(/^## /m)
    .map((part): [string, string[]] => [
      part.split("\n")[0] ?? "",
      [...part.matchAll(/^(carillon .*?)(?: +# .*)?$|`((?:carillon [a-z]|CONFIG SET )[^`]*)`/gm)].map(
        ([, line, inline]) => line ?? inline ?? "",
      ),
    ]),
);

/** Output of a command; before it something may happen. */
type Step = RegExp | readonly [() => unknown, RegExp];

interface Section extends Partial<Pick<Fault, "open" | "plant">> {
  /** The fault that it is about. Default: `plant`. */
  readonly fault?: string;
  /** One for each command. */
  readonly says: readonly Step[];
  /** Proves that the commands did what they are for. Default: the fault has ended. */
  readonly ends?: () => unknown;
}

const goesOn = async () => {
  handler = () => {};
  await kit.advance("3m");
};
const nothing = () => {};

const SECTIONS: Readonly<Record<string, Section>> = {
  "# Runbook": {
    fault: "no node is alive",
    says: [/^stopped: no scheduler node/, /\[NO_NODE\]/, /\[NO_NODE\]/],
  },
  CarillonStopped: { fault: "no node is alive", says: [/^No nodes\.$/m] },
  CarillonClockWentBack: { fault: "the clock of Redis went back", says: [/^stopped: .* went back by 1 h/] },
  CarillonTooFewNodes: { plant: nothing, says: [/^n +ready/m], ends: nothing },
  CarillonBehind: {
    fault: "an occurrence is overdue",
    says: [/^30 s behind/, /^Overdue in the queue bells: 2 of 3 are of owner acme\.$/m],
  },
  CarillonClaimsFailing: { fault: "an occurrence is overdue", says: [/^30 s behind/] },
  CarillonNoWorker: {
    fault: "no worker works a queue",
    says: [/^stopped: no worker works the queue bells/, /^No workers\.$/m],
  },
  CarillonJobsWait: {
    fault: "runs wait for workers that hang",
    says: [
      /^1 min 10 s behind/,
      /acme\/report/,
      /^asked for the end of/,
      /^asked for the end of 2 runs$/m,
      /^bells +1 +no/m,
    ],
  },
  CarillonJobsNotTaken: { fault: "workers take no jobs", says: [/ ready +.*bells/] },
  CarillonQueuePaused: {
    fault: "a queue is paused",
    says: [/^bells is paused since .* by ann: INC-77$/m, /^resumed bells$/m],
  },
  CarillonAlertsUndelivered: {
    fault: "alerts wait for their delivery",
    says: [/^stopped: alerts wait/, / ready +.*bells/, /acme\/report .*failed/],
  },
  CarillonAlertsFail: {
    fault: "a receiver refuses alerts",
    says: [
      /failed or waits for another try/,
      /^waiting +127\./m,
      [() => Object.assign(receiving, { code: 204 }), /^it arrived$/m],
    ],
  },
  CarillonTaskFailing: {
    async plant() {
      handler = fail;
      await put("report", { schedule: { every: "1m" } });
      await kit.advance("3m");
      names["RUN"] = (await kit.client.runs.list("acme/report"))[0]?.id ?? "";
    },
    says: [
      /(.*failed.*\n){3}/,
      /ECONNREFUSED/,
      [() => (handler = () => {}), /^enqueued acme\/report: run /],
      /^backfill \S+: 3 occurrences of acme\/report$/m,
      /^paused acme\/report$/m,
      [() => kit.advance("1m"), /^resumed acme\/report$/m],
    ],
    async ends() {
      await kit.advance("1m");
      const outcomes = (await kit.client.runs.list("acme/report")).map(({ outcome }) => outcome);
      expect(outcomes.filter((one) => one === "succeeded").length).toBeGreaterThanOrEqual(4);
    },
  },
  CarillonRunsFailing: {
    fault: "most runs fail",
    says: [
      /12 of the newest 12 runs of the queue bells failed/,
      / 12 .* 6 +6 +2 +1 .*ECONNREFUSED/,
      /^Nothing runs\.$/m,
      /^would hold 6 tasks/m,
      /^freeze \S+: tag db-main, until /,
      [goesOn, /^lifted /],
      /^replay means 12 runs of 6 tasks again, 600 a minute/,
      /^running 12 runs of 6 tasks again, 600 a minute/,
      [
        () => kit.advance("1m"),
        /^freezes skipped \d+ occurrences of 6 tasks in the last day; to run them:$/m,
      ],
      [frozenRun, /^"acme",6,6,0,3,0,/m],
    ],
  },
  CarillonRedisSlow: { fault: "Redis answers slowly", says: [/takes 300 ms to answer the nearest node/] },
  CarillonRedisUnsafe: {
    async plant() {
      await config("maxmemory-policy", "allkeys-lru");
      await config("appendonly", "no");
      const eviction = { code: "EVICTION", policy: "allkeys-lru", since: kit.now };
      await node("n", { unsafe: [{ code: "AOF_OFF", since: kit.now }, eviction] });
    },
    says: [/\[AOF_OFF\][\s\S]*\[EVICTION\]/, /^OK$/, /^OK$/],
    async ends() {
      await node("n");
      expect(await examined()).toEqual([]);
    },
  },
  "The watchdog outside": {
    async plant() {
      await put("watchdog", { owner: "system", queue: ALERTS });
      await kit.client.trigger({ queue: ALERTS, id: "watchdog" });
    },
    says: [/^stopped: alerts wait for their delivery/, /queued/, /watchdog/],
    async ends() {
      await kit.bullWorker(ALERTS, async () => ({}));
      await kit.advance(0);
      expect(await type("carillon status")).toMatch(/^on time/);
    },
  },
  "A task was deleted by mistake": {
    async plant() {
      for (const id of ["report", "other"]) await put(id);
      for (const id of ["report", "other"]) await kit.client.delete(`acme/${id}`, { by: "bob" });
      for (const id of ["first", "second"]) await put(id, { tags: ["crew"] });
      await ops().tasks.deleteMany({ tag: "crew" }, { by: "bob" });
      await kit.store.changes.settled();
    },
    says: [
      /^acme\/report +bells/m,
      /delete acme\/report in bells +by bob/,
      /acme\/report/,
      /^restored 2 tasks$/m,
      /acme\/other/,
    ],
    ends: async () =>
      expect((await kit.client.list()).tasks.map(({ id }) => id)).toEqual([
        "first",
        "other",
        "report",
        "second",
      ]),
  },
  "A deploy changed the wrong schedules": {
    async plant() {
      const deploy = (version: string, cron: string) => {
        const tasks = Array.from({ length: 12 }, (_, i) => ({
          ...{ id: `t${i}`, owner: "acme", type: "ring", queue: QUEUE, schedule: { cron } },
        }));
        return ops().sets.apply({ set: "crew", version, tasks }, { by: "bob" });
      };
      await deploy("1", "30 * * * *");
      await kit.advance("10m");
      await deploy("2", "0 9 * * *");
      await kit.advance("50m");
      [names["TASK"], names["TIME"]] = ["acme/t0", new Date(START + 30 * MINUTE).toISOString()];
    },
    says: [
      /apply 12 tasks of set crew +by bob[\s\S]*"30 \* \* \* \*"\} -> \{"cron":"0 9 \* \* \*"\}/,
      /acme\/t0/,
      /^restored 12 tasks$/m,
      /00:30/,
      /^backfill \S+: 1 occurrence of acme\/t0$/m,
    ],
    async ends() {
      await kit.advance("30m");
      await kit.expect("acme/t0").firedFor([START + 30 * MINUTE, START + 90 * MINUTE]);
    },
  },
  "Many tasks start at one instant": {
    fault: "many are due at once",
    says: [
      /09:00:00: 120 tasks meet/,
      /^spread means 120 tasks\nmost starts in \d+ s: \d+ instead of 120$/m,
      /^spread 120 tasks$/m,
      [async () => expect(await examined()).toEqual([]), /^restored 120 tasks$/m],
    ],
    ends: async () => expect(await examined()).toMatchObject([{ code: "HERD" }]),
  },
  "A limit holds runs": {
    fault: "a limit holds a task",
    says: [
      /acme\/held +held by the limit of 1 run of owner acme/,
      /^DUE .*: acme has 1 run in queue bells, as many as it may\./m,
      /^acme: 1$/m,
      /^bells: 10 runs for acme$/m,
      /^QUEUE .*LIMIT/,
    ],
  },
  "Nobody was notified": {
    open: async () => (await receiver(Object.assign(receiving, { code: 204 }))).opening,
    async plant() {
      handler = fail;
      await put("report", alertsTo(names["URL"] ?? ""));
      await type("carillon silence --owner OWNER --until 1h");
      await trigger("report");
      await kit.advance("2s");
    },
    says: [/failed .*acme\/report +silenced[\s\S]*owner acme/, /^ended /, /^it arrived$/m],
    async ends() {
      expect(await type("carillon alerts")).not.toContain("owner acme");
    },
  },
  "An upgrade stopped halfway": {
    fault: "two versions run",
    says: [/different versions of Carillon: .*9\.9\.9/, /^m +ready.* 9\.9\.9 /m, /^WORKER .*VERSION/],
  },
  Doctor: { fault: "no node is alive", says: [/^error: No scheduler node is alive\. \[NO_NODE\]$/m] },
};

/** Types the command that the plan of a resume names, and lets it work. */
async function frozenRun(): Promise<void> {
  const [command = ""] = commandsIn(await type("carillon resume --plan"));
  expect(await type(command)).toMatch(/^backfilling 6 tasks$/m);
  await kit.advance("3m");
}

describe("the runbook", () => {
  const withCommands = [...PAGE].filter(([, commands]) => commands.length > 0);

  it("has a fault for each section with commands", () => {
    expect(withCommands.map(([heading]) => heading)).toEqual(Object.keys(SECTIONS));
  });

  it.each(withCommands)("%s", async (heading, commands) => {
    const { fault: name = "", says, ends, ...own } = SECTIONS[heading] as Section;
    const fault = FAULTS[name];
    await planted({ ...fault, ...own } as Fault);
    expect(says.length).toBe(commands.length);
    for (const [i, command] of commands.entries()) {
      const [before, said] = [says[i] ?? []].flat() as [() => unknown, RegExp] | [RegExp];
      if (said) await (before as () => unknown)();
      expect(await type(command), command).toMatch((said ?? before) as RegExp);
    }
    if (ends) return void (await ends());
    await fault?.mend?.();
    expect((await examined()).map(({ code }) => code)).not.toContain(fault?.code);
  });
});
