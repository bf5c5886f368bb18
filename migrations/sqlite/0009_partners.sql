-- Partners: what they ask for twice is done once, and what comes of it is told to them.

CREATE TABLE partners (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL UNIQUE, -- as keys, sign-ups and sources call it
    contact    TEXT,                    -- who is written to when something of theirs fails
    created_at INTEGER NOT NULL
) STRICT;
INSERT INTO partners (name, created_at)
SELECT partner, min(created_at) FROM api_keys GROUP BY partner ORDER BY min(created_at), partner;

-- Requests that named themselves (Idempotency-Key), and what the first of each name was answered. Kept for 30 days.
CREATE TABLE idempotency_keys (
    id           INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: the ids of webhook messages are made from it
    partner      TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    operation    TEXT    NOT NULL,
    input        TEXT,                              -- a keyed hash of what was sent; NULL once its person is erased
    person_id    INTEGER REFERENCES people ON DELETE SET NULL,
    sign_up_id   INTEGER REFERENCES sign_ups ON DELETE SET NULL, -- NULL where nobody was signed up
    link         TEXT,                              -- the answer; NULL once its person is erased
    joined_count INTEGER NOT NULL DEFAULT 0,
    savings      INTEGER NOT NULL DEFAULT 0,
    attributed   INTEGER NOT NULL DEFAULT 0,
    created_at   INTEGER NOT NULL,
    closes_at    INTEGER,                           -- NULL where nobody was signed up
    confirmed_at INTEGER,                           -- when the button of the sign-up was pressed, if before it closed
    closed_at    INTEGER                            -- when it was written down that it closed
) STRICT;
CREATE UNIQUE INDEX idempotency_keys_once ON idempotency_keys (partner, key);
CREATE INDEX idempotency_keys_of_partner ON idempotency_keys (partner, id) WHERE closes_at IS NOT NULL;
CREATE INDEX idempotency_keys_of_person ON idempotency_keys (person_id) WHERE person_id IS NOT NULL;
CREATE INDEX idempotency_keys_of_sign_up ON idempotency_keys (sign_up_id) WHERE sign_up_id IS NOT NULL;
CREATE INDEX idempotency_keys_to_close ON idempotency_keys (closes_at)
    WHERE closes_at IS NOT NULL AND confirmed_at IS NULL AND closed_at IS NULL;

-- Where partners want to be told (webhooks).
CREATE TABLE webhook_endpoints (
    id            INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: secrets are made from it
    partner       TEXT    NOT NULL,
    url           TEXT    NOT NULL,
    generation    INTEGER NOT NULL DEFAULT 1,        -- of its secret
    rotated_at    INTEGER,                           -- when the generation before it began to end
    created_at    INTEGER NOT NULL,
    delivered_at  INTEGER,                           -- the last success
    failing_since INTEGER,                           -- the first failure after it
    last_error    TEXT,
    disabled_at   INTEGER,
    disabled_why  TEXT,
    told_at       INTEGER,                           -- when the partner's contact was written to about that
    telling_until INTEGER NOT NULL DEFAULT 0         -- the lease of whoever writes to them
) STRICT;
CREATE INDEX webhook_endpoints_of_partner ON webhook_endpoints (partner);

-- What is to be told, once for each endpoint, written in the transaction that decides it. Deleted once it was delivered.
CREATE TABLE webhook_deliveries (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint_id    INTEGER NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE,
    idempotency_id INTEGER NOT NULL REFERENCES idempotency_keys ON DELETE CASCADE,
    kind           TEXT    NOT NULL,
    at             INTEGER NOT NULL, -- when it happened
    send_after     INTEGER NOT NULL,
    attempts       INTEGER NOT NULL DEFAULT 0, -- how often it was leased; also tells a late worker that it is late
    leased_until   INTEGER NOT NULL DEFAULT 0,
    leased_by      TEXT,
    last_error     TEXT,
    given_up_at    INTEGER
) STRICT;
CREATE UNIQUE INDEX webhook_deliveries_once ON webhook_deliveries (endpoint_id, idempotency_id, kind);
CREATE INDEX webhook_deliveries_of_key ON webhook_deliveries (idempotency_id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, send_after) WHERE given_up_at IS NULL;

-- Mail of the sandbox, which goes nowhere else. Empty among live records.
CREATE TABLE inbox (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    partner     TEXT    NOT NULL, -- whose sign-up it is about; '' where nobody's
    name        TEXT    NOT NULL UNIQUE, -- of the message: the same mail twice is there once
    recipient   TEXT    NOT NULL,
    sender      TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    text        TEXT    NOT NULL,
    html        TEXT    NOT NULL,
    received_at INTEGER NOT NULL
) STRICT;
CREATE INDEX inbox_of_partner ON inbox (partner, id);
