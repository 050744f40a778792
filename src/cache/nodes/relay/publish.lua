-- Tells all nodes what a round brought, and keeps it for those that come later.
-- KEYS: fence, state, quotes. ARGV: epoch, number, how long all is kept in ms, most quotes, channel,
-- the whole message, the message without quotes, then symbol, age and quote in turn.
-- Returns 1, or 0 to a leader that was replaced, and for a number that was used.
local epoch = tonumber(ARGV[1])
if epoch < tonumber(redis.call('GET', KEYS[1]) or '0') then
    return 0
end
local last = redis.call('HMGET', KEYS[2], 'epoch', 'seq')
if last[1] and tonumber(last[1]) == epoch and tonumber(ARGV[2]) <= tonumber(last[2]) then
    return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
-- Ages are told by one clock, the server's.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local stamp = string.format('%013.0f', now_ms)
redis.call('HSET', KEYS[2], 'epoch', ARGV[1], 'seq', ARGV[2], 'head', stamp .. ARGV[7])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
-- Symbols come and go; those that nobody tells of any more are dropped with all others, and the
-- next rounds bring back what is still wanted.
if redis.call('HLEN', KEYS[3]) + (#ARGV - 7) / 3 > tonumber(ARGV[4]) then
    redis.call('DEL', KEYS[3])
end
for at = 8, #ARGV, 3 do
    local vouched_ms = string.format('%013.0f', math.max(now_ms - tonumber(ARGV[at + 1]), 0))
    redis.call('HSET', KEYS[3], ARGV[at], vouched_ms .. ARGV[at + 2])
end
redis.call('PEXPIRE', KEYS[3], ARGV[3])
redis.call('PUBLISH', ARGV[5], stamp .. ARGV[6])
return 1
