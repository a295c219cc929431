/** Slices of a queue's due index, one mutex each: enough that several nodes drain a burst side by side. */
export const SHARDS = 8;

/** FNV-1a over `owner/id`: the same on every node and in every version, or tasks would change shards. */
export function shardOf(localName: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < localName.length; i++) {
    hash ^= localName.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193);
  }
  return (hash >>> 0) % SHARDS;
}
