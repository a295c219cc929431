-- One run and what belongs to it, as runs.ts hands it to each script about a run.
--
-- KEYS: 1 run, 2 task, 3 open, 4 history, 5 failures, 6 statistics, 7 runs, 8 next, 9 due index of the task's shard, 10 job,
--       11 journal, 12 ledger, 13 alerts, 14 expected, 15 outcomes
-- ARGV: 1 run id, 2 local name, 3 shard, 4 prefix of run keys, 5 prefix of output keys, 6 wake channel, 7 queue,
--       8 a completed job stays for, 9 a failed job stays for (ms), 10 successes and 11 failures kept a task,
--       12 successes and 13 failures are kept for (ms)
local RUN = {
  key = KEYS[1], task = KEYS[2], open = KEYS[3], history = KEYS[4], failures = KEYS[5], stats = KEYS[6], runs = KEYS[7],
  next = KEYS[8], due = KEYS[9], job = KEYS[10], journal = KEYS[11], ledger = KEYS[12], alerts = KEYS[13],
  expected = KEYS[14], outcomes = KEYS[15],
  id = ARGV[1], name = ARGV[2], shard = ARGV[3], prefix = ARGV[4], output = ARGV[5], channel = ARGV[6], queue = ARGV[7],
  stays = { ok = tonumber(ARGV[8]), failed = tonumber(ARGV[9]) },
  keep = { tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13]) },
}
-- Where a script's own arguments begin.
local OWN = 13
