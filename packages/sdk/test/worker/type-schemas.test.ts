import { operatorOf } from "@carillon/ops";
import { type CarillonError, Client, defineTask } from "@carillon/sdk";
import { internalsOf, storeOf } from "@carillon/store/internal";
import { expect, it } from "vitest";
import { z } from "zod";
import { publishedSchemas } from "../../src/worker/type-schemas.js";
import { Bench, QUEUE } from "./bench.js";

const bench = Bench.use("schemas");
const store = () => storeOf(bench.client);
const fresh = () => new Client({ store: store() });
const handler = () => {};
const schedule = { every: "1h" } as const;
const order = z.object({ customer: z.object({ mail: z.email() }), copies: z.int().min(1).optional() });
const print = defineTask("print", { queue: QUEUE, payload: order, handler });
const ring = defineTask("ring", { queue: QUEUE, handler });
const right = { customer: { mail: "a@example.com" } };
const wrong = { customer: { mail: "a" } };
const refusal = { code: "INVALID_PAYLOAD", field: "payload.customer.mail" };
const puts = (client: Client, payload: unknown, type = "print") =>
  client.put({ id: type, queue: QUEUE, type, schedule, payload });

it("a put and a trigger with a payload that no worker's schema accepts are refused, with its path", async () => {
  await bench.work([print, ring]);
  const client = fresh();
  await expect(puts(client, wrong)).rejects.toMatchObject(refusal);
  await expect(client.putMany([{ ...print, id: "b", schedule, payload: wrong } as never])).rejects.toThrow();
  const own = new Client({ store: store(), types: [print] });
  const [theirs, ours] = await Promise.all(
    [puts(client, wrong), puts(own, wrong)].map((put) => put.catch(String)),
  );
  expect(theirs).toBe(ours);
  await puts(client, right);
  await expect(client.trigger("print", { payload: wrong })).rejects.toMatchObject(refusal);
  expect(await client.trigger("print", { payload: { ...right, copies: 2 } })).toMatchObject({
    outcome: "enqueued",
  });
  await puts(client, {}, "ring");
  const loud = await Promise.all(
    [client, new Client({ store: store(), types: [ring] })].map((one) =>
      puts(one, { loud: true }, "ring").catch((error: CarillonError) => [error.code, error.message]),
    ),
  );
  expect(loud[0]).toEqual(loud[1]);
  expect(loud[0]).toEqual(["INVALID_PAYLOAD", expect.stringContaining("takes no payload. Leave it out")]);
});

it.each([
  ["a pattern that takes hours", { properties: { a: { type: "string", pattern: "^(a+)+$" } } }],
  [
    "a reference to itself",
    { properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: { $ref: "#/$defs/a" } } },
  ],
])("a schema with %s refuses nothing, and stops no put", async (_, schema) => {
  const validate = (value: unknown) => ({ value });
  const jsonSchema = { input: () => ({ type: "object", ...schema }), output: () => ({}) };
  const payload = { "~standard": { version: 1, vendor: "own", validate, jsonSchema } } as const;
  await bench.work([defineTask("print", { queue: QUEUE, payload, handler })]);
  const client = fresh();
  await expect(puts(client, "no object")).rejects.toMatchObject({ code: "INVALID_PAYLOAD" });
  expect(await puts(client, { a: `${"a".repeat(40)}!` })).toMatchObject({ outcome: "created" });
});

it("a stored payload that no longer fits does not stop a change of something else", async () => {
  await puts(fresh(), wrong);
  await bench.work([print]);
  const client = fresh();
  await client.update("print", (task) => ({ ...task, description: "x" }));
  const change = client.update("print", (task) => ({ ...task, payload: { customer: 1 } }));
  await expect(change).rejects.toMatchObject({ field: "payload.customer" });
});

