-- One of several steps: what fails in it, since others have written where its keys are, must not keep the rest from being done.
-- Returns its answer, or nil and what Redis said.
local function tried(step, ...)
  local ok, answer = pcall(step, ...)
  if ok then return answer end
  return nil, tostring(type(answer) == "table" and answer.err or answer)
end
