-- One request against one bucket: {admitted, remaining, microseconds until the next place}.
--
-- KEYS[1]  the bucket, a list of groups of admitted requests, oldest first: "TIME:FROM:TO". The group's requests are
--          those numbered FROM + 1 to TO, the latest of them at TIME in microseconds; the others are taken to be as late.
-- ARGV     the limit; the window in microseconds; how many groups a limit may be counted in; the time, or nothing for
--          this server's own, on which nodes whose clocks differ agree.
local bucket, limit, window = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local group = math.ceil(limit / tonumber(ARGV[3]))
local now = tonumber(ARGV[4])
if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
end

local function read(place)
    local at, from, to = string.match(redis.call('LINDEX', bucket, place) or '', '^(%d+):(%d+):(%d+)$')
    return tonumber(at), tonumber(from), tonumber(to)
end

-- Numbers in full: Lua by itself writes fourteen digits.
local function write(at, from, to)
    return string.format('%.0f:%.0f:%.0f', at, from, to)
end

local newest, from, to = read(-1)
if newest and math.abs(now - newest) > window then
    -- All of it is over; or the clock was set back by more than a window, and nobody should wait for it to catch up.
    redis.call('DEL', bucket)
    newest, from, to = nil, nil, nil
end

local oldest, first
if newest then
    -- Times never run backwards here.
    now = math.max(now, newest)
    oldest, first = read(0)
    -- Ends at the newest, which is within the window.
    while now - oldest > window do
        redis.call('LPOP', bucket)
        oldest, first = read(0)
    end
end

local used = newest and to - first or 0
local admitted = used < limit
if admitted then
    used = used + 1
    if newest and to - from < group then
        redis.call('LSET', bucket, -1, write(now, from, to + 1))
        if first == from then
            oldest = now
        end
    else
        redis.call('RPUSH', bucket, write(now, to or 0, (to or 0) + 1))
        oldest = oldest or now
    end
    -- A second more than the window, so that what still counts is never gone.
    redis.call('PEXPIRE', bucket, math.ceil(window / 1000) + 1000)
end

local reset = oldest and window + 1 - (now - oldest) or 0
return {admitted and 1 or 0, math.max(limit - used, 0), reset}
