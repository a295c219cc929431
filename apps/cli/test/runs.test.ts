import { operatorOf } from "@carillon/ops";
import { Client, defineTask, type Run, type TaskInput, Worker } from "@carillon/sdk";
import { openTelemetry, type Telemetry } from "@carillon/sdk/otel";
import { eventually } from "@carillon/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { SILENT } from "../../../test/helpers.js";
import { harness } from "./harness.js";
import { carillon } from "./helpers.js";

const bench = harness("runs", { shared: true });
const { cli, json, refusal } = bench;

const report = defineTask("report", {
  queue: "reports",
  payload: z.object({ fails: z.boolean(), waits: z.boolean() }).partial(),
  async handler({ fails, waits }, { log, signal }) {
    log("page 1\u001b[2J");
    if (waits)
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    if (fails) throw new Error("no paper\nin tray 2");
    return { pages: 3 };
  },
});
const mails = defineTask("mails", {
  queue: "reports",
  payload: z.object({}),
  generate: () => ["a", "b", "c"].map((to) => ({ to })),
  process: ({ to }) => {
    if (to === "b") throw new Error("no such address");
  },
});
const schedule = { at: "2100-01-01T00:00:00Z" };

/** A queue without workers. */
const IDLE = "idle";
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const put = (id: string, more: Partial<TaskInput> = {}) =>
  bench.client.put({ id, type: "report", queue: "reports", schedule, ...more });
const trigger = async (id: string) => {
  const triggered = await bench.client.trigger(id, { overlap: "allow" });
  return "run" in triggered ? triggered.run : "";
};

let worker: Worker;
beforeAll(async () => {
  worker = new Worker({
    connection: bench.redis.url,
    namespace: bench.namespace,
    types: [report, mails],
    logger: SILENT,
  });
  await worker.start();
  await put("good", {});
  await put("mails", { type: "mails" });
  await put("bad", { payload: { fails: true } });
  await put("long", { payload: { waits: true }, overlap: "allow" });
  await put("good", { owner: "acme" });
  await put("idle", { queue: IDLE });
});
afterAll(async () => {
  // A failed test may have left a run that waits until it is cancelled.
  await worker.stop({ within: 1_000 });
});

/** Triggers the task and waits until the run is in this state. */
async function runOf(id: string, state: Run["state"] = "final"): Promise<string> {
  const run = await trigger(id);
  return eventually(async () => (await bench.client.runs.get(run)).state === state && run);
}

describe("replay", () => {
  it("says how many runs of a range it means and until when, starts them at a pace, and names its batch", async () => {
    await put("replayed", { payload: { fails: true }, owner: "acme" });
    const range = ["--failures", "--from", "1h", "--task", "acme/replayed"];
    const triggered = await bench.client.trigger({ owner: "acme", id: "replayed" });
    const run = "run" in triggered ? triggered.run : "";
    await eventually(async () => (await bench.client.runs.get(run)).state === "final");
    const dry = await cli(["replay", ...range, "--per-minute", "30", "--dry-run"]);
    expect(dry.stdout).toMatch(/^replay means 1 run of 1 task again, 30 a minute, over by /);
    const started = await cli(["replay", ...range, "--per-minute", "30"]);
    expect(started.stdout).toMatch(/\nbatch b-[0-9a-f]{12}\n$/);
    expect((await cli(["replay", ...range, "--per-minute", "30"])).stdout).toContain("1 left out");
    expect(await cli(["replay", run, "none", "--dry-run"])).toMatchObject({ code: 5 });
    expect(await refusal(["replay", "--from", "1h"])).toMatchObject({ field: "RUN" });
    expect(await refusal(["replay", run, "--failures"])).toMatchObject({ field: "failures" });
    expect(await refusal(["replay", ...range, "--force"])).toMatchObject({ field: "force" });
    await bench.client.delete("acme/replayed");
  });
});

