/** There are few tasks: whatever comes due at one instant is a burst to these nodes, and is prepared long before. */
export const BURSTS = { shards: 1, ahead: 20_000 };

/** Steps of one history, before everything may come to rest. */
export const STEPS = 150;
/** All is checked each time after so many steps. */
export const CHECK_EVERY = 30;
/**
 * What has not come to rest within so many more ms never will. A job that a worker delayed while its clock was an hour ahead
 * comes back an hour later.
 */
export const REST_WITHIN = 2 * 3_600_000;
/** Nor will what goes on for so many steps while no time passes. */
export const STEPS_AT_ONCE = 5_000;
/** How often an actor stands still after a script; before one it always does. */
export const STOP_AFTER = 0.35;

/** Before the scripts that may publish something. */
export const PUBLISHES = /^before (commit|put|resume|cancel-run|start-run|settle-run|replan|copy-freezes)$/;
/** Where a job may come into the queue. */
export const ADDS_JOBS = /^(before|after) (commit|enqueue-new|end|exec)$/;
/** What a client may be told without anything being wrong. */
export const EXPECTED = new Set(["TASK_NOT_FOUND", "CONFLICT", "REDIS_UNAVAILABLE", "OWNER_LIMIT", "FROZEN"]);
/** Where BullMQ, not Carillon, speaks to Redis, or nobody does: there is no answer of ours to lose. */
export const NOT_OURS = /^handler$|(end|take)$/;
