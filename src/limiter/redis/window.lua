-- Checks of a batch, one after another. The answer has nine bytes for each, little-endian: whether it is admitted (1), how many
-- more would be (4), microseconds until the next place (4).
--
-- KEYS  The bucket of each check, a string: full groups of admitted requests, oldest first, then the head. A group is the low
--       32 bits of its latest time in microseconds, and how many requests it has, all taken to be as late. The newest group is in
--       the head alone. So one GETRANGE reads all that decides, and one SETRANGE writes a group that is full and the head.
-- ARGV  The window in microseconds; how many groups a limit may be counted in; the limit of each check; then the time of each,
--       or none of them for this server's own, on which nodes whose clocks differ agree.

-- The times of the newest group, of the oldest and of the last renewal of the expiry; how many requests there are, and in the
-- newest group; how many groups before the head are over, and how many there are.
local HEAD, HEAD_BYTES, FROM_HEAD = '<dddI4I4I4I4', 40, '-40'
local GROUP, GROUP_BYTES, TIME_SPAN = '<I4I4', 8, 4294967296
-- Groups that are read at once to find those that are over; and as many that are over stay at the most, or half of all.
local STEP = 32

local call, pack, unpack, floor = redis.call, struct.pack, struct.unpack, math.floor
local window, groups, checks = tonumber(ARGV[1]), tonumber(ARGV[2]), #KEYS
-- The expiry is renewed once in a quarter of a window, and is then a second more than what still counts.
local renewal = floor(window / 4)
local expiry = floor((window + renewal) / 1000) + 1000

local server_time
if #ARGV == 2 + checks then
    local time = call('TIME')
    server_time = time[1] * 1000000 + time[2]
end

local function check(bucket, limit, now)
    local newest, oldest, renewed, used, in_newest, first, last = now, now, now, 0, 0, 0, 0
    local head = call('GETRANGE', bucket, FROM_HEAD, '-1')
    local anew, at, body = #head ~= HEAD_BYTES, 0, ''
    if not anew then
        newest, oldest, renewed, used, in_newest, first, last = unpack(HEAD, head)
        -- All of it is over; or the clock was set back by more than a window, and nobody should wait for it to catch up.
        anew = now - newest > window or newest - now > window
        if anew then
            newest, oldest, renewed, used, in_newest, first, last = now, now, now, 0, 0, 0, 0
        end
    end
    -- Times never run backwards here.
    if now < newest then
        now = newest
    end
    at = last * GROUP_BYTES

    local lapsed = now - oldest > window
    if lapsed then
        local read, place = '', 1
        -- Ends at the newest, which is within the window.
        while now - oldest > window do
            if place + 2 * GROUP_BYTES > #read + 1 then
                -- The head follows the last group, so there are always two to read.
                read = call('GETRANGE', bucket, first * GROUP_BYTES, (first + STEP) * GROUP_BYTES - 1)
                place = 1
            end
            local _, over = unpack(GROUP, read, place)
            used, first, place = used - over, first + 1, place + GROUP_BYTES
            oldest = first < last and newest - (newest - unpack(GROUP, read, place)) % TIME_SPAN or newest
        end
        if first >= STEP and first * 2 >= last then
            body = call('GETRANGE', bucket, first * GROUP_BYTES, at - 1)
            anew, first, last = true, 0, last - first
        end
    end

    local admitted = used < limit
    if admitted then
        used = used + 1
        if in_newest == 0 or in_newest < limit / groups then
            in_newest = in_newest + 1
            if first == last then
                oldest = now
            end
        else
            body = body .. pack(GROUP, newest % TIME_SPAN, in_newest)
            last, in_newest = last + 1, 1
        end
        newest = now
    end
    if admitted or lapsed then
        local renew = now - renewed > renewal
        if anew or renew then
            renewed = now
        end
        body = body .. pack(HEAD, newest, oldest, renewed, used, in_newest, first, last)
        if anew then
            call('SET', bucket, body, 'PX', expiry)
        else
            call('SETRANGE', bucket, at, body)
            if renew then
                call('PEXPIRE', bucket, expiry)
            end
        end
    end
    local remaining, reset = 0, 0
    if used < limit then
        remaining = limit - used
    end
    if used > 0 then
        reset = window + 1 - (now - oldest)
    end
    return pack('<BI4I4', admitted and 1 or 0, remaining, reset)
end

local verdicts = {}
for place = 1, checks do
    verdicts[place] = check(KEYS[place], tonumber(ARGV[2 + place]), server_time or tonumber(ARGV[2 + checks + place]))
end
return table.concat(verdicts)
