-- Stores records of a kind, all or none, and drops those that were stored longest ago.
-- KEYS: records, ages, fence. ARGV: epoch, time, most records, then key and value in turn.
-- Returns {1, dropped, kept}, or {0} to a writer that a newer leader has replaced.
local fence = tonumber(redis.call('GET', KEYS[3]) or '0')
if tonumber(ARGV[1]) < fence then
    return {0}
end
for at = 4, #ARGV, 2 do
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
    redis.call('ZADD', KEYS[2], ARGV[2], ARGV[at])
end
local over = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[3])
local dropped = 0
if over > 0 then
    local oldest = redis.call('ZPOPMIN', KEYS[2], over)
    for at = 1, #oldest, 2 do
        dropped = dropped + redis.call('HDEL', KEYS[1], oldest[at])
    end
end
return {1, dropped, redis.call('HLEN', KEYS[1])}
