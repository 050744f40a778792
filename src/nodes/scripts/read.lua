-- All that is kept of the relay, at one moment. KEYS: state, quotes. ARGV: most bytes.
-- Returns this server's time, the newest message without quotes, quotes by symbol, and what is
-- foreign.
local head, quotes = redis.call('HGET', KEYS[1], 'head'), redis.call('HGETALL', KEYS[2])
local bytes = head and #head or 0
for _, part in ipairs(quotes) do
    bytes = bytes + #part
end
if bytes > tonumber(ARGV[1]) then
    redis.call('DEL', KEYS[1], KEYS[2])
    foreign = {1, 2}
    head, quotes = false, {}
end
return {now_ms, head, quotes, foreign}
