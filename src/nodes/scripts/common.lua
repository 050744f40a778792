-- What every script begins with, behind the lines that `nodes/valkey/keys.rs` generates: `KEPT` has
-- type and largest size of each of KEYS, and the last one is for all further keys; `LOOKS` is true
-- for a script that changes nothing.

-- Most fields that one command is given: a script's stack is bounded.
local BATCH = 1000
-- Bytes before the body of a signed value: tag(32) epoch(8) number(8).
local SIGNED = 48
-- How far a node's idea of this server's clock may be off.
local CLOCK_MS = 1000

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
-- Places in KEYS of what no node has written.
local foreign = {}

local function size(key, kept_type)
    if kept_type == 'string' then
        return redis.call('STRLEN', key)
    elseif kept_type == 'hash' then
        return redis.call('HLEN', key)
    end
    return redis.call('ZCARD', key)
end

-- A key of another type would fail every command. Who only looks removes nothing: the answer may be
-- lost, and nobody would know any more that there was something.
local function remove_foreign()
    for at, key in ipairs(KEYS) do
        local kept = KEPT[at] or KEPT[#KEPT]
        local found = redis.call('TYPE', key).ok
        if found ~= 'none' and (found ~= kept[1] or size(key, kept[1]) > kept[2]) then
            foreign[#foreign + 1] = at
            if not LOOKS then
                redis.call('DEL', key)
            end
        end
    end
end
remove_foreign()

local function number_at(value, from)
    local number = 0
    for at = from, from + 7 do
        number = number * 256 + string.byte(value, at)
    end
    return number
end

local function epoch_of(value)
    return number_at(value, 33)
end

local function number_of(value)
    return number_at(value, 41)
end

-- The signed value under a key, or nil. Only a node can verify the tag: `forged` is the value that
-- it has found to be of nobody.
local function signed(at, forged)
    if redis.call('TYPE', KEYS[at]).ok ~= 'string' then
        return nil
    end
    local value = redis.call('GET', KEYS[at])
    if not value or value == forged then
        return nil
    elseif #value < SIGNED then
        foreign[#foreign + 1] = at
        return nil
    end
    return value
end

-- Whether this server may have forgotten a claim that has not run out yet. It counts whole seconds,
-- of which the first may be short.
local function is_young(lease_ms)
    local up_s = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
    return (up_s - 1) * 1000 < lease_ms
end

