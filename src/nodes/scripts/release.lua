-- Gives the claim back. KEYS: claim. ARGV: holder, a signed claim of nobody, and how long it is
-- kept in ms. Returns what was foreign.
local claim = signed(1)
if claim and string.sub(claim, SIGNED + 1) == ARGV[1] then
    redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return foreign
