import { FACTS } from "../script/facts.js";
import { answers, script } from "../script/script.js";
import type { Scripts } from "../script/scripts.js";
import type { Link } from "./link.js";

const READ_FIELDS = script("read-fields", {
  once: "reads",
  keys: ["hashes[]"],
  args: ["fields[]"],
  answer: answers<string[]>(),
});

/** Hashes of one script call. It takes Redis about a millisecond. */
const AT_ONCE = 500;

/** Reads some fields of many hashes of one queue, in the order of their keys; "": missing, or the hash is corrupt. One round trip. */
export async function readFields(
  scripts: Scripts,
  hashes: readonly string[],
  fields: readonly string[],
): Promise<string[][]> {
  const parts = Array.from({ length: Math.ceil(hashes.length / AT_ONCE) }, (_, i) =>
    scripts.run(READ_FIELDS, { hashes: hashes.slice(i * AT_ONCE, (i + 1) * AT_ONCE) }, { fields }),
  );
  return (await Promise.all(parts)).flatMap((texts) => texts.map((text) => text.split(FACTS.separator)));
}

/** Replies by command, and so the commands that a pipeline may read with. */
interface Replies {
  hget: string | null;
  hgetall: Readonly<Record<string, string>>;
  hmget: readonly (string | null)[];
  lrange: string[];
  zcard: number;
  zrange: string[];
  zrevrange: string[];
  zrevrangebyscore: string[];
}
type Read<Name extends keyof Replies> = readonly [name: Name, key: string, ...args: (string | number)[]];

/**
 * Reads keys of one queue in one round trip. Undefined: the key holds another type (foreign data). Any other failure, such as a connection
 * that ends meanwhile, fails the whole call, so that it can be repeated.
 *
 * @throws coded Redis errors
 */
export async function readEach<Name extends keyof Replies>(
  link: Link,
  reads: readonly Read<Name>[],
): Promise<(Replies[Name] | undefined)[]> {
  if (reads.length === 0) return [];
  return link.ask(async (client) => {
    const replies = await client.pipeline(reads.map((read) => [...read])).exec();
    if (replies?.length !== reads.length) throw new Error("Connection is closed.");
    return replies.map(([error, reply]) => {
      if (!error) return reply as Replies[Name];
      if (error.message.startsWith("WRONGTYPE")) return undefined;
      throw error;
    });
  });
}

/** Reads hashes of one queue, like `readEach`. */
export function readHashes(
  link: Link,
  keys: readonly string[],
): Promise<(Readonly<Record<string, string>> | undefined)[]> {
  return readEach(
    link,
    keys.map((key) => ["hgetall", key] as const),
  );
}
