-- GCRA over several buckets: counts attempts in all or in none.
-- KEYS: buckets, each the time at which it is full again. ARGV: interval and tolerance in ms, and
-- how many attempts.
-- Returns 0, or the ms to wait.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local interval_ms, tolerance_ms, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local wait_ms, full_at_ms = 0, {}
for at, key in ipairs(KEYS) do
    full_at_ms[at] = math.max(tonumber(redis.call('GET', key) or '0'), now_ms)
    wait_ms = math.max(wait_ms, full_at_ms[at] + (cost - 1) * interval_ms - tolerance_ms - now_ms)
end
if wait_ms > 0 then
    return wait_ms
end
for at, key in ipairs(KEYS) do
    local full = full_at_ms[at] + cost * interval_ms
    -- A full bucket need not be kept.
    redis.call('SET', key, string.format('%.0f', full), 'PX', full - now_ms)
end
return 0
