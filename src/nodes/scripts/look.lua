-- Who claims to lead. KEYS: claim, fence. ARGV: length of a lease in ms. Returns whether a claim
-- could be given now, this server's time, claim, fence, and what is foreign.
local claim, fence = signed(1), signed(2)
local gives = is_young(tonumber(ARGV[1])) and 0 or 1
return {gives, now_ms, claim or '', fence or '', foreign}
