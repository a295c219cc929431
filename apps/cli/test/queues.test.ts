import { Readable, Writable } from "node:stream";
import { operatorOf } from "@carillon/ops";
import { Client } from "@carillon/sdk";
import { internalsOf, storeOf } from "@carillon/sdk/internal";
import { freePort } from "@carillon/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { nodeInfo } from "../../../test/helpers.js";
import { harness, task } from "./harness.js";
import { carillon, carillonOn, type Ended } from "./helpers.js";

const bench = harness("queues");
const { cli, json, refusal } = bench;

describe("queues", () => {
  it("are listed with tasks, jobs, workers and outcomes; for one owner only its tasks", async () => {
    expect((await cli(["queues"])).stdout).toBe("No queues.\n");
    await bench.client.putMany([task("a"), task("b", { owner: "acme" })]);
    const keys = internalsOf(storeOf(bench.client)).keys.queue("bar");
    await internalsOf(storeOf(bench.client)).link.client.hset(keys.outcomes, "succeeded", 3, "timed-out", 1);
    expect((await cli(["queues"])).stdout).toBe(
      "QUEUE  TASKS  PAUSED  WAITING  ACTIVE  WORKERS  LIMIT  OLDEST  RUNS\n" +
        "bar        2  no            0       0        0  -           -  3 succeeded, 1 timed-out\n",
    );
    const {
      queues: [all],
    } = await json(["queues"]);
    expect(all).toMatchObject({
      name: "bar",
      tasks: 2,
      waiting: 0,
      active: 0,
      workers: 0,
      outcomes: { succeeded: 3, lost: 0 },
    });
    expect(all).not.toHaveProperty("paused");
    expect(await json(["queues", "--owner", "acme"])).toEqual({
      queues: [{ name: "bar", tasks: 1, workers: 0 }],
    });
  });

  it("show BullMQ's own limits", async () => {
    await bench.client.put(task("a"));
    const { link, keys } = internalsOf(storeOf(bench.client));
    const meta = `${keys.queue("bar").bull}meta`;
    await link.client.hset(meta, { concurrency: 1, max: 100, duration: 60_000 });
    expect((await cli(["queues"])).stdout).toMatch(/ 1 run at a time, 100 runs per 1 min +-$/m);
    const limit = { runs: 1, rate: { jobs: 100, ms: 60_000 } };
    expect(await json(["queues"])).toMatchObject({ queues: [{ limit }] });
    await link.client.hdel(meta, "concurrency", "max", "duration");
  });

  it("get a note about other namespaces if this one is empty, except for a bound owner", async () => {
    await bench.client.put(task("a"));
    const { stderr } = await cli(["queues"]);
    expect(stderr).toBe("");
    const { namespace } = bench;
    for (const args of [["queues"], ["list"], ["list", "--all"], ["status"], ["doctor"]]) {
      const typo = await cli([...args, "--namespace", "typo"]);
      expect(typo.stderr).toMatch(
        /^carillon: nothing is stored in the namespace typo\. This Redis also has /,
      );
      expect(typo.stderr).toMatch(new RegExp(`[ ,]${namespace}[ ,].*\\(--namespace\\)\\.\n$`));
      const bound = await cli([...args, "--namespace", "typo", "--owner", "acme"]);
      expect(bound.stderr).not.toContain(namespace);
      expect((await cli([...args, "--json", "--namespace", "typo"])).stderr).toBe("");
    }
    const bound = new Client({ connection: bench.redis.url, owner: "acme" });
    await expect(operatorOf(bound).namespaces.list()).rejects.toMatchObject({ code: "FORBIDDEN" });
    await bound.close();
  });

  it("show their pauses with author and reason, and missing workers", async () => {
    await bench.client.put(task("a"));
    await bench.client.trigger("a");
    await operatorOf(bench.client).queues.pause({ queue: "bar", note: "de\nploy" }, { by: "ann" });
    const { stdout } = await cli(["queues"]);
    expect(stdout).toMatch(/^bar +1 {2}yes +1 +0 +0 +- +\d+ m?s$/m);
    expect(stdout).toMatch(/\nbar is paused since .* \(.*\) by ann: de\\nploy\n/);
    expect(stdout).toContain("\nbar has 1 waiting job and no worker. ");
    const {
      queues: [{ paused, oldestWaitingMs }],
    } = await json(["queues"]);
    expect(paused).toEqual({ at: expect.any(Number), by: "ann", note: "de\nploy" });
    expect(oldestWaitingMs).toEqual(expect.any(Number));
  });
});