describe("run", () => {
  it("shows the record, the attempts and the output", async () => {
    const run = await runOf("good");
    expect(await json(["run", run])).toMatchObject({
      id: run,
      task: { queue: "reports", owner: "system", id: "good" },
      outcome: "succeeded",
      result: { pages: 3 },
      attemptList: [{ attempt: 1, worker: expect.any(String), host: expect.any(String), pid: process.pid }],
      output: [{ attempt: 1, text: "log page 1\u001b[2J\n", cut: false }],
    });
    const { stdout } = await cli(["run", run]);
    expect(stdout).toContain(`run       ${run}\ntask      system/good\nqueue     reports\n`);
    expect(stdout).toContain('result    {"pages":3}\n');
    expect(stdout).toMatch(/\nATTEMPT {2}STARTED +HOST +PID {2}WORKER\n +1 {2}/);
    expect(stdout).toContain("\nPrinted\n  log page 1\\u001b[2J\n");
  });

  it("links to the run's trace by CARILLON_TRACE_URL, which is checked", async () => {
    const produce: Telemetry["produce"] = (_operation, _sent, work) =>
      work(`00-${TRACE}-b7ad6b7169203331-01`);
    const telemetry = { ...openTelemetry(), produce };
    const client = new Client({ connection: bench.redis.url, namespace: bench.namespace, telemetry });
    const { run = "" } = await client.enqueue(report, {}, { queue: IDLE });
    await client.close();
    const withUrl = (url: string) =>
      carillon(["run", run], { env: { ...bench.env, CARILLON_TRACE_URL: url } });
    const { stdout } = await withUrl("https://traces.example/{traceId}?of={traceId}");
    expect(stdout).toContain(`trace     https://traces.example/${TRACE}?of=${TRACE}\n`);
    expect((await cli(["run", run])).stdout).not.toContain("trace ");
    expect(await withUrl("javascript:'{traceId}'")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("CARILLON_TRACE_URL: not the address of a trace. Use an http"),
    });
  });

  it("shows an error with its lines", async () => {
    const { stdout } = await cli(["run", await runOf("bad")]);
    expect(stdout).toContain("\nstate     failed\n");
    expect(stdout).toMatch(/\nError\n {2}Error: no paper\n {2}in tray 2\n/);
  });

  it("of another owner is not found", async () => {
    const run = await trigger("idle");
    expect(await refusal(["run", run, "--owner", "acme"])).toMatchObject({ exit: 3 });
    expect(await refusal(["cancel", run, "--owner", "acme"])).toMatchObject({ exit: 3 });
  });

  it("needs an id: of run one, of cancel as many as are given, or --all", async () => {
    for (const args of [["run"], ["run", "a@b.c", "d"], ["cancel"], ["cancel", "--all", "a@b.c"]])
      expect(await cli(args)).toMatchObject({ code: 2, stdout: "" });
  });
});

describe("the list of running runs", () => {
  it("has the worker of each, over all tasks", async () => {
    const run = await runOf("long", "running");
    const { runs: found } = await json(["running"]);
    const { id } = worker;
    expect(found).toMatchObject([{ id: run, state: "running", worker: id, host: expect.any(String) }]);
    expect(found[0].runningMs).toBeGreaterThanOrEqual(0);
    const { stdout } = await cli(["running", "long"]);
    expect(stdout).toMatch(/^ *FOR +USUAL +STARTED +QUEUE +TASK +TYPE +STATE +TRIES +WORKER +HOST +RUN\n/);
    expect(stdout).toMatch(new RegExp(` reports +system/long +report +running +1 +${id} .* ${run}\n$`));
    expect((await cli(["running", "good"])).stdout).toBe("Nothing runs.\n");
    expect(await json(["workers"])).toMatchObject({
      workers: [{ id, types: ["report", "mails"], alive: true }],
    });
    expect((await cli(["workers"])).stdout).toMatch(
      new RegExp(`\n${id} +ready .* reports +report mails +\\d+ `),
    );
    const {
      workers: [hers],
    } = await json(["workers", "--owner", "acme"]);
    expect(hers).toMatchObject({ id, runs: [] });
    await bench.client.runs.cancel(run);
    await eventually(async () => (await bench.client.runs.get(run)).state === "final");
  });
});

