import type { Lease } from "@carillon/store";

/** Extends the lease if less than half of it is left. Called between two steps of work. @param ttl of the mutex, in ms */
export async function keep(lease: Lease, ttl: number): Promise<void> {
  if (lease.remaining < ttl / 2) await lease.extend(ttl);
}
