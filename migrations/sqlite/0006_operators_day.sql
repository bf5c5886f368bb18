-- What operators ask for: who did what, what became of whom, and figures that cost the same at any size.

-- Who changed what with which command. Rows are added and never changed; a person appears as an account alone.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    who     TEXT    NOT NULL,
    command TEXT    NOT NULL,
    about   TEXT    NOT NULL -- a key, a mail, an account, a figure; never an address
) STRICT;
CREATE TRIGGER audit_keeps_rows BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_loses_none BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

-- The name of a person where they are to have none: drawn when first needed, cut off when they are erased.
ALTER TABLE people ADD COLUMN account TEXT;
CREATE UNIQUE INDEX people_of_account ON people (account) WHERE account IS NOT NULL;
ALTER TABLE people ADD COLUMN left_at INTEGER;
-- What is left of them then: the code, whether they were a member, who referred them, and marks (keyed hashes) where the address and
-- the mailbox stood.
ALTER TABLE people ADD COLUMN erased_at INTEGER;

-- Figures, rolled up from what happened since the last time; at most a minute old.

-- Further down the same funnel, by the day: sign-ups made, people who became members through them, members who left, sign-ups
-- that nobody decided.
ALTER TABLE source_days ADD COLUMN signed_up INTEGER NOT NULL DEFAULT 0;
ALTER TABLE source_days ADD COLUMN joined INTEGER NOT NULL DEFAULT 0;
ALTER TABLE source_days ADD COLUMN departed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE source_days ADD COLUMN lapsed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX source_days_of_day ON source_days (day);

ALTER TABLE api_keys ADD COLUMN signed_up INTEGER NOT NULL DEFAULT 0;
ALTER TABLE api_keys ADD COLUMN confirmed INTEGER NOT NULL DEFAULT 0;

-- How many members named a category when they joined, by state ('' where they named none).
CREATE TABLE demand (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    category TEXT    NOT NULL, -- '' for members at all
    us_state TEXT    NOT NULL,
    members  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX demand_once ON demand (category, us_state);

-- How many members somebody is credited for.
CREATE TABLE referrers (
    person_id INTEGER PRIMARY KEY REFERENCES people,
    members   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX referrers_by_members ON referrers (members);

-- The last sign-up that is in the figures.
CREATE TABLE rollup (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    sign_up_id INTEGER NOT NULL
) STRICT;
INSERT INTO rollup (id, sign_up_id) VALUES (1, 0);

-- Who became a member or ceased to be one and is not in the figures yet, with the answers that they joined with.
CREATE TABLE member_changes (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    change      INTEGER NOT NULL CHECK (change IN (1, -1)),
    source        TEXT    NOT NULL,
    key_id      TEXT,
    us_state    TEXT,
    categories  TEXT    NOT NULL,
    referrer_id INTEGER
) STRICT;
CREATE TRIGGER person_joined AFTER UPDATE OF state ON people WHEN NEW.state = 'member' AND OLD.state <> 'member'
BEGIN
    INSERT INTO member_changes (at, change, source, key_id, us_state, categories, referrer_id)
    SELECT coalesce(NEW.joined_at, NEW.created_at), 1, coalesce(s.partner, ''), s.key_id, s.us_state, coalesce(s.categories, ''), NEW.referrer_id
    FROM (SELECT 1) LEFT JOIN sign_ups s ON s.id =
        (SELECT max(id) FROM sign_ups WHERE person_id = NEW.id AND state = 'confirmed' AND decided_at = NEW.joined_at);
END;
CREATE TRIGGER person_left AFTER UPDATE OF state ON people WHEN NEW.state <> 'member' AND OLD.state = 'member'
BEGIN
    INSERT INTO member_changes (at, change, source, key_id, us_state, categories, referrer_id)
    SELECT coalesce(NEW.left_at, OLD.joined_at, OLD.created_at), -1, coalesce(s.partner, ''), s.key_id, s.us_state, coalesce(s.categories, ''),
           OLD.referrer_id
    FROM (SELECT 1) LEFT JOIN sign_ups s ON s.id =
        (SELECT max(id) FROM sign_ups WHERE person_id = OLD.id AND state = 'confirmed' AND decided_at = OLD.joined_at);
END;

-- What happened before.
INSERT INTO member_changes (at, change, source, key_id, us_state, categories, referrer_id)
SELECT p.joined_at, 1, coalesce(s.partner, ''), s.key_id, s.us_state, coalesce(s.categories, ''), p.referrer_id
FROM people p LEFT JOIN sign_ups s ON s.id =
    (SELECT max(id) FROM sign_ups WHERE person_id = p.id AND state = 'confirmed' AND decided_at = p.joined_at)
WHERE p.state = 'member' AND p.joined_at IS NOT NULL;
INSERT INTO source_days (source, day, lapsed)
SELECT partner, decided_at / 86400000, count(*) FROM sign_ups WHERE state = 'expired' AND decided_at IS NOT NULL
GROUP BY partner, decided_at / 86400000
ON CONFLICT (source, day) DO UPDATE SET lapsed = excluded.lapsed;