it("compare shows a run beside the last good one of its task", async () => {
  const [good, run] = [await runOf("good"), await runOf("good")];
  expect(await json(["compare", run])).toMatchObject({ run: { id: run }, good: { id: good } });
  expect((await cli(["compare", run])).stdout).toMatch(new RegExp(`^RUN .*\n${run} .*\n${good} .*\n$`));
  expect((await cli(["compare", await runOf("bad")])).stdout).toBe(
    "No good run of system/bad is recorded before it.\n",
  );
});

describe("cancel", () => {
  it("ends a running run, and reports it once", async () => {
    const run = await runOf("long", "running");
    const { stdout } = await cli(["cancel", run, "--by", "ann"]);
    expect(stdout).toBe(`asked for the end of ${run}\n`);
    const ended = await eventually(async () => {
      const found = await bench.client.runs.get(run);
      return found.state === "final" && found;
    });
    expect(ended).toMatchObject({ outcome: "cancelled", cancel: { by: "ann", at: expect.any(Number) } });
    expect(await refusal(["cancel", run])).toMatchObject({ exit: 5, code: "CONFLICT" });
    expect((await cli(["run", run])).stdout).toContain("\ncancel    asked for by ann, ");
  });

  it("stops a run from starting", async () => {
    const run = await trigger("idle");
    expect(await json(["cancel", run])).toEqual({ run, changed: true });
    const again = await cli(["cancel", run]);
    // No worker or node has settled the run yet.
    expect(again).toMatchObject({ code: 0, stdout: `was asked to end already: ${run}\n` });
  });
});

describe("journal", () => {
  it("lists ended runs of a task or all, in pages", async () => {
    const runs = [await runOf("good"), await runOf("bad"), await runOf("acme/good")];
    const ids = (page: { runs: Run[] }) => page.runs.map(({ id }) => id);
    expect(ids(await json(["journal", "-n", "3"]))).toEqual(runs.toReversed());
    expect(ids(await json(["journal", "bad", "-n", "1"]))).toEqual([runs[1]]);
    expect(ids(await json(["journal", "acme/good"]))).toEqual([runs[2]]);
    expect(ids(await json(["journal", "--owner", "acme"]))).toEqual([runs[2]]);
    expect(ids(await json(["journal", "--outcome", "failed", "-n", "1"]))).toEqual([runs[1]]);
    const first = await json(["journal", "-n", "2"]);
    const second = await json(["journal", "-n", "1", "--cursor", first.cursor]);
    expect([...ids(first), ...ids(second)]).toEqual(runs.toReversed());
    const all = ["journal", "--failures", "-n", "1"];
    expect(ids(await json(all))).toEqual([runs[1]]);
    const two = ["journal", "--outcome", "failed,lost", "--outcome", "succeeded", "-n", "3"];
    expect(ids(await json(two))).toEqual(runs.toReversed());
    expect((await cli([...all, "--outcome", "lost"])).stderr).toContain(
      "failures: cannot be combined with --outcome.",
    );
    expect((await cli(["journal", "--outcome", "failed,last"])).stderr).toContain(
      "Use one of succeeded, failed,",
    );
    const people = await cli(["journal", "-n", "2"]);
    expect(people.stdout).toMatch(
      /^FINISHED +QUEUE +TASK +OUTCOME +LATE +WAIT +TOOK +TRIES +NODE +WORKER +RUN +ERROR\n/,
    );
    expect(people.stdout).toMatch(/ reports +system\/bad +failed .* Error: no paper\n$/);
    expect(people.stderr).toMatch(/^There may be more: --cursor \S+\n$/);
  });

  it("groups failures by cause, or by whom they hit", async () => {
    for (let n = 0; n < 2; n++) await runOf("bad");
    const { groups } = await json(["journal", "--failures", "--group"]);
    expect(groups).toMatchObject([
      { cause: { outcome: "failed", error: "Error: no paper" }, tasks: 1, failing: 1 },
    ]);
    const { stdout } = await cli(["journal", "--failures", "--group", "-q", "reports"]);
    expect(stdout).toMatch(
      /^\d+ failed runs within 1 d\n *RUNS +MADE UP +OWED +TASKS +FAILING +OWNERS +QUEUES +FIRST/,
    );
    expect(stdout).toMatch(/ +failed +Error: no paper/);
    expect((await cli(["journal", "--group", "owner"])).stdout).toMatch(/\nOF +RUNS .*\nsystem +\d+ /);
    expect((await cli(["journal", "--group", "task", "--csv"])).stdout).toMatch(
      /^"group","runs",.*\n"reports system\/bad",\d+,0,\d+,1,1,"[-\dT:.]+Z","[-\dT:.]+Z","",""\n$/,
    );
    expect((await cli(["journal", "--group", "--to", "2020-01-01T00:00:00Z"])).stdout).toBe(
      "No failed runs within 1 d.\n",
    );
    expect((await cli(["journal", "--group", "--text", "x"])).stderr).toContain(
      "text: cannot be combined with --group.",
    );
    expect((await cli(["journal", "--group", "colour"])).stderr).toContain(
      "by: not one of cause, owner, queue, task.",
    );
  });

  it("filters by node, worker and time", async () => {
    const id = await runOf("good");
    const { worker: name = "", finished = 0 } = await bench.client.runs.get(id);
    const ids = async (...args: string[]) =>
      (await json(["journal", ...args])).runs.map((run: Run) => run.id) as string[];
    expect(await ids("--node", name, "-n", "1")).toEqual([id]);
    expect(await ids("--node", "another")).toEqual([]);
    expect(await ids("--from", "1h", "-n", "1")).toEqual([id]);
    expect(await ids("--from", new Date(finished).toISOString())).toEqual([id]);
    expect(await ids("--from", new Date(finished + 1).toISOString())).toEqual([]);
    expect(await ids("--to", new Date(finished - 1).toISOString())).not.toContain(id);
    expect(await ids("--to", "1h")).toEqual([]);
    expect((await cli(["journal", "--to", "1h"])).stdout).toBe("No runs.\n");
  });

  it("names an invalid option by its CLI name", async () => {
    expect(await refusal(["journal", "-n", "1001"])).toMatchObject({ exit: 2, field: "limit" });
    const turned = ["--from", "1h", "--to", "2h"];
    expect(await refusal(["journal", ...turned])).toMatchObject({ exit: 2, field: "from" });
  });
});

