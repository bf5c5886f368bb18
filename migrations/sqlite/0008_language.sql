-- The language that people read, and partners whose mail a mailbox wants none of.

-- NULL where they never chose one.
ALTER TABLE people ADD COLUMN language TEXT;
-- Of the page that the form was filled in on; NULL where a partner asked.
ALTER TABLE sign_ups ADD COLUMN language TEXT;

CREATE TABLE stopped_partners (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    mailbox    TEXT    NOT NULL,
    partner    TEXT    NOT NULL,
    stopped_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX stopped_partners_once ON stopped_partners (mailbox, partner);
CREATE INDEX stopped_partners_to_forget ON stopped_partners (stopped_at);
