import { fingerprint } from "./fingerprint.js";

/** Number of slices of a queue's due index. Each has a mutex, which its owner keeps. */
export const SHARDS = 8;

/** The slice that holds a task. @param localName `owner/id` */
export function shardOf(localName: string): number {
  return fingerprint(localName) % SHARDS;
}
