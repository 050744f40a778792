-- Whether the claim could be taken now. KEYS: claim, fence. ARGV: length of a lease in ms.
-- Returns 1 or 0, and the highest epoch that wrote anything.
local highest = string.format('%.0f', number(KEYS[2]))
if redis.call('EXISTS', KEYS[1]) == 1 then
    return {0, highest}
end
-- In whole seconds, of which the first may be short.
local up_s = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
if (up_s - 1) * 1000 < tonumber(ARGV[1]) then
    return {0, highest}
end
return {1, highest}
