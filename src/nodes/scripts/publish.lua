-- Tells all nodes what a round brought, and keeps it for those that come later.
-- KEYS: fence, state, quotes. ARGV: the signed fence, whose number is the time at which it was told
-- by this server's clock; the signed place, of epoch and number; the fence and the place that the
-- caller found to be forged; how long all is kept in ms, most quotes, channel, the signed message,
-- the signed message without quotes, then symbol and signed quote in turn.
-- Returns 1, 0 if a later epoch or a number that was used is in the way, if nodes have signed them,
-- or 2 to a caller whose idea of this server's clock is off. Then this server's time, fence, place,
-- and what is foreign.
local epoch, seq = epoch_of(ARGV[2]), number_of(ARGV[2])
local fence, place = signed(1, ARGV[3]), redis.call('HGET', KEYS[2], 'place')
if place and (#place ~= SIGNED or place == ARGV[4]) then
    place = nil
end
local function answer(code)
    return {code, now_ms, fence or '', place or '', foreign}
end
if math.abs(now_ms - number_of(ARGV[1])) > CLOCK_MS then
    return answer(2)
end
local highest = fence and epoch_of(fence) or 0
local is_used = place and epoch_of(place) == epoch and number_of(place) >= seq
if epoch < highest or is_used then
    return answer(0)
end
redis.call('HSET', KEYS[2], 'place', ARGV[2], 'head', ARGV[9])
-- Symbols come and go; those that nobody tells of any more are dropped with all others, and the
-- next rounds bring back what is still wanted.
if redis.call('HLEN', KEYS[3]) + (#ARGV - 9) / 2 > tonumber(ARGV[6]) then
    redis.call('DEL', KEYS[3])
end
for from = 10, #ARGV, 2 * BATCH do
    redis.call('HSET', KEYS[3], unpack(ARGV, from, math.min(from + 2 * BATCH - 1, #ARGV)))
end
-- All of it is kept far longer than it takes to come here again.
if highest ~= epoch or seq % 16 == 1 then
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[5])
    redis.call('PEXPIRE', KEYS[2], ARGV[5])
    redis.call('PEXPIRE', KEYS[3], ARGV[5])
end
redis.call('PUBLISH', ARGV[7], ARGV[8])
return answer(1)
