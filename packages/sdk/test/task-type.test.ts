import { defineTask } from "@carillon/sdk";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { assertTaskType, assertWorkable, isFanOut, validatePayload } from "../src/task-type.js";

const payload = z.object({ n: z.number() });
const handler = () => {};
const options = { queue: "q", payload, handler };
const items = { queue: "q", payload, generate: (): number[] => [], process: (_n: number) => {} };
const define = defineTask as (name: unknown, options: unknown) => ReturnType<typeof defineTask>;

describe("a task type", () => {
  it("is its options with a name, and cannot be changed", () => {
    const type = defineTask("a", options);
    expect(type).toEqual({ type: "a", ...options });
    expect(Object.isFrozen(type)).toBe(true);
    expect([type, defineTask("b", items)].map(isFanOut)).toEqual([false, true]);
  });

  const both = "Give the handler, or generate and process.";
  it.each<[string, unknown, unknown, object]>([
    ["name", "a b", options, { code: "INVALID_NAME", field: "type" }],
    [
      "options",
      "a",
      null,
      { field: "options", remedy: "Give the queue, the payload's schema and the handler." },
    ],
    ["queue", "a", { ...options, queue: "q:q" }, { code: "INVALID_NAME", field: "queue" }],
    ["payload", "a", { ...options, payload: { "~standard": {} } }, { field: "payload", remedy: /schema/ }],
    ["handler", "a", { ...options, handler: "x" }, { field: "handler", remedy: both }],
    ["lack of a process", "a", { ...options, generate: () => [] }, { field: "process" }],
    ["lack of a generate", "a", { ...options, process: () => {} }, { field: "generate" }],
    [
      "policy of a task",
      "a",
      { ...options, retry: { attempts: 3 } },
      { field: "retry", remedy: /^Give it to the task: put\(type, { …, retry }\)\.$/ },
    ],
    ["misspelt option", "a", { ...options, handlr: 1 }, { field: "handlr", remedy: "Did you mean handler?" }],
    [
      "option of items",
      "a",
      { ...options, concurrency: 2 },
      { field: "concurrency", remedy: /^Known: payload/ },
    ],
    ["handler beside items", "a", { ...options, ...items }, { field: "handler", remedy: both }],
  ])("is refused for its %s", (_what, name, given, { remedy, ...error }: { remedy?: string | RegExp }) => {
    const says = remedy === undefined ? expect.any(String) : expect.stringMatching(remedy);
    const expected = { code: "INVALID_OPTION", remedy: says, ...error };
    expect(() => define(name, given)).toThrow(expect.objectContaining(expected));
  });

  const noTaskType = expect.objectContaining({
    ...{ code: "INVALID_OPTION", field: "types[0]" },
    message: expect.stringContaining("not a task type. Give what defineTask returns."),
  });
  it.each([undefined, null, "a", {}, { type: "a" }, { type: "a b", payload }, { payload }])(
    "is not %j",
    (value) => expect(() => assertTaskType(value, "types[0]")).toThrow(noTaskType),
  );

  it("can be put without code, and worked only with it and a queue", () => {
    const bare = { type: "a", queue: "q", payload };
    for (const put of [bare, defineTask("a", options)]) assertTaskType(put, "types[0]");
    for (const worked of [defineTask("a", options), defineTask("b", items)])
      assertWorkable(worked, "types[0]");
    for (const wrong of [
      {},
      { ...options, type: "a", payload: {} },
      bare,
      { ...bare, handler: "x" },
      { ...bare, handler, queue: undefined },
    ]) {
      expect(() => assertWorkable(wrong, "types[0]")).toThrow(noTaskType);
    }
  });
});

describe("a payload", () => {
  /** A type whose schema finds this wrong. */
  const finds = (...issues: StandardSchemaV1.Issue[]) => {
    const schema = {
      "~standard": { version: 1, vendor: "test", validate: async () => ({ issues }) },
    } as const;
    return defineTask("a", { ...options, payload: schema });
  };

  it("is what its schema makes of it", async () => {
    const type = defineTask("a", { ...options, payload: z.object({ n: z.coerce.number() }) });
    expect(await validatePayload(type, { n: "1" })).toEqual({ n: 1 });
  });

  it.each<[StandardSchemaV1.Issue[], string, string]>([
    [[{ message: "no", path: ["a", { key: 0 }, "b"] }, { message: "nor this" }], "payload.a.0.b", "no."],
    [[{ message: "no" }], "payload", "no."],
    [[{ message: "no", path: ["x".repeat(200)] }], `payload.${"x".repeat(92)}`, "no."],
    [[], "payload", "does not fit."],
  ])("that does not fit is refused: %j", async (issues, field, message) => {
    const refused = {
      ...{ code: "INVALID_PAYLOAD", field },
      message: `${field}: ${message} Give what task type a expects.`,
    };
    await expect(validatePayload(finds(...issues), {})).rejects.toMatchObject(refused);
  });
});
