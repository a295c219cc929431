import { type Operator, operatorOf } from "@carillon/ops";
import { Client, defineTask } from "@carillon/sdk";
import { internalsOf } from "@carillon/store/internal";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { nodeInfo, onEveryEngine } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "../../store/test/bench.js";

const report = defineTask("report", {
  queue: QUEUE,
  payload: z.object({ tenant: z.string(), pages: z.number().int().default(1) }),
  handler: () => {},
});

/** The warning that no worker handles the tasks of these tests. */
const warning = (code: string) => ({ code, message: expect.any(String), remedy: expect.any(String) });
const NO_NODE = warning("NO_NODE");
const NO_WORKER = warning("NO_WORKER");

onEveryEngine("the client", (connection) => {
  const bench = Bench.use(connection, { queues: [QUEUE, "other", "carillon-alerts"] });
  let client: Client;
  let ops: Operator;
  beforeEach(async () => {
    client = new Client({ store: bench.store });
    ops = operatorOf(client);
  });
  afterEach(async () => {
    await client.close();
  });

  const noop = (id: string, rest: object = {}) => ({
    id,
    type: "noop",
    queue: QUEUE,
    schedule: { every: "10s" },
    ...rest,
  });

  it("puts a task, and returns the outcome and the next time", async () => {
    expect(await client.put(noop("t"))).toEqual({
      task: { queue: QUEUE, owner: "system", id: "t" },
      outcome: "created",
      state: "scheduled",
      nextExecution: START + 10_000,
      humanized: "every 10s, counted from the Unix epoch",
      warnings: [NO_NODE, NO_WORKER],
    });
    expect(await client.put(noop("t"))).toMatchObject({ outcome: "unchanged" });
    expect(await client.put(noop("t", { priority: 1 }))).toMatchObject({ outcome: "updated" });
  });

  it("warns of a task whose name another queue has, where it is created, and asks nothing otherwise", async () => {
    await client.put(noop("t", { owner: "acme" }));
    const codes = (warnings: readonly { code: string }[]) => warnings.map(({ code }) => code);
    const elsewhere = vi.spyOn(bench.store.tasks, "elsewhere");
    const renamed = noop("t", { owner: "acme", queue: "other" });
    const { warnings } = await client.put(renamed);
    expect(codes(warnings)).toEqual(["NO_NODE", "NO_WORKER", "SAME_ID_ELSEWHERE"]);
    expect(warnings.at(-1)).toMatchObject({
      message: `Another task acme/t is in the queue ${QUEUE}: both run.`,
      remedy: expect.stringContaining(`(carillon rm acme/t --queue ${QUEUE})`),
    });
    expect(elsewhere).toHaveBeenCalledTimes(1);
    expect(codes((await client.put(renamed)).warnings)).toEqual(["NO_NODE", "NO_WORKER"]);
    await client.put({ ...renamed, priority: 1 });
    await client.enqueue(report, { tenant: "a" }, { id: "t", owner: "acme", delay: "1h" }).catch(() => {});
    expect(elsewhere).toHaveBeenCalledTimes(1);
    // Another owner's task, and one of the alerts, are others.
    const many = await client.putMany([
      noop("t"),
      noop("watchdog", { queue: "carillon-alerts" }),
      noop("watchdog"),
      noop("u", { owner: "acme" }),
      noop("u", { owner: "acme", queue: "other" }),
    ]);
    expect(many.map((one) => codes(one.warnings).includes("SAME_ID_ELSEWHERE"))).toEqual([
      false,
      false,
      false,
      false,
      true,
    ]);
    elsewhere.mockRestore();
  });

  it.each([
    ["10m", { every: "10m" }, undefined],
    ["10m", { cron: "*/5 * * * *" }, undefined],
    // Jitter may shorten the wait.
    ["10m", { every: "9m" }, 13],
    ["1h", { every: "10m" }, 13],
  ])(
    "warns of a rerun after %s under %j, which the next occurrence replaces each time",
    async (delay, schedule, jitter = 0) => {
      const rerun = { delay, jitter };
      const { warnings } = await client.put(noop("t", { schedule, rerun }));
      const late = jitter === 0 || delay === "1h";
      expect(warnings.some(({ code }) => code === "NEVER_RERUNS")).toBe(late);
      const shorter = await client.put(noop("t", { schedule, rerun: { delay: "4m", jitter: 0 } }));
      expect(shorter.warnings).toEqual([NO_NODE, NO_WORKER]);
      const once = await client.put(noop("u", { schedule: { at: START + 60_000 }, rerun }));
      expect(once.warnings).toEqual([NO_NODE, NO_WORKER]);
      const after = await client.put(noop("v", { schedule: { every: "1m", anchor: "finish" }, rerun }));
      expect(after.warnings).toEqual([NO_NODE, NO_WORKER]);
    },
  );

  it.each([
    [{ timeLimit: 30 }, "timeLimit: 30 is in milliseconds, 30ms. In seconds it would be 30s."],
    [{ alertIf: { noSuccessFor: 600 } }, "alertIf.noSuccessFor: 600 is in milliseconds, 600ms. In seconds"],
    [
      { schedule: { every: 3_600 } },
      "schedule.every: 3600 is in milliseconds, 3s600ms. In seconds it would be 1h.",
    ],
    [{ schedule: { any: [{ every: 90 }] } }, "schedule.any[0].every: 90 is in milliseconds, 90ms."],
    [
      { schedule: { at: 1_795_855_255 } },
      "schedule.at: 1795855255 is in milliseconds, 1970-01-21T18:50:55.255Z. In seconds it would be 2026-11-28T08:40:55.000Z.",
    ],
    [
      { schedule: { every: "1h", start: 1_700_000_000 } },
      "schedule.start: 1700000000 is in milliseconds, 1970-",
    ],
    [{ timeLimit: 30_000, schedule: { every: 60_000, start: START } }, undefined],
    [{ timeLimit: "30ms", retry: { delay: 500 }, payload: { timeLimit: 30, at: 5 } }, undefined],
  ])("warns of milliseconds that look like seconds: %j", async (fields, message) => {
    const { warnings } = await client.validate(noop("t", fields));
    const found = warnings.find(({ code }) => code === "LOOKS_LIKE_SECONDS");
    if (message === undefined) return expect(found).toBeUndefined();
    expect(found?.message).toContain(message);
  });

  it.each([
    [{ cron: "0 9 * * 1-5" }, "25h", "pauses for 3d from "],
    [{ cron: "*/5 9-17 * * 1-5" }, "20m", "pauses for 2d15h5m from "],
    [{ cron: "0 9 * * *", except: [{ calendar: "*-12-24..27" }] }, "25h", "pauses for 5d from "],
    [{ cron: "0 9 * * 1-5" }, "4d", undefined],
    [{ cron: "0 9 * * *" }, "25h", undefined],
    [{ every: "10s" }, "1m", undefined],
    [{ manual: true }, "1m", undefined],
  ] as const)(
    "warns of a deadline within a pause of the schedule: %j, %s",
    async (schedule, noSuccessFor, pause) => {
      const { warnings } = await client.put(
        noop("t", { schedule: schedule as never, alertIf: { noSuccessFor } }),
      );
      const found = warnings.find(({ code }) => code === "DEADLINE_IN_PAUSE");
      if (pause === undefined) return expect(found).toBeUndefined();
      expect(found?.message).toContain(pause);
    },
  );

  it("warns of a rerun that comes from the defaults of the namespace", async () => {
    await ops.defaults.set({ scope: "all", policies: { rerun: { delay: "1m" } } });
    const warned = [expect.objectContaining({ code: "NEVER_RERUNS" }), NO_NODE, NO_WORKER];
    expect((await client.put(noop("t"))).warnings).toEqual(warned);
    expect((await client.validate(noop("t"))).warnings).toEqual(warned);
    const [one] = await client.putMany([noop("u")]);
    expect(one?.warnings).toEqual(warned);
  });

  it.each([
    ["http://127.0.0.1:9/x", "127.0.0.1 is a loopback address"],
    ["http://2130706433/", "127.0.0.1 is a loopback address"],
    ["http://169.254.169.254/hook", "169.254.169.254 is a link-local (cloud metadata) address"],
    ["http://10.1.2.3/hook", "10.1.2.3 is a private address"],
    ["http://[::1]/hook", "::1 is a loopback address"],
    ["http://[::ffff:10.0.0.1]/hook", "is a private address"],
    ["http://alertmanager.internal/hook", "alertmanager.internal is a name of a private network"],
    ["http://localhost:8080/hook", "localhost is a name of a private network"],
    ["http://alertmanager/hook", "alertmanager is a name of a private network"],
  ])("warns of alerts to %s, which workers refuse by default", async (url, what) => {
    const alerts = [
      { on: ["failed" as const], url: "https://hooks.example.com/carillon" },
      { on: ["failed" as const], url },
    ];
    const warning = {
      code: "URL_NOT_PUBLIC",
      message: expect.stringContaining("alerts[1].url: "),
      remedy: expect.stringContaining("alertWebhook"),
    };
    const put = await client.put(noop("t", { alerts }));
    expect(put.warnings).toEqual([warning, NO_NODE, NO_WORKER]);
    expect(put.warnings[0]?.message).toContain(what);
    expect((await client.validate(noop("t", { alerts }))).warnings).toEqual([warning, NO_NODE, NO_WORKER]);
  });

  it("warns of an HTTP task to an address that workers refuse by default", async () => {
    const request = { ...noop("t"), type: "http.request", payload: { url: "http://10.1.2.3/hook" } };
    expect((await client.put(request)).warnings[0]).toEqual({
      code: "URL_NOT_PUBLIC",
      message: "payload.url: 10.1.2.3 is a private address. Workers refuse it.",
      remedy: "Name it in the option allow of their httpRequest.",
    });
  });

  it("warns of a format that the host of an alert's URL refuses", async () => {
    const to = (format: "json" | "slack") => ({
      alerts: [{ on: ["failed" as const], format, url: "https://hooks.slack.com/services/x" }],
    });
    const codes = async (format: "json" | "slack") =>
      (await client.validate(noop("t", to(format)))).warnings.map(({ code }) => code);
    expect([await codes("json"), await codes("slack")].map((one) => one.includes("ALERT_FORMAT"))).toEqual([
      true,
      false,
    ]);
  });

  it("lists deliveries of alerts only if asked to", async () => {
    await client.put(noop("t", { owner: "acme" }));
    const delivery = { type: "carillon.webhook", queue: "carillon-alerts", owner: "acme" };
    await client.put(noop("alert-1", delivery));
    const ids = async (options: object) => (await client.list(options)).tasks.map(({ id }) => id);
    expect(await ids({})).toEqual(["t"]);
    expect(await ids({ owner: "acme" })).toEqual(["t"]);
    expect(await ids({ deliveries: true })).toEqual(["t", "alert-1"]);
    expect(await ids({ queue: "carillon-alerts" })).toEqual(["alert-1"]);
    // Deliveries belong to the owner and are deleted with the owner's tasks.
    expect(await ops.tasks.deleteMany({ owner: "acme" })).toMatchObject({ count: 2 });
  });

  it("puts a typed task: the type names queue and handler, its schema checks the payload", async () => {
    await client.put(report, { id: "r", schedule: { every: "1h" }, payload: { tenant: "acme" } });
    expect(await client.get("r")).toMatchObject({
      type: "report",
      queue: QUEUE,
      payload: { tenant: "acme" },
    });
    await client.put(report, {
      id: "r2",
      schedule: { every: "1h" },
      payload: { tenant: "a" },
      queue: "other",
    });
    expect(await client.get("r2")).toMatchObject({ queue: "other" });
    await expect(
      // @ts-expect-error the payload's type is known here
      client.put(report, { id: "r", schedule: { every: "1h" }, payload: { tenant: 5 } }),
    ).rejects.toMatchObject({
      code: "INVALID_PAYLOAD",
      field: "payload.tenant",
      remedy: "Give a payload that fits the schema of task type report.",
    });
  });

  it("treats undefined options as omitted", async () => {
    const unset: { text: string | undefined; number: number | undefined } = {
      text: undefined,
      number: undefined,
    };
    const { text, number } = unset;
    const task = { id: "r", schedule: { every: "1h" }, payload: { tenant: "acme" } };
    const { task: name } = await client.put(report, {
      ...task,
      queue: text,
      owner: text,
      overlap: undefined,
    });
    expect(name).toEqual({ queue: report.queue, owner: "system", id: "r" });
    await client.validate({ ...task, type: "report", queue: QUEUE }, { from: number, count: number });
    expect(await client.count({ queue: text })).toBe(1);
    expect(await client.pause("r", { note: text, by: text, cancelQueued: undefined })).toBe(true);
    expect(await client.resume("r", { missed: undefined, by: text })).toBe(true);
    const { run } = (await client.trigger("r", { overlap: undefined })) as { run: string };
    expect(await client.runs.list("r", { limit: number, offset: number })).toHaveLength(1);
    expect(await client.runs.cancel(run, { by: text })).toBe(true);
    expect((await ops.occurrences.upcoming({ queue: text, limit: number })).upcoming).toHaveLength(1);
    expect(
      (await ops.occurrences.upcoming({ within: "2h", queue: text, limit: number })).upcoming,
    ).not.toHaveLength(0);
    expect(
      await ops.tasks.pauseMany({ queue: name.queue, tag: text, note: text }, { by: text }),
    ).toMatchObject({ count: 1 });
    expect(await ops.tasks.resumeMany({ queue: name.queue, missed: undefined }, { by: text })).toMatchObject({
      count: 1,
    });
    expect(await ops.calendars.put({ name: "days", entries: ["2026-12-25"] }, { by: text })).toMatchObject({
      outcome: "created",
    });
  });

  it("gets the whole task", async () => {
    await client.put(noop("t", { owner: "acme", tags: ["b", "a"], payload: { n: 1 }, description: "d" }));
    expect(await client.get("acme/t")).toEqual({
      id: "t",
      owner: "acme",
      queue: QUEUE,
      type: "noop",
      schedule: { every: "10s" },
      humanized: expect.any(String),
      payload: { n: 1 },
      state: "scheduled",
      nextExecution: START + 10_000,
      cursor: undefined,
      nominal: START + 10_000,
      due: START + 10_000,
      pending: [],
      generation: START * 1_000,
      fired: 0,
      revision: expect.stringMatching(/^\d{16}$/),
      priority: 0,
      tags: ["a", "b"],
      overlap: "skip",
      catchUp: "one",
      description: "d",
      created: START,
      updated: START,
      display: { code: "due", next: START + 10_000 },
      displayState: "SCHEDULED",
    });
    expect(await client.get({ id: "t", owner: "acme", queue: QUEUE })).toMatchObject({ id: "t" });
    await expect(client.get("t")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  });

  it("reports the pending run of a single time, although no time of its schedule is left", async () => {
    const { task } = await client.enqueue(report, { tenant: "acme" }, { id: "once" });
    const seen = { state: "finished", openRuns: { queued: 1, running: 0 }, displayState: "DISABLED" };
    expect(await client.get(task)).toMatchObject(seen);
    expect((await client.list()).tasks).toMatchObject([seen]);
    await client.put(noop("idle"));
    expect(await client.get("idle")).not.toHaveProperty("openRuns");
  });

  it("gets a task with very many open runs, and reads only the shown ones", async () => {
    await client.put(noop("t", { overlap: "allow" }));
    for (let n = 0; n < 2; n++) await client.trigger("t");
    const { open } = internalsOf(bench.store).keys.queue(QUEUE);
    const ids = Array.from({ length: 300 }, (_, n) => [START + n, `t@many.${n}`]).flat();
    await internalsOf(bench.store).link.ask((redis) => redis.zadd(open("system/t"), ...ids));
    const { runs } = bench.store;
    const all = runs.open.bind(runs);
    const read: number[] = [];
    runs.open = async (...args) => {
      const found = await all(...args);
      read.push(found.length);
      return found;
    };
    expect(await client.get("t")).toMatchObject({ displayState: "SCHEDULED" });
    expect(read).toEqual([100]);
  });

  it("reports the tasks that it has stored while it puts many", async () => {
    const stored: number[] = [];
    const counting = new Client({ store: bench.store, onProgress: (tasks) => stored.push(tasks) });
    await counting.putMany(Array.from({ length: 250 }, (_, i) => noop(`t${i}`)));
    expect(stored.sort()).toEqual([100, 100, 50]);
  });

  it("puts many tasks in several queues, answers in order, and writes none if one is invalid", async () => {
    const many = [noop("a"), noop("b", { queue: "other" }), noop("c"), noop("a", { owner: "acme" })];
    const results = await client.putMany(many);
    expect(results.map(({ task, outcome }) => `${task.queue} ${task.id} ${outcome}`)).toEqual([
      `${QUEUE} a created`,
      "other b created",
      `${QUEUE} c created`,
      `${QUEUE} a created`,
    ]);
    const before = await bench.dump();
    await expect(client.putMany([...many, noop("c", { priority: 2 })])).rejects.toMatchObject({
      code: "INVALID_TASK",
      field: "[4].id",
      message: `[4].id: system/c in queue ${QUEUE} is at [2] already. Give each task once.`,
    });
    await expect(client.putMany([noop("new"), noop("x:y")])).rejects.toMatchObject({
      code: "INVALID_NAME",
      field: "[1].id",
      remedy: expect.stringMatching(/letters/),
    });
    await expect(client.putMany([noop("new"), noop("n", { payload: { f() {} } })])).rejects.toMatchObject({
      code: "INVALID_PAYLOAD",
      field: "[1].payload.f",
    });
    expect(await bench.dump()).toEqual(before);
    await ops.types.allow({ types: ["noop"] });
    const other = noop("other", { queue: "other", type: "report", payload: { tenant: "a" } });
    await expect(client.putMany([noop("new"), other])).rejects.toMatchObject({
      code: "UNKNOWN_TASK_TYPE",
      field: "[1].type",
    });
    await expect(client.validate(other)).rejects.toMatchObject({ code: "UNKNOWN_TASK_TYPE" });
    await expect(client.get("new")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
    expect(await client.putMany([])).toEqual([]);
  });

  it("lists pages, by every filter", async () => {
    await client.putMany([
      noop("a", { tags: ["x"] }),
      noop("b", { owner: "acme", tags: ["x"] }),
      noop("c", { queue: "other", enabled: false }),
    ]);
    const ids = async (options: Parameters<Client["list"]>[0]) =>
      (await client.list(options)).tasks.map(({ id }) => id);
    expect(await ids({})).toEqual(["b", "a", "c"]);
    expect(await ids({ queue: "other" })).toEqual(["c"]);
    expect(await ids({ owner: "acme" })).toEqual(["b"]);
    expect(await ids({ tag: "x" })).toEqual(["b", "a"]);
    expect(await ids({ state: "paused" })).toEqual(["c"]);
    expect(await ids({ search: "ACME" })).toEqual(["b"]);
    expect(await ids({ neverRan: true })).toEqual(["b", "a", "c"]);
    expect(await ids({ overdue: true })).toEqual([]);
    await bench.clock.advance(12_000);
    expect(await ids({ overdue: true, sort: "next" })).toEqual(["b", "a"]);
    const { ticks } = await ops.occurrences.ticks({ id: "a", from: START, to: START + 20_000 });
    expect(ticks).toMatchObject([
      { nominal: START + 10_000, state: "due" },
      { nominal: START + 20_000, state: "planned" },
    ]);
    expect(await ops.tasks.counts()).toMatchObject({ all: 3, states: { paused: 1 }, overdue: 2, failing: 0 });
    const bound = new Client({ store: bench.store, owner: "acme" });
    expect(await operatorOf(bound).tasks.counts()).toMatchObject({ all: 1, overdue: 1, neverRan: 1 });
    await expect(operatorOf(bound).tasks.counts({ owner: "system" })).rejects.toMatchObject({
      code: "FORBIDDEN",
    });
    const first = await client.list({ limit: 2 });
    expect(first.tasks.map(({ id }) => id)).toEqual(["b", "a"]);
    expect((await client.list({ limit: 2, cursor: first.cursor })).tasks.map(({ id }) => id)).toEqual(["c"]);
  });

  it.each([
    [{ limit: 0 }, "limit", "INVALID_OPTION"],
    [{ limit: 1_001 }, "limit", "INVALID_OPTION"],
    [{ limit: 1.5 }, "limit", "INVALID_OPTION"],
    [{ queue: "a:b" }, "queue", "INVALID_NAME"],
    [{ owner: "a/b" }, "owner", "INVALID_NAME"],
    [{ tag: "" }, "tag", "INVALID_NAME"],
    [{ cursor: "nonsense" }, "cursor", "INVALID_OPTION"],
    [{ search: "a\nb" }, "search", "INVALID_OPTION"],
    [{ failing: true, outcome: "failed" }, "failing", "INVALID_OPTION"],
    [{ neverRan: true, outcome: "failed" }, "neverRan", "INVALID_OPTION"],
    [{ neverRan: true, failing: true }, "neverRan", "INVALID_OPTION"],
    [{ neverRan: true, sort: "last" }, "neverRan", "INVALID_OPTION"],
  ] as const)("refuses to list %j", async (options, field, code) => {
    await expect(client.list(options)).rejects.toMatchObject({ code, field, remedy: expect.any(String) });
  });

  it("counts scheduled runs, and not manual triggers", async () => {
    await client.put(noop("t", { overlap: "allow" }));
    await bench.clock.advance(10_000);
    await bench.claim("t", "a");
    await client.trigger("t");
    expect(await client.get("t")).toMatchObject({ fired: 1 });
  });

  it("triggers with a payload that is checked against the task's type", async () => {
    const typed = new Client({ store: bench.store, types: [report], maxPayloadBytes: 100 });
    await client.put(report, { id: "t", payload: { tenant: "acme" }, schedule: { every: "1h" } });
    for (const [payload, code, field] of [
      [{ tenant: 1 }, "INVALID_PAYLOAD", "payload.tenant"],
      [{ at: new Date(0) }, "INVALID_PAYLOAD", "payload.at"],
      [{ tenant: "x".repeat(100) }, "PAYLOAD_TOO_LARGE", "payload"],
    ] as const)
      await expect(typed.trigger("t", { payload })).rejects.toMatchObject({ code, field });
    expect(await bench.jobs()).toEqual([]);
    expect(await typed.trigger("t", { payload: { tenant: "globex" } })).toMatchObject({
      outcome: "enqueued",
    });
    expect((await bench.jobs()).map(({ data }) => data.payload)).toEqual([{ tenant: "globex" }]);
    expect(await client.get("t")).toMatchObject({ payload: { tenant: "acme" } });
    const none = ops.tasks.triggerMany({ queue: QUEUE, ...({ payload: {} } as object) });
    await expect(none).rejects.toMatchObject({ code: "INVALID_OPTION", field: "payload" });
  });

  it("pauses, resumes, triggers and deletes", async () => {
    await client.put(noop("t"));
    expect(await client.pause("t", { by: "ann", note: "two lines\nof note" })).toBe(true);
    expect(await client.pause("t")).toBe(false);
    expect(await client.get("t")).toMatchObject({
      state: "paused",
      nextExecution: undefined,
      paused: { by: "ann", note: "two lines\nof note", at: START },
    });
    await bench.clock.advance(25_000);
    expect(await client.resume("t", { by: "ann b" })).toBe(true);
    expect(await client.resume("t")).toBe(false);
    expect(await client.runs.skips("t")).toEqual([
      {
        reason: "paused",
        from: START + 10_000,
        to: START + 20_000,
        decisions: 1,
        at: START + 25_000,
        by: "ann_b",
        note: "two lines\nof note",
      },
    ]);
    const triggered = await client.trigger("t");
    expect(triggered).toEqual({
      outcome: "enqueued",
      run: expect.stringMatching(/^t@/),
      key: expect.stringMatching(/^[0-9a-f-]{36}$/),
      enqueued: START + 25_000,
      repeated: false,
      warnings: [NO_WORKER],
    });
    expect(await client.trigger("t")).toEqual({ outcome: "skipped", code: "SKIPPED_OVERLAP" });
    expect(await client.trigger("t", { overlap: "allow" })).toMatchObject({ outcome: "enqueued" });
    expect(await client.runs.list("t")).toHaveLength(2);
    expect(await client.runs.list("t", { limit: 1, offset: 1 })).toHaveLength(1);
    await client.delete("t");
    await expect(client.delete("t")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
    for (const act of [
      () => client.get("t"),
      () => client.pause("t"),
      () => client.resume("t"),
      () => client.trigger("t"),
      () => client.runs.list("t"),
      () => client.runs.skips("t"),
    ]) {
      await expect(act()).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
    }
    expect(await bench.ownKeys()).toEqual([]);
  });

  it("warns that a put with enabled: true does not resume a paused task", async () => {
    await client.put(noop("t", { enabled: true }));
    await client.pause("t");
    const codes = async (fields: object) =>
      (await client.put(noop("t", fields))).warnings.map(({ code }) => code);
    expect(await codes({ enabled: true })).toContain("STAYS_PAUSED");
    expect(await codes({})).not.toContain("STAYS_PAUSED");
    const updated = await client.update("t", (task) => ({ ...task, priority: 1 }));
    expect(updated.warnings.map(({ code }) => code)).not.toContain("STAYS_PAUSED");
  });

  it("refuses invalid options", async () => {
    await client.put(noop("over", { schedule: { at: new Date(START - 1).toISOString() } }));
    await expect(client.pause("over")).rejects.toMatchObject({ code: "CONFLICT" });
    await expect(client.resume("over", { missed: "then" as "skip" })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      field: "missed",
    });
    await expect(client.pause("over", { note: "x".repeat(501) })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      field: "note",
    });
    await expect(client.runs.list("over", { limit: -1 })).rejects.toMatchObject({ field: "limit" });
    expect(() => new Client({ connection: "http://x" })).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION" }),
    );
    expect(() => new Client({ store: bench.store, owner: "a/b" })).toThrow(
      expect.objectContaining({ code: "INVALID_NAME", field: "owner" }),
    );
  });

  it.each<[string, () => Client]>([
    ["no connection", () => new Client({})],
    ["a function that returns none", () => new Client({ connection: () => undefined })],
  ])("can be made with %s, which is an error of each call", async (_, make) => {
    const early = make();
    const missing = { code: "INVALID_OPTION", message: expect.stringContaining("connection: missing.") };
    await expect(early.list()).rejects.toMatchObject(missing);
    await expect(early.serverTime()).rejects.toMatchObject(missing);
    await early.close();
  });

  it("asks a function for its connection when it first needs one", async () => {
    const asked: string[] = [];
    const late = new Client({
      connection: () => {
        asked.push("now");
        return connection() as string;
      },
    });
    expect(asked).toEqual([]);
    expect(await late.serverTime()).toBeTypeOf("number");
    expect(await late.serverTime()).toBeTypeOf("number");
    expect(asked).toEqual(["now"]);
    await late.close();
  });

  it("gives each owner a client of its own, on one connection", async () => {
    const connections = async () => {
      const sent = await internalsOf(bench.store).link.ask(async (redis) =>
        String(await redis.client("LIST")),
      );
      return sent.trim().split("\n").length;
    };
    await client.put(noop("of-all"));
    const before = await connections();
    for (let i = 0; i < 1_000; i++) {
      const tenant = client.forOwner(`tenant-${i}`);
      if (i % 100 === 0) await tenant.put(noop("t"));
      await tenant.close();
    }
    // Those of an earlier file may end meanwhile.
    expect(await connections()).toBeLessThanOrEqual(before);
    const acme = client.forOwner("tenant-0");
    expect((await acme.list()).tasks.map(({ owner, id }) => `${owner}/${id}`)).toEqual(["tenant-0/t"]);
    await expect(acme.get("of-all")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
    expect(acme.forOwner("tenant-0").owner).toBe("tenant-0");
    expect(() => acme.forOwner("tenant-1")).toThrow(expect.objectContaining({ code: "FORBIDDEN" }));
    expect(() => client.forOwner("a/b")).toThrow(expect.objectContaining({ code: "INVALID_NAME" }));
  });

  it("names the queues if a name is in several", async () => {
    await client.putMany([noop("t"), noop("t", { queue: "other" })]);
    await expect(client.get("t")).rejects.toMatchObject({ code: "AMBIGUOUS_TASK", field: "queue" });
    expect(await client.get({ id: "t", queue: "other" })).toMatchObject({ queue: "other" });
  });

  describe("enqueue", () => {
    it("enqueues one job now, with a task that is deleted after it", async () => {
      const { task, run, at } = await client.enqueue(report, { tenant: "acme" });
      expect(at).toBe(START);
      expect(task.id).toMatch(/^report-[0-9a-z]{13}$/);
      const [job] = await bench.jobs();
      expect(job).toMatchObject({ id: run, name: "report" });
      expect(job?.data.payload).toEqual({ tenant: "acme" });
      expect(job?.data.occurrence).toMatchObject({
        nominal: START,
        due: START,
        enqueued: START,
        trigger: "manual",
        run,
      });
      expect(await client.get(task)).toMatchObject({ state: "finished" });
      await bench.workAll();
      await bench.clock.advance(10_000);
      await bench.reconcile();
      await bench.clock.advance(600_000);
      await bench.reconcile();
      await bench.store.registry.forgetIfEmpty(QUEUE);
      expect(await bench.ownKeys()).toEqual([]);
    });

    it.each([
      ["delay", { delay: 5_000 }],
      ["a delay in words", { delay: "5s" }],
      ["a date", { at: new Date(START + 5_000) }],
      ["a text", { at: new Date(START + 5_000).toISOString() }],
      ["a number", { at: START + 5_000 }],
    ])("enqueues one job later, by %s", async (_what, when) => {
      const enqueued = await client.enqueue(
        report,
        { tenant: "acme" },
        { ...when, id: "later", priority: 4 },
      );
      const task = bench.name("later");
      expect(enqueued).toEqual({ task, run: undefined, at: START + 5_000, warnings: [NO_NODE, NO_WORKER] });
      expect(await bench.jobs()).toEqual([]);
      await bench.clock.advance(5_000);
      expect(await bench.claim("later", "a")).toEqual(["OK"]);
      const [job, ...others] = await bench.jobs();
      expect(others).toEqual([]);
      expect(job?.opts.priority).toBe(4);
      expect(job?.data.occurrence).toMatchObject({ nominal: START + 5_000, trigger: "schedule" });
    });

    it("enqueues at once if the time is past", async () => {
      const { run } = await client.enqueue(report, { tenant: "acme" }, { at: START - 1 });
      expect(run).toBeDefined();
      expect(await bench.jobs()).toHaveLength(1);
    });

    it("warns if the time is long past: it may be in seconds", async () => {
      const codes = async (at: number) =>
        (await client.enqueue(report, { tenant: "acme" }, { at })).warnings.map(({ code }) => code);
      expect(await codes(START / 1_000)).toEqual(["LOOKS_LIKE_SECONDS", "NO_WORKER", "PAST_TIME"]);
      expect(await codes(START - 59_000)).not.toContain("PAST_TIME");
      expect(await codes(START + 59_000)).not.toContain("PAST_TIME");
    });

    it("gives the run a later time if its own passes during the put", async () => {
      // A real clock: it moves between any two calls, so that a delay of 1 ms has always passed.
      const live = new Client({ connection: connection(), namespace: `${bench.store.namespace}-live` });
      for (let i = 0; i < 20; i++)
        await live.enqueue(report, { tenant: "acme" }, { delay: 1, id: `soon-${i}` });
      const { tasks } = await live.list();
      expect(tasks).toHaveLength(20);
      for (const { id, state } of tasks) {
        expect([id, state]).toEqual([id, "scheduled"]);
        expect(await live.runs.list(id)).toEqual([]);
      }
      await live.close();
    });

    it.each(["2026-02-30T09:00:00Z", "2026-01-01T09:00:00", "tomorrow"])(
      "refuses the time %j",
      async (at) => {
        await expect(client.enqueue(report, { tenant: "acme" }, { at })).rejects.toMatchObject({
          code: "INVALID_OPTION",
          field: "at",
        });
        await client.put(noop("t"));
        const range = ops.backfills.start({ id: "t", from: at, to: START });
        await expect(range).rejects.toMatchObject({ code: "INVALID_OPTION", field: "from" });
      },
    );

    it.each([
      [{ attempts: 3 }, "attempts", "Give retry: { attempts }."],
      [{ backoff: { type: "fixed" } }, "backoff", "Give retry: { backoff: "],
      [{ jobId: "one" }, "jobId", "Did you mean id?"],
      [{ lifo: true }, "lifo", "Known: at, delay, id, "],
    ])("answers BullMQ's options %j with their counterparts", async (options, field, remedy) => {
      const refused = client.enqueue(report, { tenant: "acme" }, options as object);
      await expect(refused).rejects.toMatchObject({ field, remedy: expect.stringContaining(remedy) });
    });

    it("refuses policies of a run as a put does", async () => {
      const refused = client.enqueue(report, { tenant: "acme" }, { retry: { attempts: 0 } });
      await expect(refused).rejects.toMatchObject({ code: "INVALID_TASK", field: "retry.attempts" });
      expect(await bench.jobs()).toEqual([]);
    });

    it("checks the payload, and refuses a name that is taken", async () => {
      await client.put(noop("t"));
      const before = await bench.dump();
      // @ts-expect-error the payload's type is known here
      await expect(client.enqueue(report, {})).rejects.toMatchObject({
        code: "INVALID_PAYLOAD",
        field: "payload.tenant",
      });
      const options = { id: "t" };
      const taken = { code: "CONFLICT", field: "id" };
      await expect(client.enqueue(report, { tenant: "a" }, options)).rejects.toMatchObject(taken);
      await expect(
        client.enqueue(report, { tenant: "a" }, { ...options, delay: 9_000 }),
      ).rejects.toMatchObject(taken);
      for (const wrong of [{ at: "soon" }, { at: Number.NaN }, { delay: -1 }, { delay: 1, at: START }]) {
        await expect(client.enqueue(report, { tenant: "a" }, wrong)).rejects.toMatchObject({
          code: "INVALID_OPTION",
          field: expect.stringMatching(/^(at|delay)$/),
        });
      }
      const { [`{${bench.store.namespace}}:queues`]: _, ...rest } = await bench.dump();
      const { [`{${bench.store.namespace}}:queues`]: __, ...was } = before;
      expect(rest).toEqual(was);
    });
  });

  describe("bound to an owner", () => {
    it("sees and changes nothing of other owners", async () => {
      await client.putMany(["a", "a.b", "a-", "system"].map((owner) => noop("t", { owner, tags: ["x"] })));
      const bound = new Client({ store: bench.store, owner: "a" });
      expect((await bound.list()).tasks.map(({ owner }) => owner)).toEqual(["a"]);
      expect((await bound.list({ tag: "x" })).tasks.map(({ owner }) => owner)).toEqual(["a"]);
      expect(await bound.list({ owner: "a.b" })).toEqual({ tasks: [], cursor: undefined });
      const { cursor } = await client.list({ limit: 1 });
      expect((await bound.list({ cursor })).tasks.map(({ owner }) => owner)).toEqual(["a"]);
      const before = await bench.dump();
      for (const owner of ["a.b", "a-", "system"]) {
        const ref = { id: "t", owner, queue: QUEUE };
        for (const form of [ref, `${owner}/t`]) {
          for (const act of [
            () => bound.get(form),
            () => bound.pause(form),
            () => bound.resume(form),
            () => bound.trigger(form),
            () => bound.delete(form),
            () => bound.runs.list(form),
            () => bound.runs.skips(form),
          ]) {
            await expect(act()).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
          }
        }
        await expect(bound.put(noop("t", { owner }))).rejects.toMatchObject({
          code: "FORBIDDEN",
          field: "owner",
        });
        await expect(bound.enqueue(report, { tenant: "x" }, { owner })).rejects.toMatchObject({
          code: "FORBIDDEN",
        });
      }
      expect(await bench.dump()).toEqual(before);
    });

    it("puts tasks of the owner, named or not", async () => {
      const bound = new Client({ store: bench.store, owner: "acme" });
      expect(await bound.put(noop("t"))).toMatchObject({ task: { owner: "acme" } });
      expect(await bound.put(noop("t", { owner: "acme" }))).toMatchObject({ outcome: "unchanged" });
      expect((await bound.enqueue(report, { tenant: "x" })).task.owner).toBe("acme");
      expect(await bound.get("t")).toMatchObject({ owner: "acme" });
    });
  });

  it("that is limited to some types puts no others, and checks payloads", async () => {
    const typed = new Client({ store: bench.store, types: [report] });
    await expect(typed.put(noop("t"))).rejects.toMatchObject({
      code: "UNKNOWN_TASK_TYPE",
      field: "type",
      remedy: "Known: report.",
    });
    const hidden = defineTask("hidden", { queue: QUEUE, payload: z.object({}), handler: () => {} });
    await expect(
      typed.put(hidden, { id: "t", schedule: { every: "1h" }, payload: {} }),
    ).rejects.toMatchObject({ code: "UNKNOWN_TASK_TYPE" });
    await expect(typed.put(noop("t", { type: "report", payload: { tenant: 1 } }))).rejects.toMatchObject({
      code: "INVALID_PAYLOAD",
      field: "payload.tenant",
    });
    expect(await bench.ownKeys()).toEqual([]);
    expect(await typed.put(noop("t", { type: "report", payload: { tenant: "a" } }))).toMatchObject({
      outcome: "created",
    });
  });

  it("lists nodes with their state and their current work", async () => {
    const now = await bench.store.serverTime();
    const node = nodeInfo("", { every: 5_000 });
    await bench.store.registry.beat({ ...node, id: "dead", beat: now - 15_001 });
    await bench.store.registry.beat({ ...node, id: "held", beat: now, ready: false, why: "held" });
    await bench.store.registry.beat({ ...node, id: "live", beat: now });
    // A node whose heartbeat is later than the server's clock, which went back.
    await bench.store.registry.beat({ ...node, id: "out of time", beat: now + 60_000 });
    await bench.store.registry.beat({ ...node, id: "silent", beat: now - 8_000, every: 5_000 });
    const seen = (await ops.nodes.list()).nodes.map((one) => [
      one.id,
      one.alive,
      one.state,
      one.ready,
      one.why,
      Math.round((one.silentMs ?? 0) / 5_000),
    ]);
    expect(seen).toEqual([
      ["dead", false, "dead", false, undefined, expect.any(Number)],
      ["held", true, "not-ready", false, "held", 0],
      ["live", true, "ready", true, undefined, 0],
      ["out of time", false, "dead", false, undefined, expect.any(Number)],
      ["silent", true, "silent", false, undefined, expect.any(Number)],
    ]);
  });
});