describe("stats", () => {
  it("counts ends, attempts and times", async () => {
    await runOf("bad");
    const stats = await json(["stats", "bad"]);
    const failed = stats.outcomes.failed as number;
    expect(stats).toMatchObject({
      runs: failed,
      failures: failed,
      successes: 0,
      consecutiveFailures: failed,
    });
    const { stdout } = await cli(["stats", "bad"]);
    expect(stdout).toContain(`ended             ${failed} failed\nwent well         0%\n`);
    expect(stdout).toMatch(/\nlast run {10}bad@\S+ \(failed\)\n$/);
  });

  it("are short for a task that never ran", async () => {
    await put("new");
    expect((await cli(["stats", "new"])).stdout).toBe("runs      0\nattempts  0\n");
  });

  it("are a table for all tasks, or for failing ones", async () => {
    await Promise.all([runOf("good"), runOf("bad"), runOf("acme/good")]);
    const { tasks } = await json(["stats"]);
    const page = await operatorOf(bench.client).runs.statsMany();
    expect(tasks).toEqual(JSON.parse(JSON.stringify(page.tasks)));
    const names = (found: typeof page) => found.tasks.map(({ task }) => `${task.owner}/${task.id}`);
    expect(names(await json(["stats", "--failing", "-q", "reports"]))).toEqual(["system/bad"]);
    expect(names(await json(["stats", "--owner", "acme", "--sort", "next"]))).toEqual(["acme/good"]);
    const lines = (await cli(["stats", "--all", "-l", "1"])).stdout.split("\n");
    expect(lines[0]).toMatch(
      /^QUEUE +TASK +LAST +TOOK +LATE +WAIT +RUNS +WENT WELL +FAILED IN A ROW +CRASHES +NEXT$/,
    );
    expect(lines.filter((line) => line !== "")).toHaveLength(1 + page.tasks.length);
    expect(lines.join("\n")).toMatch(
      /\nreports +system\/bad +failed .*\d+ m?s +\d+ +0% +\d+ +\d+ +2100-01-01T\S+ \(in .*\)\n/,
    );
    for (const [option, field] of [
      [["--failing"], "failing"],
      [["--limit", "0"], "limit"],
    ] as const) {
      expect(await refusal(["stats", "bad", ...option])).toMatchObject({ exit: 2, field });
    }
  });
});

