-- Times are milliseconds since 1970 in UTC. States are spelled out: an operator reads this with the sqlite3 shell.

-- One row: what the whole installation shares. The member count is kept here, changed in the transaction that changes
-- a person's state, so that reading it costs the same at any size.
CREATE TABLE installation (
    id                 INTEGER PRIMARY KEY CHECK (id = 1),
    member_count       INTEGER NOT NULL DEFAULT 0 CHECK (member_count >= 0),
    signups_paused     INTEGER NOT NULL DEFAULT 0 CHECK (signups_paused IN (0, 1)),
    secret_fingerprint TEXT
) STRICT;
INSERT INTO installation (id) VALUES (1);

CREATE TABLE api_keys (
    id           TEXT    PRIMARY KEY,
    partner      TEXT    NOT NULL,
    hash         BLOB    NOT NULL,
    per_minute   INTEGER,           -- NULL: the server's setting
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE people (
    id          INTEGER PRIMARY KEY,
    email       TEXT    NOT NULL,          -- as first typed
    compared    TEXT    NOT NULL UNIQUE,   -- the form in which addresses are the same or not
    mailbox     TEXT    NOT NULL,          -- whose mailbox it is: tags folded
    code        TEXT    NOT NULL UNIQUE,   -- the referral code; never changes
    state       TEXT    NOT NULL CHECK (state IN ('invited', 'member', 'left')),
    referrer_id INTEGER REFERENCES people, -- who is credited for this member
    created_at  INTEGER NOT NULL,
    joined_at   INTEGER
) STRICT;
CREATE INDEX people_by_mailbox ON people (mailbox);

CREATE TABLE sign_ups (
    id              INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: confirmation links are made from it
    person_id       INTEGER NOT NULL REFERENCES people,
    key_id          TEXT    REFERENCES api_keys,
    partner         TEXT    NOT NULL,                  -- '' when the person signed up by themselves
    state           TEXT    NOT NULL CHECK (state IN ('pending', 'confirmed', 'expired', 'declined')),
    us_state        TEXT,
    categories      TEXT    NOT NULL,                  -- slugs with commas between them
    comments        TEXT,
    referrer_id     INTEGER REFERENCES people,
    consent_version INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    decided_at      INTEGER
) STRICT;
-- A partner has at most one pending sign-up for a person: signing up again replaces its answers.
CREATE UNIQUE INDEX one_pending_sign_up ON sign_ups (person_id, partner) WHERE state = 'pending';

-- Mail that waits to be sent, written in the sign-up's own transaction; at most one for each sign-up.
CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    sign_up_id INTEGER NOT NULL UNIQUE REFERENCES sign_ups,
    kind       TEXT    NOT NULL CHECK (kind IN ('confirm', 'already_member')),
    recipient  TEXT    NOT NULL, -- as typed in this sign-up
    created_at INTEGER NOT NULL
) STRICT;