describe("status", () => {
  const beat = async (ready: boolean) => {
    const { registry } = storeOf(bench.client);
    const beat = await storeOf(bench.client).serverTime();
    await registry.beat(nodeInfo("n", { every: 600_000, beat, ready }));
  };

  it("prints one line and the reasons, with an exit code for each verdict", async () => {
    const stopped = await cli(["status"]);
    expect(stopped.code).toBe(11);
    expect(stopped.stdout).toMatch(/^stopped: no scheduler node is alive\n\n.*\[NO_NODE\]\n {2}Start one/);
    await beat(true);
    expect(await cli(["status"])).toMatchObject({
      code: 0,
      stdout: "on time\n\n1 node, 0 workers, 0 queues\n",
      stderr: expect.stringMatching(/^carillon: nothing is stored in the namespace .*\n$/),
    });
    await bench.client.put(task("a"));
    const { link, keys } = internalsOf(storeOf(bench.client));
    await link.client.zadd(keys.queue("bar").next, (await bench.client.serverTime()) - 19_800_000, "0");
    const behind = await cli(["status"]);
    expect(behind.code).toBe(10);
    expect(behind.stdout).toMatch(
      /^5 h \d+ min behind\n\nThe queue bar .* \[OVERDUE\] since .*\(5 h \d+ min ago\)\n/,
    );
    expect(behind.stdout).toMatch(/^bar +5 h \d+ min +no +0 +- +0 +0$/m);
    await operatorOf(bench.client).queues.pause({ queue: "bar", note: "de\nploy" }, { by: "ann" });
    const paused = await cli(["status", "--json"]);
    expect(paused.code).toBe(10);
    expect(JSON.parse(paused.stdout)).toMatchObject({
      reasons: [{ code: "OVERDUE" }],
      notes: [{ code: "QUEUE_PAUSED" }],
    });
    expect((await cli(["status"])).stdout).toMatch(
      /\n\nNotes:\n\nThe queue bar is paused by ann: de\\nploy\. \[QUEUE_PAUSED\]/,
    );
  });

  it("repeats with --watch until the reader leaves, and is stopped without Redis", async () => {
    const shown: string[] = [];
    const stdout = new Writable({
      write(chunk, _, done) {
        shown.push(String(chunk));
        done(shown.length < 2 ? null : Object.assign(new Error("left"), { code: "EPIPE" }));
      },
    });
    const ended = await carillonOn({ stdin: Readable.from([]), stdout }, ["status", "--watch"], bench.env);
    expect(ended).toEqual({ code: 11, stderr: "" });
    expect(shown).toHaveLength(2);
    const redis = `redis://127.0.0.1:${await freePort()}`;
    // Both wait for it.
    const asked = ["status", "doctor"].map((verb) => carillon([verb, "--redis", redis]));
    const [away, doctor] = (await Promise.all(asked)) as [Ended, Ended];
    expect(away.code).toBe(11);
    expect(away.stdout).toMatch(/^stopped: Redis cannot be reached/);
    expect(doctor).toMatchObject({ code: 11, stderr: "" });
    expect(doctor.stdout).toMatch(
      /^error: Redis cannot be reached.*\n.*\n\n0 of 0 tasks read\nnot checked: /,
    );
  });
});

