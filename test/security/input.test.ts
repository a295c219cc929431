import { operatorOf } from "@carillon/ops";
import { CarillonError, Client, defineTask, type TaskInput } from "@carillon/sdk";
import { internalsOf, storeOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { explained } from "../../packages/ops/test/in-words.js";
import { enqueued } from "../helpers.js";
import { anything, PATIENCE, Stand } from "../seeds/harness.js";

/*
 * Hostile input at the boundary where it enters. Refusals of the HTTP API are tested in
 * apps/console/test/api-bad-input, those of a put in packages/sdk/test/bad-input, and costs of schedules in
 * packages/core/test/schedule/hostile.
 */

const QUEUE = "bells";
const stand = Stand.use();
// Deletes keys of earlier tests, which would expire between two dumps.
beforeEach(async () => void (await stand.admin.flushall()));

/** Names that are invalid, or have a special meaning in keys of Redis or BullMQ, in a path, a log, or Lua. */
const NO_NAMES: [what: string, name: unknown][] = [
  ["empty", ""],
  ["a colon", "a:b"],
  ["a hash tag", "{a}"],
  ["the end of a hash tag", "a}"],
  ["a slash", "a/b"],
  ["a job id's sign", "a@1"],
  ["a space", "a b"],
  ["a tab", "a\tb"],
  ["a line", "a\nb"],
  ["an ending line", "a\n"],
  ["a carriage return", "a\r"],
  ["NUL", "a\u0000"],
  ["a line separator", "a\u2028b"],
  ["129 characters", "x".repeat(129)],
  ["a megabyte", "x".repeat(1_000_000)],
  ["an umlaut", "ä"],
  ["a Cyrillic a", "\u0430"],
  ["a wide a", "\uff41"],
  ["a ligature", "\ufb01le"],
  ["a zero-width space", "a\u200bb"],
  ["text from right to left", "a\u202eb"],
  ["half a character", "\ud800"],
  ["a glob", "*"],
  ["a quote", "'"],
  ["Lua", '"]] redis.call("FLUSHALL") --'],
  ["a percent sign", "a%2Fb"],
  ["a number", 5],
  ["a list", ["a"]],
  ["an object that turns into a name", { toString: () => "a" }],
  ["null", null],
];

/** Characters that end a line or reverse its direction in some context. */
const SIGNS = ["\n", "\r", "\u0000", "\u001b", "\u0085", "\u2028", "\u2029", "\u202e", "\u2066"];

/** Arbitrary texts, which must be kept unchanged. */
const TEXTS: [what: string, text: string][] = [
  ["Lua", `"]] redis.call("SET", "pwned", "1") --[[`],
  ["Lua in a long string", `]==] redis.call("SET", "pwned", "1") --[==[`],
  ["Lua that is joined", `' .. redis.call("SET", "pwned", "1") .. '`],
  ["a pattern", "%s%d%1%0 ^(.*)$ [%w]+"],
  ["the end of the job's data", `"}},"occurrence":{"run":"forged"},"enqueued":1}`],
  ["RESP", "\r\n*1\r\n$8\r\nFLUSHALL\r\n"],
  ["NUL and other signs", "\u0000\u0001\u001b[31m\u007f\u2028"],
  ["a prototype", "__proto__"],
  ["a number that is none", "1e400"],
];

/** @returns the error of a call that must be refused without changing a key */
async function refused(act: () => Promise<unknown>): Promise<CarillonError> {
  const before = await dump();
  const error = await act().then(
    () => "accepted",
    (failure: unknown) => failure,
  );
  expect(error).toBeInstanceOf(CarillonError);
  expect(await dump()).toEqual(before);
  const coded = error as CarillonError;
  // The message is one short line, whatever was sent.
  expect([...coded.message].filter((sign) => SIGNS.includes(sign))).toEqual([]);
  expect(coded.message.length).toBeLessThan(800);
  return coded;
}

async function dump(): Promise<unknown> {
  const keys = (await stand.admin.keys("*")).sort();
  return Promise.all(keys.map(async (key) => [key, (await stand.admin.dumpBuffer(key))?.toString("base64")]));
}

const task = (rest: object = {}) =>
  ({ id: "a", queue: QUEUE, type: "t", schedule: { every: "1h" }, ...rest }) as TaskInput;

describe("text that is not a name", () => {
  let client: Client;
  beforeEach(async () => {
    client = stand.client();
    await client.put(task());
    // The change is logged: no write of this put is still in progress.
    expect((await operatorOf(client).changes.list()).changes).toHaveLength(1);
  });

  it.each(NO_NAMES)("%s: is refused as any name", async (_, odd) => {
    const name = odd as string;
    // Undefined is omitted from the JSON, which is another case.
    const places: [string, () => Promise<unknown>][] = [
      ...["id", "owner", "queue", "type"].map((field): [string, () => Promise<unknown>] => [
        field,
        () => client.put(task({ [field]: name })),
      ]),
      ["a tag", () => client.put(task({ tags: ["fine", name] }))],
      ["a batch", () => client.putMany([task({ id: "good" }), task({ id: name })])],
      ["a calendar", () => operatorOf(client).calendars.put({ name, entries: ["2026-12-25"] })],
      [
        "a calendar that is named",
        () => client.put(task({ schedule: { every: "1h", except: [{ named: name }] } })),
      ],
      ["a type that is allowed", () => operatorOf(client).types.allow({ types: [name] })],
      ["a filter", () => client.list({ tag: name })],
      ["many", () => operatorOf(client).tasks.pauseMany({ owner: name })],
      ["a task", () => client.get({ id: name, queue: QUEUE })],
      ["a task to run", () => client.trigger({ id: "a", queue: name })],
      ["a task to delete", () => client.delete({ id: "a", owner: name, queue: QUEUE })],
      ["the namespace", async () => void new Client({ connection: stand.redis.url, namespace: name })],
      ["the owner of a client", async () => void new Client({ connection: stand.redis.url, owner: name })],
    ];
    for (const [place, act] of places) {
      // Null stands for a missing owner or namespace in some languages.
      if (odd === null && /owner|many|namespace|delete|filter/.test(place)) continue;
      const { code } = await refused(act);
      expect([place, code]).toEqual([
        place,
        expect.stringMatching(/^INVALID_(NAME|OPTION|FILTER|SCHEDULE|TASK)$/),
      ]);
    }
    expect((await client.list()).tasks.map(({ id }) => id)).toEqual(["a"]);
  });

  it("is refused on the command line", async () => {
    const odd = NO_NAMES.flatMap(([, name]) =>
      typeof name === "string" && !name.includes("\u0000") ? [name] : [],
    );
    const lines = odd.map((id) => JSON.stringify(task({ id }))).join("\n");
    const put = await stand.carillon(["put", "-", "--json"], lines);
    expect(put.code).not.toBe(0);
    for (const name of ["a:b", "{a}", "a\nb", "\u202e", "*"]) {
      const { code, stderr, stdout } = await stand.carillon(["show", name, "--json"]);
      expect([name, code === 0, stdout]).toEqual([name, false, ""]);
      expect(stderr.trimEnd().split("\n")).toHaveLength(1);
      expect(JSON.parse(stderr)).toMatchObject({ error: { code: "INVALID_NAME" } });
    }
    expect((await client.list()).tasks.map(({ id }) => id)).toEqual(["a"]);
  });
});

it.each(TEXTS)("text stays unchanged from the put to the handler and back: %s", async (_, text) => {
  const seen: unknown[] = [];
  const type = defineTask("t", {
    queue: QUEUE,
    payload: anything,
    handler: (payload, { occurrence: { subject, submitter, group } }) => {
      seen.push({ payload, subject, submitter, group });
      return { text };
    },
  });
  const kit = await stand.kit({ types: [type], queues: [QUEUE] });
  const { client } = kit;
  // Short texts appear on terminals and in logs: only there, control characters are refused.
  const line = text.replace(/[^\P{Cc}\t\n\r]/gu, "");
  const said = { subject: line, submitter: line, group: line };
  if (line !== text) {
    for (const field of ["description", "subject", "submitter", "group"]) {
      const put = client.put(type, { id: "a", schedule: { every: "1m" }, [field]: text } as never);
      await expect(put).rejects.toMatchObject({ code: "INVALID_TASK", field });
    }
  }
  const payload = { [text === "__proto__" ? "proto" : text]: text, list: [text] };
  await client.put(type, {
    id: "a",
    schedule: { every: "1m" },
    description: line,
    payload,
    ...said,
  } as never);
  expect(await client.get("a")).toMatchObject({ description: line, payload, ...said });
  if (line !== text) {
    await expect(client.pause("a", { note: text })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      field: "note",
    });
  }
  await client.pause("a", { note: line, by: "me" });
  expect((await client.get("a")).paused).toMatchObject({ note: line });
  await client.resume("a", { by: line.slice(0, 20) });
  await kit.advance("2m");
  expect(seen).toEqual(Array(2).fill({ payload, ...said }));
  const [run] = await client.runs.list("a");
  expect(run).toMatchObject({ outcome: "succeeded", result: { text } });
  expect(await explained(client, "a", run?.nominal ?? 0)).toMatchObject({ verdict: "enqueued" });
  expect(await stand.admin.exists("pwned")).toBe(0);
  await client.delete("a");
});

