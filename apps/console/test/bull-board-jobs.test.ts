import { bullPrefix } from "@carillon/sdk";
import { internalsOf, storeOf } from "@carillon/sdk/internal";
import { Queue, Worker } from "bullmq";
import { beforeAll, describe, expect, test } from "vitest";
import { enqueued } from "../../../test/helpers.js";
import { coded } from "../src/errors.js";
import { ownConsole, startConsole } from "./harness.js";

const JOBS = "/queues/api/queues/q";
const PREFIX = bullPrefix("console-test", "q");

const console_ = ownConsole();
/** BullMQ's keys of the queue, except those of jobs. */
let keys: string[];
beforeAll(async () => {
  await console_.client.put({ id: "a", type: "t", queue: "q", schedule: { every: "1h" } });
  await console_.client.trigger("a");
  await console_.board.refresh();
  const queue = new Queue("q", { connection: { url: console_.redis.url }, skipMetasUpdate: true });
  keys = Object.keys(queue.keys).filter(Boolean);
  await queue.close();
});

async function trigger(id: string): Promise<string> {
  return enqueued(await console_.client.trigger(id, { overlap: "allow" })).run;
}

const add = (jobId: unknown) =>
  console_.admin("POST", "/queues/api/queues/q/add", { name: "t", data: {}, options: { jobId } });

test("a job cannot have a key name of BullMQ as its id", async () => {
  expect(keys).toContain("active");
  for (const id of [...keys, "a:b", "12", 12]) {
    const { status, body } = await add(id);
    expect([id, status, body.error?.code]).toEqual([id, 400, "INVALID_OPTION"]);
  }
  const { body } = await console_.admin("GET", "/queues/api/queues");
  expect(body.queues).toMatchObject([{ name: "q", counts: { waiting: 1 } }]);
  expect((await add("mine")).status).toBe(200);
});

test("a run's job and its items' lead to the page of the run, and another job nowhere", async () => {
  await add("not-a-run");
  const urlOf = async (id: string) => {
    const { job } = (await console_.admin("GET", `${JOBS}/${encodeURIComponent(id)}`)).body;
    return (job as { externalUrl?: object } | undefined)?.externalUrl;
  };
  const run = await trigger("a");
  const { href } = (await urlOf(run)) as { href: string };
  expect(href).toMatch(/^\/runs\/[^/]*@/);
  expect(decodeURIComponent(href)).toBe(`/runs/${run}`);
  const headers = { authorization: "Bearer the-token-of-an-admin" };
  expect((await console_.ask(`/api/v1${href}`, { headers })).status).toBe(200);
  const { data } = (await console_.admin("GET", `${JOBS}/${encodeURIComponent(run)}`)).body.job!;
  const item = {
    name: "t",
    data: { child: true, index: 7, occurrence: data.occurrence },
    options: { jobId: "item-7" },
  };
  expect((await console_.admin("POST", "/queues/api/queues/q/add", item)).status).toBe(200);
  expect(await urlOf("item-7")).toMatchObject({ href });
  expect(await urlOf("not-a-run")).toBeUndefined();
});

test("BullMQ's own keys can be neither read nor removed as jobs", async () => {
  for (const key of keys) {
    const read = await console_.admin("GET", `/queues/api/queues/q/${key}`);
    const removed = await console_.admin("PUT", `/queues/api/queues/q/${key}/clean`);
    expect([key, read.status, removed.status]).toEqual([key, 404, 404]);
  }
  expect(console_.log()).not.toContain("a request failed");
});

