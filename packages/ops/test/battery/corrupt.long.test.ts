import { isCarillonError } from "@carillon/core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sharedRedis } from "../../../../test/helpers.js";
import { HTTP_OPERATIONS } from "../../src/http.js";
import { perform } from "../../src/operator.js";
import { callOf } from "./battery.js";
import { type Program, World } from "./world.js";

const redis = sharedRedis();
let world: World;
beforeAll(async () => {
  world = await World.build(redis);
});
afterAll(() => world.close());

const KNOWN = new Map(HTTP_OPERATIONS.map(({ name, operation }) => [name, operation]));
/** Operations that change nothing. */
const READS = HTTP_OPERATIONS.filter(
  ({ method, operation }) => method === "GET" || operation.once === "reads",
);

/** The answers of all operations that read. */
async function answers(program: Program) {
  const all = await Promise.allSettled(
    READS.map(async ({ name }) => {
      const { operation, input } = callOf(world, KNOWN, name);
      return perform(program.client, operation, input);
    }),
  );
  return new Map(READS.map(({ name }, i) => [name, all[i] as PromiseSettledResult<unknown>]));
}

/** Number of entries of a list. */
function length(answer: PromiseSettledResult<unknown> | undefined): number {
  const { value } = answer as { value?: object };
  return (Object.values(value ?? {}).find(Array.isArray) ?? []).length;
}

/** `{battery:bells}:~t:acme/t1` is a record of the kind `:~t:`. */
const kindOf = (key: string) => key.replace(/^\{battery(:\w[\w-]*)?\}/, "").replace(/(~\w+:).*/, "$1");

const GARBAGE = '{"a":';
/** What foreign programs leave in the place of a key. */
function* damages(
  key: string,
  type: string,
  fields: readonly string[],
): Generator<[what: string, act: () => Promise<unknown>]> {
  const { redis } = world;
  yield [
    "another type",
    () => redis.del(key).then(() => redis.call(type === "string" ? "rpush" : "set", key, GARBAGE)),
  ];
  if (type === "string") yield ["garbage", () => redis.set(key, GARBAGE)];
  if (type === "list") yield ["garbage", () => redis.lpush(key, GARBAGE)];
  if (type === "zset") yield ["garbage", () => redis.zadd(key, 1, GARBAGE)];
  if (type === "set") yield ["garbage", () => redis.sadd(key, GARBAGE)];
  if (type !== "hash") return;
  yield [
    "garbage in all fields",
    () => redis.hset(key, Object.fromEntries(fields.map((field) => [field, GARBAGE]))),
  ];
  for (const field of fields) yield [`garbage in ${field}`, () => redis.hset(key, field, GARBAGE)];
}

it("a corrupt record costs its own row, and answers have codes", async () => {
  await world.again();
  const before = await answers(world.program());
  const refused = [...before].filter(([, { status }]) => status === "rejected");
  expect(refused, "the examples are right").toEqual([]);
  const kinds = new Map<string, string>();
  for (const key of (await world.redis.keys("{battery*")).sort())
    if (key !== "{battery}:~clock") kinds.set(kindOf(key), key);
  const faults: string[] = [];
  for (const key of kinds.values()) {
    await world.again();
    const type = await world.redis.type(key);
    const fields = type === "hash" ? await world.redis.hkeys(key) : [];
    for (const [what, act] of damages(key, type, fields)) {
      await world.again();
      await act();
      const program = world.program();
      const after = await answers(program);
      await world.left();
      for (const [name, answer] of after) {
        if (answer.status === "rejected" && !isCarillonError(answer.reason))
          faults.push(`${key}, ${what}: ${name}: ${answer.reason?.stack}`);
        // A record of one task or run.
        if (
          !/~\w+:.+/.test(key) ||
          !/\.(list|journal|running)$/.test(name) ||
          !KNOWN.get(name)?.input.safeParse({}).success
        )
          continue;
        if (answer.status === "rejected") faults.push(`${key}, ${what}: ${name}: ${answer.reason}`);
        else if (length(answer) < length(before.get(name)) - 1)
          faults.push(
            `${key}, ${what}: ${name} has ${length(answer)} entries of ${length(before.get(name))}`,
          );
      }
    }
  }
  const short = new Map(faults.map((one) => [one.replace(/^[^,]*/, ""), one]));
  expect([...short.values()].slice(0, 40).join("\n\n")).toBe("");
});
