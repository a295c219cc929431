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

/**
 * Reads hashes of one queue in one round trip. Undefined: the key holds another type (foreign data).
 *
 * @throws any other error
 */
export async function readHashes(
  link: Link,
  keys: readonly string[],
): Promise<(Readonly<Record<string, string>> | undefined)[]> {
  return link.ask(async (client) => {
    const pipeline = client.pipeline();
    for (const key of keys) pipeline.hgetall(key);
    const replies = (await pipeline.exec()) ?? [];
    return replies.map(([error, hash]) => {
      if (!error) return hash as Record<string, string>;
      if (error.message.startsWith("WRONGTYPE")) return undefined;
      throw error;
    });
  });
}