test("other keys of a queue and its jobs are not jobs either", async () => {
  const redis = internalsOf(storeOf(console_.client)).link.client;
  const run = await trigger("a");
  const key = (id: string) => `${PREFIX}:q:${id}`;
  await redis.hset(key("metrics:completed"), { count: "1", prevTS: "0", prevCount: "0" });
  await redis.hset(key("repeat:mine"), { name: "t", ic: "1", every: "1000" });
  await redis.lpush(key(`${run}:logs`), "line");
  await redis.set(key(`${run}:lock`), "token");
  for (const id of ["metrics:completed", "repeat:mine", `${run}:logs`, `${run}:lock`]) {
    const read = await console_.admin("GET", `${JOBS}/${encodeURIComponent(id)}`);
    const removed = await console_.admin("PUT", `${JOBS}/${encodeURIComponent(id)}/clean`);
    expect([id, read.status, removed.status]).toEqual([id, 404, 404]);
    expect([id, await redis.exists(key(id))]).toEqual([id, 1]);
  }
  await redis.del(key("metrics:completed"), key("repeat:mine"), key(`${run}:lock`));
  expect(console_.log()).not.toContain("a request failed");
});

test("a job that is not JSON does not break the page, and can be removed", async () => {
  const [run, other] = [await trigger("a"), await trigger("a")];
  const redis = internalsOf(storeOf(console_.client)).link.client;
  for (const [field, text] of [
    ["data", '{"password":s3cret-0f-a-job}'],
    ["opts", "nonsense"],
    ["progress", "nonsense"],
  ] as const) {
    await redis.hset(`${PREFIX}:q:${run}`, field, text);
    const { status, body } = await console_.admin("GET", "/queues/api/queues?activeQueue=q&jobsPerPage=100");
    expect([field, status]).toEqual([field, 200]);
    const jobs = body.queues?.[0]?.["jobs"] as Array<{ id: string; name: string }>;
    expect(jobs.find(({ id }) => id === other)?.name).toBe("t");
    expect(jobs.find(({ id }) => id === run)?.name).toMatch(/not JSON/);
    expect((await console_.admin("GET", `${JOBS}/${run}`)).status).toBe(200);
  }
  expect((await console_.admin("PUT", `${JOBS}/${run}/clean`)).status).toBe(204);
  expect(await redis.exists(`${PREFIX}:q:${run}`)).toBe(0);
  expect(console_.log()).not.toContain("s3cret-0f-a-job");
  expect(console_.log()).not.toContain("a request failed");
});

