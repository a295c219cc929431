import { defineTask, implement, task, Worker } from "@carillon/sdk";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { assertTaskType, assertWorkable, isFanOut, validatePayload } from "../src/task-type.js";

const payload = z.object({ n: z.number() });
const handler = () => {};
const options = { queue: "q", payload, handler };
const items = { queue: "q", payload, generate: (): number[] => [], process: (_n: number) => {} };
const define = defineTask as (name: unknown, options: unknown) => ReturnType<typeof defineTask>;

const expectNone = (none: undefined) => expect(none).toBeUndefined();

describe("a task type", () => {
  it("is a frozen copy of its options with a name", () => {
    const type = defineTask("a", options);
    expect(type).toEqual({ type: "a", ...options });
    expect(Object.isFrozen(type)).toBe(true);
    expect([type, defineTask("b", items)].map(isFanOut)).toEqual([false, true]);
  });

  it("can be a contract that gets its code in the worker", () => {
    const contract = defineTask("a", { queue: "q", payload });
    expect(contract).toEqual({ type: "a", queue: "q", payload });
    expect(implement(contract, handler)).toEqual(defineTask("a", options));
    const { queue, payload: _, ...work } = items;
    const manyItems = implement(contract, { ...work, concurrency: 2 });
    expect(manyItems).toEqual(defineTask("a", { ...items, queue, concurrency: 2 }));
    expect(implement(manyItems, handler)).toEqual(defineTask("a", options));
  });

  it("can have no payload: its handler gets undefined", async () => {
    const type = defineTask("a", { queue: "q", handler: (none) => expectNone(none) });
    const contract = defineTask("a", { queue: "q" });
    const many = defineTask("b", { queue: "q", generate: () => [1], process: (item) => void item.toFixed() });
    for (const one of [type, contract, many, implement(contract, () => {})]) {
      for (const none of [undefined, null, {}]) expect(await validatePayload(one, none)).toBeUndefined();
      await expect(validatePayload(one, { n: 1 })).rejects.toMatchObject({
        code: "INVALID_PAYLOAD",
        message: expect.stringContaining("takes no payload"),
        remedy: expect.stringContaining(`defineTask("${one.type}", { payload: z.object({ … }) })`),
      });
    }
    // Compiles without a payload, and not with one.
    expect(task(type, { id: "t", schedule: { every: "1h" } })).toEqual({
      id: "t",
      schedule: { every: "1h" },
      queue: "q",
      type: "a",
    });
    // @ts-expect-error: this type takes none
    task(type, { id: "t", schedule: { every: "1h" }, payload: { n: 1 } });
  });

  it.each<[string, unknown, unknown, object]>([
    ["contract", {}, handler, { field: "contract", message: expect.stringContaining("not a task type.") }],
    ["lack of code", defineTask("a", options), undefined, { field: "handler" }],
    ["lack of a process", defineTask("a", options), { generate: () => [] }, { field: "process" }],
    ["option of the contract", defineTask("a", options), { ...items, queue: "r" }, { field: "queue" }],
  ])("is not implemented for its %s", (_what, contract, code, error) => {
    const expected = { code: "INVALID_OPTION", ...error };
    expect(() => implement(contract as never, code as never)).toThrow(expect.objectContaining(expected));
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
    code: "INVALID_OPTION",
    field: "types[0]",
    message: expect.stringContaining("not a task type. Give the result of defineTask."),
  });
  it.each([undefined, null, "a", {}, { type: "a" }, { type: "a b", payload }, { payload }])(
    "is not %j",
    (value) => expect(() => assertTaskType(value, "types[0]")).toThrow(noTaskType),
  );

  it("can be put without code, and run only with code and a queue", () => {
    const bare = { type: "a", queue: "q", payload };
    for (const put of [bare, defineTask("a", options)]) assertTaskType(put, "types[0]");
    for (const worked of [defineTask("a", options), defineTask("b", items)])
      assertWorkable(worked, "types[0]");
    for (const wrong of [
      {},
      { ...options, type: "a", payload: {} },
      { ...bare, handler, queue: undefined },
    ]) {
      expect(() => assertWorkable(wrong, "types[0]")).toThrow(noTaskType);
    }
    const noHandler = expect.objectContaining({
      code: "INVALID_OPTION",
      field: "types[0]",
      message: "types[0]: task type a has no handler. Give implement(contract, handler).",
    });
    for (const wrong of [bare, { ...bare, handler: "x" }])
      expect(() => new Worker({ connection: "redis://localhost", types: [wrong as never] })).toThrow(
        noHandler,
      );
  });
});

describe("a payload", () => {
  /** A type whose schema reports these issues. */
  const finds = (...issues: StandardSchemaV1.Issue[]) => {
    const schema = {
      "~standard": { version: 1, vendor: "test", validate: async () => ({ issues }) },
    } as const;
    return defineTask("a", { ...options, payload: schema });
  };

  it("is the output of its schema", async () => {
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
      code: "INVALID_PAYLOAD",
      field,
      message: `${field}: ${message} Give a payload that fits the schema of task type a.`,
    };
    await expect(validatePayload(finds(...issues), {})).rejects.toMatchObject(refused);
  });
});