describe("too much data", () => {
  /** The cost of a refusal: far below that of accepting the data. */
  async function cheaply(act: () => Promise<unknown>): Promise<CarillonError> {
    globalThis.gc?.();
    const before = process.memoryUsage().heapUsed;
    const begun = process.cpuUsage();
    const error = await refused(act);
    const { user, system } = process.cpuUsage(begun);
    expect((user + system) / 1_000).toBeLessThan(10_000);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(256 * 1024 * 1024);
    return error;
  }
  const nested = (levels: number) => JSON.parse(`${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`) as unknown;
  const many = (count: number) => Array.from({ length: count }, (_, i) => i);
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;

  it.each<[string, object]>([
    ["a payload of 20 MB", { payload: "x".repeat(20_000_000) }],
    ["a payload of a million numbers", { payload: many(1_000_000) }],
    ["a payload with a key of a megabyte", { payload: { ["k".repeat(1_000_000)]: 1 } }],
    ["a payload 65 levels deep", { payload: nested(65) }],
    ["a payload 5,000 levels deep", { payload: nested(5_000) }],
    ["a payload that refers to itself", { payload: circle }],
    ["a payload with a prototype, deep inside", { payload: [JSON.parse('{"a":{"__proto__":1}}')] }],
    ["a payload that makes itself large", { payload: { toJSON: () => "x".repeat(1_000_000) } }],
    ["a description of a megabyte", { description: "x".repeat(1_000_000) }],
    ["a subject of a megabyte", { subject: "x".repeat(1_000_000) }],
    ["a million tags", { tags: many(1_000_000).map(String) }],
    ["a million unknown fields", Object.fromEntries(many(100_000).map((i) => [`f${i}`, i]))],
    ["a schedule 5,000 levels deep", { schedule: nested(5_000) }],
    ["a cron of a megabyte", { schedule: { cron: "1,".repeat(500_000) } }],
    ["a zone of a megabyte", { schedule: { cron: "* * * * *", timezone: "A/".repeat(500_000) } }],
    [
      "a million exceptions",
      { schedule: { every: "1h", except: many(1_000_000).map(() => ({ every: "1h" })) } },
    ],
    ["nine webhooks", { alerts: many(9).map((i) => ({ on: ["failed"], url: `https://example.com/${i}` })) }],
    [
      "a webhook of a megabyte",
      { alerts: [{ on: ["failed"], url: `https://example.com/${"x".repeat(1_000_000)}` }] },
    ],
  ])("%s is refused at once", async (_, rest) => {
    const client = stand.client();
    await client.put(task());
    for (const input of [task({ id: "new", ...rest }), task(rest)]) await cheaply(() => client.put(input));
  });

  it("is refused as a page size or a note", async () => {
    const client = stand.client();
    await client.put(task());
    await cheaply(() => client.list({ limit: 1_000_000 }));
    await cheaply(() => client.runs.list("a", { limit: 1e9 }));
    await cheaply(() => operatorOf(client).occurrences.upcoming({ limit: 1e9 }));
    await cheaply(() => operatorOf(client).occurrences.upcoming({ within: "1h", limit: 1e9 }));
    await cheaply(() => client.pause("a", { note: "x".repeat(1_000_000) }));
    await cheaply(() =>
      operatorOf(client).calendars.put({ name: "c", entries: many(5_000).map(() => "2026-12-25") }),
    );
    await cheaply(() => client.list({ cursor: "x".repeat(1_000_000) }));
  });

  it("does not fill Redis as a result, checkpoint or output", async () => {
    const type = defineTask("t", {
      queue: QUEUE,
      payload: anything,
      handler: async (_payload, { log, saveCheckpoint }) => {
        for (let i = 0; i < 100; i++) log("x".repeat(20_000));
        await saveCheckpoint("x".repeat(100_000)).catch((error: CarillonError) => log(error.code));
        return "x".repeat(1_000_000);
      },
    });
    const client = stand.client();
    const worker = stand.worker([type]);
    await client.put(type, { id: "a", schedule: { every: "1h" }, payload: {} });
    const triggered = enqueued(await client.trigger("a"));
    await worker.start();
    await eventually(async () => (await client.runs.get(triggered.run)).state === "final", PATIENCE);
    const { result, output } = await client.runs.get(triggered.run);
    expect(result).toEqual({ cut: true, length: 1_000_002 });
    expect(output?.[0]?.cut).toBe(true);
    expect(output?.[0]?.text.length).toBeLessThanOrEqual(64 * 1024);
    expect(output?.[0]?.text).toContain("PAYLOAD_TOO_LARGE");
    const own = internalsOf(storeOf(client)).keys.queue(QUEUE);
    for (const key of [own.run(triggered.run), own.output(triggered.run), own.stats("system/a")]) {
      expect(await stand.admin.memory("USAGE", key)).toBeLessThan(256 * 1024);
    }
  });
});
