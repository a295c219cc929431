-- Deletes a backfill.
--
-- Returns: 1
redis.call("DEL", K.backfill)
redis.call("ZREM", K.backfills, A.id)
rearm(F.parts.backfills, K.backfills)
return 1
