-- One MCP tools/call a request, each with an id of its own. From the environment: CALL_SESSION, CALL_AUTH, CALL_ASK
-- (bytes of argument text) and CALL_ANSWER (bytes of text asked for).
local session, auth = os.getenv("CALL_SESSION") or "", os.getenv("CALL_AUTH") or ""
local answer = os.getenv("CALL_ANSWER") or "200"
local filler = string.rep("y", tonumber(os.getenv("CALL_ASK") or "100"))
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Accept"] = "application/json, text/event-stream"
wrk.headers["MCP-Protocol-Version"] = "2025-11-25"
if session ~= "" then wrk.headers["Mcp-Session-Id"] = session end
if auth ~= "" then wrk.headers["Authorization"] = auth end

local id = 1000
local tail = ',"method":"tools/call","params":{"name":"echo","arguments":{"answer":' .. answer .. ',"text":"' .. filler .. '"}}}'
function request()
  id = id + 1
  return wrk.format(nil, nil, nil, '{"jsonrpc":"2.0","id":' .. id .. tail)
end

-- wrk counts a status of 400 and over by itself; an answer without the worker's text is counted here.
wrong = 0
function response(status, headers, body)
  if not string.find(body, "xxxxxxxxxx", 1, true) then
    wrong = wrong + 1
    if wrong == 1 then io.write("WRONG " .. status .. " " .. string.sub(body, 1, 300) .. "\n") end
  end
end

local threads = {}
function setup(thread) table.insert(threads, thread) end

function done(summary, latency)
  local e, bad = summary.errors, 0
  for _, thread in ipairs(threads) do bad = bad + thread:get("wrong") end
  io.write(string.format("RESULT %d %d %d %d %d\n", summary.requests, summary.duration, latency:percentile(50),
    latency:percentile(99), e.connect + e.read + e.write + e.timeout + e.status + bad))
end