describe("a refusal because of a job's state", () => {
  test("is a 409 with a remedy, whatever the job's name", async () => {
    await console_.client.put({ id: "connector-sync", type: "t", queue: "q", schedule: { every: "1h" } });
    const run = await trigger("connector-sync");
    const refusals: Array<[string, string, unknown, RegExp]> = [
      [
        "PUT",
        "promote",
        undefined,
        /^Job \S+ is not in the delayed state\. .*only a delayed job can be promoted/,
      ],
      [
        "PUT",
        "retry",
        undefined,
        /^Job is in "waiting" state and cannot be retried\. Only a job that failed/,
      ],
      ["PATCH", "delay", { runAt: 1e15 }, /^Only a delayed job can be rescheduled\. This one is waiting\.$/],
      ["PUT", "remove-unprocessed-children", undefined, /^This job has no unprocessed children to remove\.$/],
    ];
    for (const [method, what, sent, says] of refusals) {
      const { status, body } = await console_.admin(method, `${JOBS}/${run}/${what}`, sent);
      expect([what, status, body.error?.code]).toEqual([what, 409, "CONFLICT"]);
      expect(body.error?.message).toMatch(says);
      // The headline that Bull Board's page shows.
      expect(body.error?.key).toMatch(/^(ERRORS\.JOB_\w+|CONFLICT)$/);
    }
    expect(console_.log()).not.toContain("a request failed");
  });

  test("happens while a worker holds the job", async () => {
    const run = await trigger("a");
    const redis = internalsOf(storeOf(console_.client)).link.client;
    await redis.set(`${PREFIX}:q:${run}:lock`, "token");
    const { status, body } = await console_.admin("PUT", `${JOBS}/${run}/clean`);
    expect([status, body.error?.code]).toEqual([409, "CONFLICT"]);
    expect(body.error?.remedy).toMatch(/cancel its run/);
    await redis.del(`${PREFIX}:q:${run}:lock`);
    expect((await console_.admin("PUT", `${JOBS}/${run}/clean`)).status).toBe(204);
    const gone = await console_.admin("PUT", `${JOBS}/${run}/clean`);
    expect([gone.status, gone.body.error?.code, gone.body.error?.key]).toEqual([
      404,
      "RUN_NOT_FOUND",
      "ERRORS.JOB_NOT_FOUND",
    ]);
  });

  test("happens for active, scheduled and foreign children", async () => {
    await console_.client.put({
      id: "b",
      type: "t",
      queue: "busy",
      schedule: { every: "1h" },
      overlap: "allow",
    });
    await console_.board.refresh();
    const prefix = bullPrefix("console-test", "busy");
    const connection = { url: console_.redis.url };
    const queue = new Queue("busy", { connection, prefix });
    const worker = new Worker("busy", null, { connection, prefix });
    const busy = "/queues/api/queues/busy";
    const parents = [await trigger("b"), await trigger("b")];
    const add = (parent?: string) => {
      const options = { jobId: "child", parent: { id: parent, queue: `${prefix}:busy` } };
      return console_.admin("POST", `${busy}/add`, { name: "t", data: {}, options });
    };
    expect((await add(parents[0])).status).toBe(200);
    const taken = (await worker.getNextJob("token"))!;
    const scheduled = (await queue.upsertJobScheduler("theirs", { every: 3_600_000, offset: 1 }))!;
    await queue.pause();
    const asked = {
      "ERRORS.JOB_IS_ACTIVE": await console_.admin("PUT", `${busy}/${taken.id}/clean`),
      "ERRORS.QUEUE_HAS_ACTIVE_JOBS": await console_.admin("PUT", `${busy}/obliterate`),
      "ERRORS.JOB_BELONGS_TO_JOB_SCHEDULER": await console_.admin(
        "PUT",
        `${busy}/${encodeURIComponent(scheduled.id!)}/clean`,
      ),
      CONFLICT: await add(parents[1]),
    };
    const removed = await scheduled.remove().then(() => undefined, coded);
    await worker.close();
    await queue.close();
    for (const [key, { status, body }] of Object.entries(asked)) {
      expect([key, status, body.error?.code, body.error?.key]).toEqual([key, 409, "CONFLICT", key]);
    }
    expect(asked["ERRORS.JOB_IS_ACTIVE"].body.error?.remedy).toMatch(/cancel its run/);
    expect(asked.CONFLICT.body.error?.field).toBe("options.parent");
    expect(removed).toMatchObject({ code: "CONFLICT", remedy: expect.stringContaining("scheduler") });
    expect(console_.log()).not.toContain("a request failed");
  });

  test("happens if the state changes meanwhile", async () => {
    const queue = new Queue("q", { connection: { url: console_.redis.url }, prefix: PREFIX });
    const job = (await queue.getJob(await trigger("a")))!;
    const said = (asked: Promise<unknown>) => asked.then(() => undefined, coded);
    const inState = await Promise.all([said(job.retry("failed")), said(job.changeDelay(1))]);
    await job.remove();
    const gone = await Promise.all([
      said(job.retry("failed")),
      said(job.updateData({})),
      said(job.changePriority({ priority: 1 })),
    ]);
    const orphan = await said(queue.add("t", {}, { parent: { id: "none", queue: `${PREFIX}:q` } }));
    await queue.close();
    expect(inState).toMatchObject([{ code: "CONFLICT" }, { code: "CONFLICT" }]);
    expect(gone).toMatchObject([1, 2, 3].map(() => ({ code: "RUN_NOT_FOUND" })));
    for (const error of [...inState, ...gone]) expect(error?.remedy).toMatch(/load the page again/i);
    expect(orphan).toMatchObject({ code: "CONFLICT", field: "options.parent" });
  });

  test("differs from an internal error", () => {
    for (const wrong of [
      new Error("Job scheduler went wrong"),
      Object.assign(new Error("Unknown code -99 error for a. promote"), { code: -99 }),
      // An error that only workers get.
      Object.assign(new Error("Missing lock for job a. moveToFinished"), { code: -2 }),
      new TypeError("Cannot read properties of undefined (reading 'connect')"),
    ]) {
      expect(coded(wrong).code).toBe("INTERNAL");
    }
  });
});

