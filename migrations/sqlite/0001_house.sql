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
    email_normalized    TEXT    NOT NULL UNIQUE,   -- the form in which addresses are the same or not
    mailbox     TEXT    NOT NULL,          -- whose mailbox it is: tags folded
    code        TEXT    NOT NULL UNIQUE,   -- the referral code; never changes
    state       TEXT    NOT NULL CHECK (state IN ('invited', 'member', 'left')),
    referrer_id INTEGER REFERENCES people, -- who is credited for this member
    created_at  INTEGER NOT NULL,
    joined_at   INTEGER,
    undeliverable_until INTEGER            -- a mail server said that there is no such mailbox
) STRICT;
-- Most people are their own mailbox, and are found by `email_normalized`: an index of all would cost every new person one more
-- page somewhere in the middle of it.
CREATE INDEX people_of_other_mailbox ON people (mailbox) WHERE mailbox <> email_normalized;

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
    decided_at      INTEGER,
    purged_at       INTEGER                            -- when the answers of one that came to nothing were deleted
) STRICT;
-- A partner has at most one pending sign-up for a person: signing up again replaces its answers.
CREATE UNIQUE INDEX one_pending_sign_up ON sign_ups (person_id, partner) WHERE state = 'pending';

CREATE INDEX sign_ups_to_expire ON sign_ups (expires_at) WHERE state = 'pending';
CREATE INDEX sign_ups_to_purge ON sign_ups (updated_at) WHERE state IN ('expired', 'declined') AND purged_at IS NULL;
CREATE INDEX sign_ups_declined ON sign_ups (key_id) WHERE state = 'declined';

-- Mail that waits to be sent, written in the sign-up's own transaction; at most one for each sign-up. Sent mail is
-- deleted from here.
CREATE TABLE outbox (
    id               INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: message ids are made from it
    sign_up_id       INTEGER NOT NULL UNIQUE REFERENCES sign_ups,
    kind             TEXT    NOT NULL CHECK (kind IN ('confirm', 'already_member')),
    recipient        TEXT    NOT NULL,           -- as typed in this sign-up
    created_at       INTEGER NOT NULL,
    send_after       INTEGER NOT NULL,
    attempts         INTEGER NOT NULL DEFAULT 0, -- how often it was leased; also tells a late worker that it is late
    first_attempt_at INTEGER,
    leased_until     INTEGER NOT NULL DEFAULT 0,
    leased_by        TEXT,
    last_error       TEXT,                       -- never holds an address
    given_up_at      INTEGER
) STRICT;
CREATE INDEX outbox_due ON outbox (send_after) WHERE given_up_at IS NULL;

-- What is remembered of a mailbox, whoever asked for mail to it: its last four mails, newest first, and until when its
-- owner wants none.
CREATE TABLE mailboxes (
    mailbox          TEXT PRIMARY KEY,
    sent_1           INTEGER,
    sent_2           INTEGER,
    sent_3           INTEGER,
    sent_4           INTEGER,
    holder           INTEGER, -- the mail in the outbox that the newest of them stands for: trying it again costs nothing
    suppressed_until INTEGER
) STRICT, WITHOUT ROWID;
