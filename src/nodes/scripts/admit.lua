-- GCRA over several buckets: counts attempts in all or in none.
-- KEYS: buckets, each the time at which it is full again. ARGV: interval and tolerance in ms, and
-- how many attempts.
-- Returns 0 or the ms to wait, and what is foreign.
local interval_ms, tolerance_ms, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
-- No attempt that this limit admits leaves a bucket later than this. A later one was written by
-- somebody else, or before this server's clock was set back.
local latest_ms = now_ms + tolerance_ms + interval_ms
local wait_ms, full_at_ms = 0, {}
for at, key in ipairs(KEYS) do
    local held = redis.call('GET', key)
    local held_ms = held and tonumber(held) or 0
    -- Also what is no number at all.
    if not (held_ms >= 0) or (held and not tonumber(held)) then
        foreign[#foreign + 1] = at
        held_ms = 0
    end
    if held_ms > latest_ms then
        held_ms = latest_ms
        redis.call('SET', key, string.format('%.0f', held_ms), 'PX', held_ms - now_ms)
    end
    full_at_ms[at] = math.max(held_ms, now_ms)
    wait_ms = math.max(wait_ms, full_at_ms[at] + (cost - 1) * interval_ms - tolerance_ms - now_ms)
end
if wait_ms > 0 then
    return {wait_ms, foreign}
end
for at, key in ipairs(KEYS) do
    local full = full_at_ms[at] + cost * interval_ms
    -- A full bucket need not be kept.
    redis.call('SET', key, string.format('%.0f', full), 'PX', full - now_ms)
end
return {0, foreign}