test.each([
  { priority: 1.5 },
  { priority: 1e9 },
  { deduplication: {} },
  { debounce: { id: "a" } },
  { backoff: { type: "fixed", delay: 1, jitter: 2 } },
  { sizeLimit: 1 },
  { removeDependencyOnFailure: true, failParentOnFailure: true },
])("a job cannot be added with the options %j: a 400", async (options) => {
  const { status, body } = await console_.admin("POST", `${JOBS}/add`, { name: "t", data: {}, options });
  expect([status, body.error?.code, body.error?.field]).toEqual([400, "INVALID_OPTION", "options"]);
});

test.each<[string, object]>([
  ["delay", { delay: {} }],
  ["delay", { delay: "soon" }],
  ["timestamp", { timestamp: true }],
  ["repeatJobKey", { repeatJobKey: {} }],
  ["jobId", { jobId: null }],
  ["telemetry", { telemetry: null }],
  ["deduplication.id", { deduplication: { id: {} } }],
  ["deduplication.id", { deduplication: { id: ["a"] } }],
  ["deduplication.ttl", { deduplication: { id: "a", ttl: 1.5 } }],
  ["deduplication.ttl", { deduplication: { id: "a", ttl: "1s" } }],
  ["de", { de: 1 }],
])("a job cannot be added with an option that breaks BullMQ's script, %s: %j", async (field, options) => {
  const { status, body } = await console_.admin("POST", `${JOBS}/add`, { name: "t", data: {}, options });
  expect([status, body.error?.code, body.error?.field]).toEqual([400, "INVALID_OPTION", `options.${field}`]);
  expect(console_.log()).not.toContain("a request failed");
});

test("a job can be added with BullMQ's options, and copied with those shown", async () => {
  const options = { delay: 60_000, timestamp: 1, priority: 3, deduplication: { id: "once", ttl: 1 } };
  const added = await console_.admin("POST", `${JOBS}/add`, { name: "t", data: {}, options });
  expect(added.status).toBe(200);
  for (const id of [added.body.job?.id, await trigger("a")]) {
    const { body } = await console_.admin("GET", `${JOBS}/${id}`);
    const { opts } = body.job as unknown as { opts: object };
    const { status } = await console_.admin("POST", `${JOBS}/add`, { name: "t", data: {}, options: opts });
    expect([opts, status]).toEqual([opts, 200]);
  }
});

test("jobs are removed together only by an existing status", async () => {
  for (const word of ["nosuch", "latest", "toString", "stalled", "meta", "a%3Ab"]) {
    const { status, body } = await console_.admin("PUT", `${JOBS}/clean/${word}`);
    expect([word, status, body.error?.code, body.error?.field]).toEqual([
      word,
      400,
      "INVALID_OPTION",
      "status",
    ]);
    expect(body.error?.remedy).toContain("completed, delayed, failed");
  }
  const { body } = await console_.admin("GET", "/queues/api/queues");
  const [{ statuses } = { statuses: [] }] = body.queues as unknown as Array<{ statuses: string[] }>;
  expect(statuses).toContain("delayed");
  for (const word of [...statuses.filter((one) => one !== "latest"), "wait", "paused"]) {
    const { status } = await console_.admin("PUT", `${JOBS}/clean/${word}`);
    expect([word, status]).toEqual([word, 200]);
  }
  const options = { jobId: "old", delay: 60_000, timestamp: 1 };
  await console_.admin("POST", `${JOBS}/add`, { name: "t", data: {}, options });
  const left = async (word: string) => {
    await console_.admin("PUT", `${JOBS}/clean/${word}`);
    return (await console_.admin("GET", `${JOBS}/old`)).status;
  };
  expect([await left("completed"), await left("delayed")]).toEqual([200, 404]);
});

