/** Number of slices of a queue's due index. Each has a mutex, which its owner keeps. */
export const SHARDS = 8;

/** FNV-1a over `owner/id`. Never change it: tasks would move to other shards. */
export function shardOf(localName: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < localName.length; i++) {
    hash ^= localName.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193);
  }
  return (hash >>> 0) % SHARDS;
}
