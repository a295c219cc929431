/** Nodes read and decide long before: much happens until the commit. */
export const CLAIMS = { ahead: 20_000, shares: true };
/** A node that decides when it is due, and shares nothing. */
export const PLAIN_CLAIMS = { ahead: 0, shares: false };

/** Steps of one history before everything may come to rest. */
export const STEPS = 150;
/** Share of steps before which a copy of a request arrives late, and the distance of the seeds of the dice that decide it. */
export const LATE_RATE = 0.1;
export const LATE_SEEDS = 1_000_000_007;
/** Share of handlers that fail. */
export const FAILING = 0.4;
/** Number of steps after which everything is checked. */
export const CHECK_EVERY = 30;
/**
 * Virtual ms within which a history must come to rest. A job that a worker delayed while its clock was an hour ahead
 * comes back an hour later.
 */
export const REST_WITHIN = 2 * 3_600_000;
/** Number of steps without progress of time after which a history counts as endless. */
export const STEPS_AT_ONCE = 5_000;
/** Probability that an actor stops after a script; before one it always does. */
export const STOP_AFTER = 0.35;

/** Points before scripts that may publish something. */
export const PUBLISHES = /^before (commit|put|resume|cancel-run|start-run|settle-run|replan|copy-freezes)$/;
/** Points at which a job may enter the queue. */
export const ADDS_JOBS = /^(before|after) (commit|enqueue-new|end|exec)$/;
/** Error codes that a client may get without a fault. */
export const EXPECTED = new Set([
  "TASK_NOT_FOUND",
  "CONFLICT",
  "REDIS_UNAVAILABLE",
  "OWNER_LIMIT",
  "SKIPPED_OVERLAP",
  "FROZEN",
]);
/** Points at which BullMQ, not Carillon, talks to Redis, or nothing does: no answer of ours can be lost. */
export const NOT_OURS = /^handler$|(end|take)$/;