describe("show", () => {
  it("shows the last outcome", async () => {
    const run = await runOf("bad");
    const shown = await json(["show", "bad"]);
    expect(shown).toMatchObject({
      lastStatus: { run, outcome: "failed" },
      pending: [],
      stats: { lastRun: run },
    });
    const { stdout } = await cli(["show", "bad"]);
    expect(stdout).toMatch(new RegExp(`\nlast run +failed .* after .* on \\S+: ${run}\n`));
    expect(stdout).toMatch(/\nlast error +Error: no paper\n/);
    expect(stdout).toMatch(/\nstatistics +\d+ runs?: \d+ failed; 0% went well; \d+ failures? in a row\n/);
  });

  it("describes each policy", async () => {
    const policies: Partial<TaskInput> = {
      overlap: "queue-all",
      maxQueued: 5,
      catchUp: "all",
      catchUpLimits: { window: "2h", max: 10, every: "30s" },
      minGap: "10s",
      timeLimit: "50%",
      timeLimitGrace: "5s",
      retry: { attempts: 3, delay: "10s" },
      rerun: { delay: "1m" },
      pauseAfterFailures: 4,
      crash: { delay: "1m", attempts: 2 },
      alertIf: { noSuccessFor: "2d", notStartedFor: "5m", slowerThan: "300%", skipsInARow: 3 },
      retention: { successes: 5, failuresFor: "60d" },
      linger: "1d",
      alerts: [{ on: ["failed", "crashed"], url: "https://alerts.example/hook" }],
    };
    await json(["put"], JSON.stringify({ id: "all", type: "report", queue: IDLE, schedule, ...policies }));
    const shown = { on: ["failed", "crashed"], url: "https://alerts.example/[hidden fd055801]" };
    expect(await json(["show", "all"])).toMatchObject({ ...policies, alerts: [shown] });
    const { stdout } = await cli(["show", "all"]);
    const facts = stdout.replaceAll(/ {2,}/g, "  ");
    for (const line of [
      "overlap  queue-all, at most 5 waiting",
      "catch-up  all, none older than 2h, the newest 10, one each 30s",
      "min gap  10s",
      "time limit  50%, then 5s to end",
      "retry  3 attempts, exponential from 10s, at most 1h",
      "rerun  exponential from 1m, at most 5 intervals, ±13%",
      "pause after  4 failures in a row",
      "crash  1m before the next attempt, over after 2 crashes",
      "alert if  no success for 2d, not started for 5m, slower than 300% of the usual, 3 skips in a row",
      "retention  5 successes, failures for 60d",
      "linger  1d",
      "alerts  failed, crashed to alerts.example",
    ]) {
      expect(facts).toContain(`\n${line}\n`);
    }
  });

  it("lists pending occurrences", async () => {
    await put("patient", { queue: IDLE, overlap: "queue-all" });
    await bench.client.trigger("patient");
    await bench.client.trigger("patient");
    expect((await json(["show", "patient"])).pending).toMatchObject([{ trigger: "manual" }]);
    const { stdout } = await cli(["show", "patient"]);
    expect(stdout).toMatch(/\nWaiting:\nNOMINAL +TRIGGER +UNTIL\n.* manual +no run is in its way\n/);
  });
});

describe("list", () => {
  it("shows the last outcome of each", async () => {
    await runOf("bad");
    const { stdout } = await cli(["list", "-q", "reports"]);
    expect(stdout).toMatch(/^QUEUE +TASK +TYPE +STATE +LAST +SCHEDULE +NEXT\n/);
    expect(stdout).toMatch(
      /\nreports +system\/bad +report +fails since \S+ \(\d+ in a row\) +failed (now|\d+ s ago) +once, at /,
    );
  });
});