it("of two versions of a worker one must accept a payload, and one without a schema accepts any", async () => {
  const next = defineTask("print", { queue: QUEUE, payload: z.object({ paper: z.string() }), handler });
  const old = await bench.work([print]);
  await bench.work([next]);
  const { schemas, without } = await operatorOf(fresh()).types.get({ type: "print", queue: QUEUE });
  expect(schemas.map(({ workers, schema }) => [workers, Object.keys(Object(schema).properties)])).toEqual([
    [1, ["paper"]],
    [1, ["customer", "copies"]],
  ]);
  expect(without).toBe(0);
  const client = fresh();
  for (const payload of [right, { paper: "a4" }]) await puts(client, payload);
  await expect(puts(client, { ink: 1 })).rejects.toMatchObject({ field: "payload.paper" });
  await old.stop();
  await expect(puts(fresh(), right)).rejects.toMatchObject({ field: "payload.paper" });

  const { "~standard": standard } = order;
  const plain = { "~standard": { version: 1, vendor: "own", validate: standard.validate } } as const;
  await bench.work([defineTask("print", { queue: QUEUE, payload: plain, handler })]);
  await puts(fresh(), { ink: 1 });
});

it("schemas are written once, again if the worker was taken off the list, and leave with it", async () => {
  const { keys } = internalsOf(store());
  const worker = await bench.work([print], { heartbeatEvery: 100 });
  const published = () => bench.admin.hkeys(keys.schemas);
  expect(await published()).toEqual([worker.id]);
  await bench.admin.del(keys.schemas);
  const { beat } = (await store().registry.workers())[0] ?? { beat: 0 };
  const later = async () => ((await store().registry.workers())[0]?.beat ?? 0) > beat;
  await expect.poll(later, { timeout: 60_000 }).toBe(true);
  expect(await published()).toEqual([]);
  await bench.admin.del(keys.workers);
  await expect.poll(published, { timeout: 60_000 }).toEqual([worker.id]);
  await worker.stop();
  expect(await published()).toEqual([]);
});

const ACCEPTED: [name: string, schema: z.ZodType, payload: unknown][] = [
  ["a trimmed text", z.object({ a: z.string().trim().max(3) }), { a: "  abc  " }],
  ["a coerced number", z.object({ a: z.coerce.number().int() }), { a: "5" }],
  ["a wrong value with another one for it", z.object({ a: z.string().catch("x") }), { a: 1 }],
  ["a missing value with another one for it", z.object({ a: z.string().catch("x") }), {}],
  ["a preprocessed value", z.object({ a: z.preprocess(Number, z.number()) }), { a: "5" }],
  ["a pattern with flags", z.object({ a: z.string().regex(/^a+$/i) }), { a: "AA" }],
  ["a date", z.object({ a: z.coerce.date() }), { a: "2026-01-01" }],
  ["more fields than known", z.object({}), { a: 1 }],
  ["a default", z.object({ a: z.number().default(1), b: z.enum(["x"]).nullish() }), {}],
  ["a union by a literal", z.discriminatedUnion("k", [z.object({ k: z.literal("a") })]), { k: "a" }],
  [
    "a recursive one",
    z.object({
      get sub() {
        return z.array(order).optional();
      },
    }),
    { sub: [] },
  ],
];

it.each(ACCEPTED)("a schema that is published accepts what the type accepts: %s", (_, payload, value) => {
  expect(payload.safeParse(value).success).toBe(true);
  const { text } = publishedSchemas([{ type: "t", queue: QUEUE, payload }]);
  expect(z.fromJSONSchema(JSON.parse(text).t).safeParse(value).success).toBe(true);
});

it("a schema that is too large, or that JSON cannot say, is not published", () => {
  const large = z.enum(Array.from({ length: 2_000 }, (_, i) => `value-${i}`) as [string]);
  const thrower = {
    "~standard": {
      ...order["~standard"],
      jsonSchema: {
        input: () => {
          throw new Error("no");
        },
      },
    },
  };
  const all = { large, thrower: thrower as never, small: z.object({}) };
  const types = Object.entries(all).map(([type, payload]) => ({ type, queue: QUEUE, payload }));
  expect(Object.keys(JSON.parse(publishedSchemas(types).text))).toEqual(["small"]);
  expect(publishedSchemas(types.slice(0, 2))).toEqual({ text: "", digest: "" });
});
