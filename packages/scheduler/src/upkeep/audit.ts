import type { Store } from "@carillon/store";
import type { Settings } from "../options.js";
import { eachQueue, REPAIR_TTL } from "./each-queue.js";

/** Interval in ms at which each queue's indexes are compared with its definitions. */
const AUDIT_EVERY = 86_400_000;

/** Compares each queue's indexes with its definitions, and repairs and logs differences, which should never occur. */
export async function auditIndexes(
  store: Store,
  { logger }: Settings,
  queues: readonly string[],
): Promise<unknown[]> {
  const [audits, now] = await Promise.all([store.registry.audits(), store.serverTime()]);
  return eachQueue(store, queues, async (queue) => {
    // An audit time in the future was written before the server's clock went back.
    if (Math.abs(now - (audits.get(queue) ?? 0)) < AUDIT_EVERY) return;
    const lease = await store.lease(queue, "audit", REPAIR_TTL);
    if (!lease) return;
    try {
      const mended = await store.tasks.audit(queue);
      await store.registry.setAudit(queue, now);
      // The process that deleted the last task may have died before it could do this.
      await store.registry.forgetIfEmpty(queue);
      if (mended > 0) logger.error({ queue, mended }, "repaired indexes that differed from definitions");
    } finally {
      await lease.release();
    }
  });
}
