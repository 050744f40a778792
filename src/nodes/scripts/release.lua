-- Gives the claim back. KEYS: claim. ARGV: holder.
local held = redis.call('GET', KEYS[1])
if held and string.match(held, '^%d+ (.*)$') == ARGV[1] then
    redis.call('DEL', KEYS[1])
end
return 1
