-- Runs one item of a batch under pcall: corrupt data in one task must not stop the others. Returns its answer, or nil and the error's
-- text.
local function tried(step, ...)
  local ok, answer = pcall(step, ...)
  if ok then return answer end
  return nil, tostring(type(answer) == "table" and answer.err or answer)
end
