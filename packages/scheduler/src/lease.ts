import type { Lease } from "@carillon/store";

/** Between two pieces of work: the lease lasts for another one. @param ttl of the mutex, in ms */
export async function keep(lease: Lease, ttl: number): Promise<void> {
  if (lease.remaining < ttl / 2) await lease.extend(ttl);
}
