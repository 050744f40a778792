-- Whether the claim could be taken now. KEYS: claim. ARGV: length of a lease in ms.
if redis.call('EXISTS', KEYS[1]) == 1 then
    return 0
end
-- In whole seconds, of which the first may be short.
local up_s = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
if (up_s - 1) * 1000 < tonumber(ARGV[1]) then
    return 0
end
return 1