test.each([
  ["GET", "/queues/api/queues?page=0", 400, "INVALID_OPTION"],
  ["GET", "/queues/api/queues?activeQueue=%25", 400, "INVALID_OPTION"],
  ["GET", "/queues/api/job-schedulers?queueName=%25", 400, "INVALID_OPTION"],
  ["GET", "/queues/api/queues/none/workers", 404, "INVALID_OPTION"],
  ["PUT", "/queues/api/queues/q/retry/active", 400, "INVALID_OPTION"],
  ["PUT", "/queues/api/queues/q/obliterate", 409, "CONFLICT"],
])("a refusal by Bull Board has a code: %s %s", async (method, path, status, code) => {
  const answer = await console_.admin(method, path);
  expect([answer.status, answer.body.error?.code]).toEqual([status, code]);
  expect(answer.body.error?.message).toMatch(/^\S.+ .+\.$/);
});

test("a job's data may be as large as a payload", async () => {
  const run = await trigger("a");
  const jobData = { payload: "x".repeat(250 * 1024) };
  expect((await console_.admin("PATCH", `${JOBS}/${run}/update-data`, { jobData })).status).toBe(200);
  const more = { jobData: { payload: "x".repeat(600 * 1024) } };
  const { status, body } = await console_.admin("PATCH", `${JOBS}/${run}/update-data`, more);
  expect([status, body.error?.code]).toEqual([413, "PAYLOAD_TOO_LARGE"]);
});

test("a page never has more jobs than its settings allow", async () => {
  await console_.client.put({ id: "many", type: "t", queue: "many", schedule: { every: "1h" } });
  const prefix = bullPrefix("console-test", "many");
  const queue = new Queue("many", { connection: { url: console_.redis.url }, prefix });
  await queue.addBulk(Array.from({ length: 310 }, (_, i) => ({ name: `job-${i}`, data: {} })));
  await queue.close();
  await console_.board.refresh();
  const shown = async (jobsPerPage: number) => {
    const query = `activeQueue=many&status=waiting&jobsPerPage=${jobsPerPage}`;
    const { body } = await console_.admin("GET", `/queues/api/queues?${query}`);
    return (body.queues?.find(({ name }) => name === "many")?.["jobs"] as object[] | undefined)?.length;
  };
  expect([await shown(10), await shown(300), await shown(100_000)]).toEqual([10, 300, 300]);
});

test.each([undefined, ["password"]])(
  "data that is nested too deeply is a 400, where %o is hidden",
  async (redact) => {
    const other = await startConsole({ redact }, console_.redis);
    const run = await trigger("a");
    await other.board.refresh();
    const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
    const task = (levels: number) => `{"type":"t","schedule":{"every":"1h"},"payload":${deep(levels)}}`;
    const answers: Array<[number, string | undefined]> = [];
    for (const levels of [64, 65, 40_000]) {
      for (const { status, body } of [
        await other.api("PUT", "/tasks/q/system/a", task(levels)),
        await other.admin(
          "POST",
          "/queues/api/queues/q/add",
          `{"name":"t","data":{"payload":${deep(levels)}}}`,
        ),
        await other.admin(
          "PATCH",
          `/queues/api/queues/q/${run}/update-data`,
          `{"jobData":{"payload":${deep(levels)}}}`,
        ),
      ]) {
        answers.push([status, body.error?.code]);
      }
    }
    await other.stop();
    const refused = [400, "INVALID_PAYLOAD"];
    expect(answers).toEqual([
      ...[0, 1, 2].map(() => [200, undefined]),
      ...Array.from({ length: 6 }, () => refused),
    ]);
  },
);