describe("pause", () => {
  it("cancels queued runs with the option", async () => {
    await put("queued", { queue: IDLE });
    const run = await trigger("queued");
    await json(["pause", "queued", "--cancel-queued", "--by", "ann"]);
    expect((await bench.client.runs.get(run)).cancel).toMatchObject({ by: "ann" });
    const many = await refusal(["pause", "-q", IDLE, "--all", "--cancel-queued"]);
    expect(many).toMatchObject({ exit: 2, field: "cancel-queued" });
  });
});

describe("trigger", () => {
  it("takes each overlap policy", async () => {
    await put("t", { queue: IDLE });
    await trigger("t");
    const again = (policy: string) => cli(["trigger", "t", "--overlap", policy]);
    expect(await again("skip")).toMatchObject({ code: 5 });
    expect(await again("queue-one")).toMatchObject({
      code: 0,
      stdout: "queued t: it starts when the run in its way is over\n",
    });
    expect(await again("queue-one")).toMatchObject({ code: 5 });
    expect((await again("queue-all")).stdout).toMatch(/^queued t/);
    expect((await again("allow")).stdout).toMatch(/^enqueued t: run t@/);
    expect((await again("cancel-running")).stdout).toMatch(/^queued t/);
    expect(await again("always")).toMatchObject({ code: 2, stdout: "" });
  });

  it("makes one run for a key", async () => {
    await put("keyed", { queue: IDLE });
    const again = () => cli(["trigger", "keyed", "--key", "deploy-42"]);
    const first = await again();
    const run = /run (\S+)\n/.exec(first.stdout)?.[1];
    expect(first).toMatchObject({ code: 0, stdout: `enqueued keyed: run ${run}\n` });
    expect(await again()).toMatchObject({
      code: 0,
      stdout: `was enqueued with this key before: keyed: run ${run}\n`,
    });
  });

  it("takes a payload for one run", async () => {
    await put("own", { queue: IDLE });
    const { run } = await json(["trigger", "own", "--payload", '{"waits":true}']);
    expect(await json(["run", run])).toMatchObject({ payload: { waits: true } });
    expect((await cli(["run", run])).stdout).toMatch(/own payload +{"waits":true}/);
    expect((await bench.client.get("own")).payload).toEqual({});
    expect(await refusal(["trigger", "own", "--payload", "{waits}"])).toMatchObject({
      exit: 2,
      code: "INVALID_PAYLOAD",
    });
    const long = JSON.stringify("x".repeat(300_000));
    expect(await refusal(["trigger", "own", "--payload", long])).toMatchObject({
      exit: 2,
      code: "PAYLOAD_TOO_LARGE",
      field: "payload",
    });
    expect(await refusal(["trigger", "-q", IDLE, "--all", "--payload", "{}"])).toMatchObject({
      exit: 2,
      field: "payload",
    });
  });
});

describe("items", () => {
  it("are listed, and failed ones retried", async () => {
    const run = await runOf("mails");
    const { stdout, stderr } = await cli([
      "items",
      run,
      "--status",
      "failed",
      "--status",
      "completed",
      "--limit",
      "2",
    ]);
    expect(stdout).toMatch(/^ITEM {2}STATUS +STARTED +TOOK {2}TRIES {2}WORKER +DATA +ERROR\n/);
    expect(stdout).toMatch(/\n {3}1 {2}failed .* 1\/1 .* \{"to":"b"\} {2}Error: no such address\n$/);
    expect(stderr).toBe("There may be more: --cursor 2\n");
    expect(await json(["items", run, "--status", "failed"])).toMatchObject({ items: [{ index: 1 }] });
    expect(await refusal(["items", run, "--status", "broken"])).toMatchObject({ exit: 2 });
    const again = await cli(["retry-items", run]);
    expect(again.stdout).toMatch(/^enqueued the failed items: run mails@\S+\n$/);
    expect(await refusal(["retry-items", await runOf("good")])).toMatchObject({
      exit: 5,
      code: "CONFLICT",
    });
  });
});
