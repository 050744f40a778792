-- Tells all nodes what a round brought, and keeps it for those that come later.
-- KEYS: fence, state, quotes. ARGV: epoch, number, how long all is kept in ms, most quotes, channel,
-- when it was told by this server's clock, the signed message, the signed message without quotes,
-- then symbol and signed quote in turn.
-- Returns this server's time in ms behind 1, or behind 0 to a leader that was replaced and for a
-- number that was used, or behind 2 to one whose idea of this server's clock is off.
local epoch, seq = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
if math.abs(now_ms - tonumber(ARGV[6])) > 2000 then
    return {2, now_ms}
end
local highest = fence(KEYS[1], epoch)
if epoch < highest then
    return {0, now_ms}
end
local last = redis.call('HMGET', KEYS[2], 'epoch', 'seq')
local last_seq = tonumber(last[2] or '')
if tonumber(last[1] or '') == epoch and last_seq and seq <= last_seq and last_seq < seq + AHEAD_MAX then
    return {0, now_ms}
end
redis.call('HSET', KEYS[2], 'epoch', ARGV[1], 'seq', ARGV[2], 'head', ARGV[8])
-- Symbols come and go; those that nobody tells of any more are dropped with all others, and the
-- next rounds bring back what is still wanted.
if redis.call('HLEN', KEYS[3]) + (#ARGV - 8) / 2 > tonumber(ARGV[4]) then
    redis.call('DEL', KEYS[3])
end
for from = 9, #ARGV, 2 * BATCH do
    redis.call('HSET', KEYS[3], unpack(ARGV, from, math.min(from + 2 * BATCH - 1, #ARGV)))
end
-- All of it is kept far longer than it takes to come here again.
if highest ~= epoch or seq % 16 == 1 then
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
    redis.call('PEXPIRE', KEYS[2], ARGV[3])
    redis.call('PEXPIRE', KEYS[3], ARGV[3])
end
redis.call('PUBLISH', ARGV[5], ARGV[7])
return {1, now_ms}
