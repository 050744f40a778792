-- Takes or extends the claim. KEYS: claim, fence. ARGV: the signed claim and the signed fence to
-- write, lease in ms, how long the fence is kept in ms, 1 to take and 0 to renew, and the claim and
-- the fence that the caller found to be forged. Returns 1, 0 if no claim can be given yet, 2 if
-- another's claim or a later epoch is in the way, if nodes have signed them, or 3 to a caller whose
-- idea of this server's clock is off. Then this server's time, claim, fence, and what is foreign.
local epoch, takes = epoch_of(ARGV[1]), ARGV[5] == '1'
local claim, fence = signed(1, ARGV[6]), signed(2, ARGV[7])
local function answer(code)
    return {code, now_ms, claim or '', fence or '', foreign}
end
if math.abs(now_ms - number_of(ARGV[1])) > CLOCK_MS then
    return answer(3)
end
local highest = fence and epoch_of(fence) or 0
-- A claim without a holder was given back.
local holder = claim and string.sub(claim, SIGNED + 1) or ''
local is_anothers = holder ~= '' and holder ~= string.sub(ARGV[1], SIGNED + 1)
-- A row that went back gives epochs again that others have led in.
if is_anothers or epoch < highest or (takes and epoch == highest) then
    return answer(2)
end
-- Who renews leads already, and has not stopped since; a new holder may meet an older one whose
-- claim this server forgot.
if takes and not claim and is_young(tonumber(ARGV[3])) then
    return answer(0)
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[4])
return answer(1)
