-- Runs and what belongs to them, as runs.ts hands them to each script about runs.
--
-- KEYS: 1 runs, 2 next, 3 journal, 4 alerts, 5 expected, 6 outcomes; then of each run: run, task, open, history, failures, statistics,
--       due index of the task's shard, job, ledger
-- ARGV: 1 queue, 2 prefix of run keys, 3 prefix of output keys, 4 wake channel, 5 a completed job stays for, 6 a failed job stays
--       for (ms); where the task says nothing: 7 successes and 8 failures kept, 9 successes and 10 failures are kept for (ms);
--       then of each run: id, local name, shard, the script's own
local SHARED_KEYS, SHARED_ARGS = 6, 10
local KEYS_OF_RUN = 9
local RUNS = (#KEYS - SHARED_KEYS) / KEYS_OF_RUN
local ARGS_OF_RUN = (#ARGV - SHARED_ARGS) / RUNS
local STAYS = { ok = tonumber(ARGV[5]), failed = tonumber(ARGV[6]) }
local KEEP = { tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]) }

-- The nth run, then the script's own arguments.
local function about(n)
  local k, a = SHARED_KEYS + (n - 1) * KEYS_OF_RUN, SHARED_ARGS + (n - 1) * ARGS_OF_RUN
  return {
    runs = KEYS[1], next = KEYS[2], journal = KEYS[3], alerts = KEYS[4], expected = KEYS[5],
    key = KEYS[k + 1], task = KEYS[k + 2], open = KEYS[k + 3], history = KEYS[k + 4], failures = KEYS[k + 5], stats = KEYS[k + 6],
    due = KEYS[k + 7], job = KEYS[k + 8], ledger = KEYS[k + 9],
    queue = ARGV[1], prefix = ARGV[2], output = ARGV[3], channel = ARGV[4], stays = STAYS, keep = KEEP,
    id = ARGV[a + 1], name = ARGV[a + 2], shard = ARGV[a + 3],
  }, unpack(ARGV, a + 4, a + ARGS_OF_RUN)
end