it("default policies are set, listed and removed", async () => {
  expect((await cli(["defaults"])).stdout).toBe("No defaults.\n");
  const set = ["defaults", "set", "all", '{"timeLimit":"50%"}'];
  expect((await cli(set)).stdout).toBe("set the defaults of all\n");
  expect((await cli(set)).stdout).toBe("unchanged: all\n");
  expect((await cli(["defaults"])).stdout).toBe('all {"timeLimit":"50%"}\n');
  expect(await refusal(["defaults", "set", "all", "{"])).toMatchObject({ exit: 2 });
  expect(await refusal(["defaults", "set", "acme", "{}"])).toMatchObject({ exit: 2, code: "INVALID_OPTION" });
  expect(await json(["defaults", "rm", "all"])).toEqual({ changed: true });
  expect(await json(["defaults"])).toEqual({ defaults: {} });
});

describe("a queue", () => {
  beforeEach(() => bench.client.put(task("a")));

  it("is paused with reason and author, and resumed", async () => {
    const pause = ["queues", "pause", "bar", "--note", "deploy", "--by", "ann"];
    const dry = await json([...pause, "--dry-run"]);
    expect(dry).toMatchObject({ queue: "bar", holds: { tasks: 1 } });
    expect(dry).not.toHaveProperty("state");
    expect((await cli(pause)).stdout).toMatch(/^paused bar\nholds 1 task, \d+ starts? until .*\n$/);
    expect((await cli(pause)).stdout).toMatch(/^was paused already: bar\n/);
    expect(await json(pause)).toMatchObject({ queue: "bar", state: "paused", changed: false });
    expect((await operatorOf(bench.client).queues.list()).queues[0]?.paused).toMatchObject({
      note: "deploy",
      by: "ann",
    });
    expect((await cli(["queues", "resume", "bar"])).stdout).toBe("resumed bar\n");
    expect((await cli(["queues", "resume", "bar"])).stdout).toBe("was not paused: bar\n");
    expect(await json(["queues", "resume", "bar"])).toEqual({ queue: "bar", changed: false });
  });

  it("limits the runs of each owner", async () => {
    expect((await cli(["queues", "limits", "bar"])).stdout).toBe("No limits.\n");
    expect((await cli(["queues", "limit", "bar", "acme", "1"])).stdout).toBe("bar: 1 run for acme\n");
    expect(await json(["queues", "limit", "bar", "*", "50"])).toMatchObject({ runs: 50, changed: true });
    expect((await cli(["queues", "limits", "bar"])).stdout).toMatch(/^acme: 1$/m);
    expect(await json(["queues", "limits", "bar"])).toEqual({ queue: "bar", limits: { acme: 1, "*": 50 } });
    expect(await refusal(["queues", "limit", "bar", "acme", "many"])).toMatchObject({ exit: 2 });
    expect((await cli(["queues", "limit", "bar", "acme", "none"])).stdout).toBe("bar: no limit for acme\n");
    expect(await json(["queues", "limits", "bar"])).toEqual({ queue: "bar", limits: { "*": 50 } });
  });

  it("is deleted with its content, only with --all", async () => {
    await bench.client.trigger("a");
    const { message, ...rest } = await refusal(["queues", "rm", "bar"]);
    expect(rest).toMatchObject({ exit: 2, code: "INVALID_OPTION", field: "all" });
    expect(message).toBe(
      "all: missing. queues rm means all of bar: 1 task, 1 waiting and 0 active jobs. Add --all to go on.",
    );
    expect((await refusal(["queues", "rm", "baz"])).message).toContain("all of baz: no tasks.");
    expect((await operatorOf(bench.client).names.list({ of: "queue" })).names).toEqual(["bar"]);
    expect((await cli(["queues", "rm", "bar", "--all"])).stdout).toBe("deleted bar with 1 task\n");
    expect((await operatorOf(bench.client).names.list({ of: "queue" })).names).toEqual([]);
    expect(await json(["queues", "rm", "bar", "--all"])).toEqual({ queue: "bar", deleted: true, count: 0 });
    expect(await refusal(["queues", "rm", "bar", "--all", "--owner", "acme"])).toMatchObject({
      code: "FORBIDDEN",
    });
  });
});
