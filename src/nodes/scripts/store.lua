-- Stores records of a kind, all or none, and drops those that were stored longest ago.
-- KEYS: records, ages, fence. ARGV: the signed fence of the caller's epoch, the fence that it found
-- to be forged, time, most records, how long all is kept in ms, then key and value in turn.
-- Returns 1, or 0 if a later epoch is in the way, if a node has signed it. Then how many were
-- dropped, how many are kept, the fence, and what is foreign.
local fence = signed(3, ARGV[2])
if fence and epoch_of(ARGV[1]) < epoch_of(fence) then
    return {0, 0, 0, fence, foreign}
end
-- Each record has its age, or somebody else wrote here, whom no bound would ever trim.
if redis.call('HLEN', KEYS[1]) ~= redis.call('ZCARD', KEYS[2]) then
    redis.call('DEL', KEYS[1], KEYS[2])
    foreign[#foreign + 1] = 1
end
for from = 6, #ARGV, 2 * BATCH do
    local to = math.min(from + 2 * BATCH - 1, #ARGV)
    redis.call('HSET', KEYS[1], unpack(ARGV, from, to))
    local ages = {}
    for at = from, to, 2 do
        ages[#ages + 1] = ARGV[3]
        ages[#ages + 1] = ARGV[at]
    end
    redis.call('ZADD', KEYS[2], unpack(ages))
end
local over = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[4])
local dropped = 0
if over > 0 then
    local oldest = redis.call('ZPOPMIN', KEYS[2], over)
    for at = 1, #oldest, 2 do
        dropped = dropped + redis.call('HDEL', KEYS[1], oldest[at])
    end
end
for at = 1, 2 do
    redis.call('PEXPIRE', KEYS[at], ARGV[5])
end
return {1, dropped, redis.call('HLEN', KEYS[1]), '', foreign}
