-- How each source behaves, so that it can be braked, and what mail servers say of the mail that left.

-- What a source (a partner's name, '' for the form) caused on a day, counted from 1970.
CREATE TABLE source_days (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    source       TEXT    NOT NULL,
    day        INTEGER NOT NULL,
    mailed     INTEGER NOT NULL DEFAULT 0, -- begun to be sent: what the source's share is spent on
    asked      INTEGER NOT NULL DEFAULT 0, -- left, and asks to be confirmed: what the source is judged by
    proven     INTEGER NOT NULL DEFAULT 0, -- forms that came with a proof of work
    confirmed  INTEGER NOT NULL DEFAULT 0,
    declined   INTEGER NOT NULL DEFAULT 0,
    bounced    INTEGER NOT NULL DEFAULT 0, -- for good
    complained INTEGER NOT NULL DEFAULT 0,
    soft_bounced INTEGER NOT NULL DEFAULT 0 -- for now
) STRICT;
CREATE UNIQUE INDEX door_days_once ON source_days (source, day);

-- What may be used once: proofs of work, reports of mail services. Forgotten once it would be refused for its age.
CREATE TABLE used_once (
    name    TEXT    PRIMARY KEY,
    ends_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX used_once_to_forget ON used_once (ends_at);

CREATE INDEX outbox_held ON outbox (held_at) WHERE held_at IS NOT NULL;

-- The address is of a kind that is thrown away: nobody is credited for it.
ALTER TABLE sign_ups ADD COLUMN disposable INTEGER NOT NULL DEFAULT 0;

-- How often mail to them came back for now, and since when their owner calls our mail unwanted.
ALTER TABLE people ADD COLUMN soft_bounces INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mailboxes ADD COLUMN complained_at INTEGER;

-- All of a person's, for reports and for the operator.
CREATE INDEX sign_ups_of_person ON sign_ups (person_id);
