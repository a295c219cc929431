import { isCarillonError } from "@carillon/core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sharedRedis } from "../../../../test/helpers.js";
import { HTTP_OPERATIONS } from "../../src/http.js";
import { perform } from "../../src/operator.js";
import { callOf } from "./battery.js";
import { World } from "./world.js";

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
).map(({ name }) => name);
/** Those that list all records of a kind. */
const LISTS = READS.filter(
  (name) => /\.(list|journal|running)$/.test(name) && KNOWN.get(name)?.input.safeParse({}).success,
);

type Answer = PromiseSettledResult<unknown>;
type Answers = ReadonlyMap<string, Answer>;

/** The answers of some operations of one program, by name. */
async function answers(names: readonly string[]): Promise<Answers> {
  const { client } = world.program();
  const all = await Promise.allSettled(
    names.map(async (name) => {
      const { operation, input } = callOf(world, KNOWN, name);
      return perform(client, operation, input);
    }),
  );
  await world.left();
  return new Map(names.map((name, i) => [name, all[i] as Answer]));
}

type Readers = ReadonlyMap<string, ReadonlySet<string>>;

/** The answers of all operations in the intact world, and by key the operations that read it: Redis reports each command, of scripts too. */
async function intact(): Promise<{ before: Answers; readers: Readers }> {
  const monitor = await world.redis.monitor();
  let [words, end]: [string[], () => void] = [[], () => {}];
  monitor.on("monitor", (_time: string, args: string[]) => {
    words.push(...args);
    if (args[0] === "echo") end();
  });
  const before = new Map<string, Answer>();
  const readers = new Map<string, Set<string>>();
  for (const name of READS) {
    words = [];
    before.set(name, (await answers([name])).get(name) as Answer);
    const reported = new Promise<void>((resolve) => {
      end = resolve;
    });
    await world.redis.echo("");
    await reported;
    for (const key of words.filter((word) => word.startsWith("{battery") && word !== "{battery}:~clock"))
      readers.set(key, (readers.get(key) ?? new Set()).add(name));
  }
  monitor.disconnect();
  return { before, readers };
}

/** `{battery:bells}:~t:acme/t1` is a record of the kind `:~t:`, a job of BullMQ one of the kind `:bells:@`. */
const kindOf = (key: string) =>
  key
    .replace(/^\{battery(:\w[\w-]*)?\}/, "")
    .replace(/(~\w+:).*/, "$1")
    .replace(/[^:]+@.*/, "@");

/** Keys of each kind, until each operation that reads the kind reads one of them. */
function someOfEachKind(readers: Readers): string[] {
  const seen = new Set<string>();
  const mostRead = [...readers].sort(([, a], [, b]) => b.size - a.size);
  return mostRead.flatMap(([key, names]) => {
    const reads = [...names].map((name) => `${kindOf(key)} ${name}`);
    const isNew = reads.some((one) => !seen.has(one));
    for (const one of reads) seen.add(one);
    return isNew ? [key] : [];
  });
}

/** Number of entries of a list. */
function length(answer: Answer | undefined): number {
  const { value } = answer as { value?: object };
  return (Object.values(value ?? {}).find(Array.isArray) ?? []).length;
}

const GARBAGE = '{"a":';
/** The ways in which foreign programs damage a key. */
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
  const { before, readers } = await intact();
  const refused = [...before].filter(([, { status }]) => status === "rejected");
  expect(refused, "the examples are right").toEqual([]);
  const keys = someOfEachKind(readers);
  expect(keys.length).toBeGreaterThan(60);
  const faults: string[] = [];
  for (const key of keys) {
    await world.again();
    const type = await world.redis.type(key);
    const fields = type === "hash" ? await world.redis.hkeys(key) : [];
    const isRecord = /~\w+:.+/.test(key);
    for (const [what, act] of damages(key, type, fields)) {
      await world.again();
      await act();
      // Other operations do not notice the damage.
      for (const [name, answer] of await answers([...(readers.get(key) ?? [])])) {
        const fault = (text: unknown) => faults.push(`${key}, ${what}: ${name}${text}`);
        const isWhole = isRecord && LISTS.includes(name);
        if (answer.status === "rejected" && !isCarillonError(answer.reason))
          fault(`: ${answer.reason?.stack}`);
        if (isWhole && answer.status === "rejected") fault(`: ${answer.reason}`);
        else if (isWhole && length(answer) < length(before.get(name)) - 1)
          fault(` has ${length(answer)} entries of ${length(before.get(name))}`);
      }
    }
  }
  const short = new Map(faults.map((one) => [one.replace(/^[^,]*/, ""), one]));
  expect([...short.values()].slice(0, 40).join("\n\n")).toBe("");
});
