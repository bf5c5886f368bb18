-- The id of a person is never given to another, as it never was on PostgreSQL: without AUTOINCREMENT SQLite gives the highest
-- one out again once its row is gone. That can only be said when a table is made, so it is made anew.
CREATE TABLE people_again (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
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
INSERT INTO people_again (id, email, email_normalized, mailbox, code, state, referrer_id, created_at, joined_at, undeliverable_until)
SELECT id, email, email_normalized, mailbox, code, state, referrer_id, created_at, joined_at, undeliverable_until FROM people ORDER BY id;
DROP TABLE people;
ALTER TABLE people_again RENAME TO people;
CREATE INDEX people_of_other_mailbox ON people (mailbox) WHERE mailbox <> email_normalized;
