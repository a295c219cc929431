import type { Task } from "@carillon/sdk";

export type Overlap = Task["overlap"];

/** Complete on purpose: a new policy does not compile until it can be asked for. */
export const OVERLAPS = Object.keys({
  skip: true,
  allow: true,
  "queue-one": true,
  "queue-all": true,
  "cancel-running": true,
} satisfies Record<Overlap, true>) as Overlap[];
