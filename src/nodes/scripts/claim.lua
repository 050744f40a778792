-- Takes or extends the claim. KEYS: claim, fence.
-- ARGV: holder, epoch, lease in ms, how long the fence is kept in ms, 1 to take and 0 to renew.
-- Returns 1, or 0 if another holds the claim, it cannot be taken yet, or the epoch is another's.
local epoch, takes = tonumber(ARGV[2]), ARGV[5] == '1'
local held = redis.call('GET', KEYS[1])
local highest = fence(KEYS[2], epoch)
if held then
    if string.match(held, '^%d+ (.*)$') ~= ARGV[1] then
        return 0
    end
elseif takes then
    -- Who renews leads already, and has not stopped since; a new holder may meet an older one whose
    -- claim this server forgot. Whole seconds, of which the first may be short.
    local up_s = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
    if (up_s - 1) * 1000 < tonumber(ARGV[3]) then
        return 0
    end
end
-- A row that went back gives epochs again that others have led in.
if epoch < highest or (takes and epoch == highest) then
    return 0
end
redis.call('SET', KEYS[1], ARGV[2] .. ' ' .. ARGV[1], 'PX', ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[4])
return 1
