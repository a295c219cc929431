-- Marks times that another scheduler fired for a task. The first mark of a time stays.
--
-- A.marks: nominal time and time of the start of each; A.most: number of marks that are kept; A.keep: for how long, ms
-- Returns: "OK"
local oldest = nowMs() - tonumber(A.keep)
for i = 1, #A.marks, 2 do
  local nominal = A.marks[i]
  if tonumber(nominal) > oldest and redis.call("ZCOUNT", K.observed, nominal, nominal) == 0 then
    redis.call("ZADD", K.observed, nominal, nominal .. " " .. A.marks[i + 1])
  end
end
local gone = redis.call("ZRANGEBYSCORE", K.observed, "-inf", string.format("%d", oldest), "LIMIT", 0, 1000)
if #gone > 0 then redis.call("ZREM", K.observed, unpack(gone)) end
local more = redis.call("ZCARD", K.observed) - tonumber(A.most)
if more > 0 then redis.call("ZPOPMIN", K.observed, more) end
redis.call("PEXPIRE", K.observed, A.keep)
return "OK"
