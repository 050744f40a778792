-- What every script begins with.

-- Most fields that one command is given: a script's stack is bounded.
local BATCH = 1000
-- A database that was restored is behind by as many epochs as leaders took turns since its backup.
-- What is further above an epoch than this was given by no row: somebody else wrote it.
local AHEAD_MAX = 1000000

-- The number under a key, whatever else stands there.
local function number(key)
    local held = redis.pcall('GET', key)
    held = type(held) == 'string' and tonumber(held)
    return held and held >= 0 and held or 0
end

-- The highest epoch that wrote anything, as far as it can be one beside this epoch.
local function fence(key, epoch)
    local held = number(key)
    return held <= epoch + AHEAD_MAX and held or 0
end

