-- Clears the runs that a deleted task left, some at a time (lib/clear.lua).
--
-- A.mark: the set's name in K.runs
-- Returns: the number of runs taken; 0: none is left
local taken = clearRuns(A.mark, K.gone, tonumber(A.most), nowMs() + F.lookAgain)
rearm(F.parts.runs, K.runs)
return taken
