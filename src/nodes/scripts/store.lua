-- Stores records of a kind, all or none, and drops those that were stored longest ago.
-- KEYS: records, ages, fence. ARGV: epoch, time, most records, how long all is kept in ms, then key
-- and value in turn.
-- Returns {1, dropped, kept}, or {0} to a writer that a newer leader has replaced.
local epoch = tonumber(ARGV[1])
if epoch < fence(KEYS[3], epoch) then
    return {0}
end
for from = 5, #ARGV, 2 * BATCH do
    local to = math.min(from + 2 * BATCH - 1, #ARGV)
    redis.call('HSET', KEYS[1], unpack(ARGV, from, to))
    local ages = {}
    for at = from, to, 2 do
        ages[#ages + 1] = ARGV[2]
        ages[#ages + 1] = ARGV[at]
    end
    redis.call('ZADD', KEYS[2], unpack(ages))
end
local over = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[3])
local dropped = 0
if over > 0 then
    local oldest = redis.call('ZPOPMIN', KEYS[2], over)
    for at = 1, #oldest, 2 do
        dropped = dropped + redis.call('HDEL', KEYS[1], oldest[at])
    end
end
for at = 1, 2 do
    redis.call('PEXPIRE', KEYS[at], ARGV[4])
end
return {1, dropped, redis.call('HLEN', KEYS[1])}
