import type { Link } from "./link.js";

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
