-- A member's own page: signing in, answers that can be changed, evidence of consent; and what it takes to forget people in time.

-- What the cookies of their sessions are proven by; another one ends them all.
ALTER TABLE people ADD COLUMN session TEXT;
-- Codes that were typed wrong on the last day that one was, counted from 1970.
ALTER TABLE people ADD COLUMN wrong_codes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE people ADD COLUMN wrong_codes_day INTEGER NOT NULL DEFAULT 0;
-- Their answers, if they changed them since they joined; else those of the sign-up that they joined by count.
ALTER TABLE people ADD COLUMN own_us_state TEXT;
ALTER TABLE people ADD COLUMN own_categories TEXT;
ALTER TABLE people ADD COLUMN own_comments TEXT;
ALTER TABLE people ADD COLUMN answered_at INTEGER;
-- The kinds of mail that they want none of, with commas between them.
ALTER TABLE people ADD COLUMN unwanted_mail TEXT NOT NULL DEFAULT '';
-- Somebody of their mailbox was a member and is erased: nobody is credited for them.
ALTER TABLE people ADD COLUMN uncredited INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX people_of_session ON people (session) WHERE session IS NOT NULL;
-- Whom somebody referred; and nobody can be deleted without asking who names them.
CREATE INDEX people_of_referrer ON people (referrer_id) WHERE referrer_id IS NOT NULL;
CREATE INDEX sign_ups_of_referrer ON sign_ups (referrer_id) WHERE referrer_id IS NOT NULL;

-- Evidence of consent: the face that a sign-up came by, what the client called itself, the notice that was shown, when its mail
-- left, and how the person decided.
ALTER TABLE sign_ups ADD COLUMN channel TEXT;
ALTER TABLE sign_ups ADD COLUMN client TEXT;
ALTER TABLE sign_ups ADD COLUMN notice TEXT;
ALTER TABLE sign_ups ADD COLUMN mailed_at INTEGER;
ALTER TABLE sign_ups ADD COLUMN decided_how TEXT;

-- The words of each notice, by their hash. Rows are added and never changed.
CREATE TABLE notices (
    hash           TEXT    PRIMARY KEY,
    words          TEXT    NOT NULL,
    first_shown_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER notices_keep_rows BEFORE UPDATE ON notices
BEGIN SELECT RAISE(ABORT, 'the table notices is append-only'); END;
CREATE TRIGGER notices_lose_none BEFORE DELETE ON notices
BEGIN SELECT RAISE(ABORT, 'the table notices is append-only'); END;

-- Requests to sign in, whatever address was typed.
CREATE TABLE sign_ins (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: links and codes are made from it
    person_id  INTEGER REFERENCES people,         -- NULL where nobody can sign in by it
    browser    TEXT    NOT NULL,                  -- a keyed hash of the browser's nonce and the address
    mailed     INTEGER NOT NULL,
    tries      INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER
) STRICT;
CREATE INDEX sign_ins_of_browser ON sign_ins (browser);
CREATE INDEX sign_ins_of_person ON sign_ins (person_id, created_at) WHERE person_id IS NOT NULL;
-- Those of nobody are forgotten sooner.
CREATE INDEX sign_ins_of_nobody ON sign_ins (expires_at) WHERE person_id IS NULL;
CREATE INDEX sign_ins_to_forget ON sign_ins (expires_at) WHERE person_id IS NOT NULL;

-- Mail is about a sign-up or a request to sign in; that a column may be empty can only be said when a table is made.
CREATE TABLE outbox_again (
    id               INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: message ids are made from it
    sign_up_id       INTEGER UNIQUE REFERENCES sign_ups,
    sign_in_id       INTEGER UNIQUE REFERENCES sign_ins,
    kind             TEXT    NOT NULL CHECK (kind IN ('confirm', 'already_member', 'sign_in')),
    recipient        TEXT    NOT NULL,           -- as typed in this sign-up
    created_at       INTEGER NOT NULL,
    send_after       INTEGER NOT NULL,
    attempts         INTEGER NOT NULL DEFAULT 0, -- how often it was leased; also tells a late worker that it is late
    first_attempt_at INTEGER,
    leased_until     INTEGER NOT NULL DEFAULT 0,
    leased_by        TEXT,
    last_error       TEXT,                       -- never holds an address
    given_up_at      INTEGER,
    lane             INTEGER NOT NULL DEFAULT 0,
    pass             INTEGER NOT NULL DEFAULT 0,
    held_at          INTEGER,
    CHECK ((sign_up_id IS NULL) <> (sign_in_id IS NULL))
) STRICT;
INSERT INTO outbox_again (id, sign_up_id, kind, recipient, created_at, send_after, attempts, first_attempt_at, leased_until,
    leased_by, last_error, given_up_at, lane, pass, held_at)
SELECT id, sign_up_id, kind, recipient, created_at, send_after, attempts, first_attempt_at, leased_until, leased_by, last_error,
    given_up_at, lane, pass, held_at FROM outbox ORDER BY id;
DELETE FROM sqlite_sequence WHERE name = 'outbox_again';
INSERT INTO sqlite_sequence (name, seq) SELECT 'outbox_again', seq FROM sqlite_sequence WHERE name = 'outbox';
DROP TABLE outbox;
ALTER TABLE outbox_again RENAME TO outbox;
CREATE INDEX outbox_due ON outbox (send_after) WHERE given_up_at IS NULL AND held_at IS NULL;
CREATE INDEX outbox_lanes ON outbox (lane, send_after) WHERE given_up_at IS NULL AND held_at IS NULL;
CREATE INDEX outbox_held ON outbox (held_at) WHERE held_at IS NOT NULL;

-- Declined sign-ups whose rows are deleted.
ALTER TABLE api_keys ADD COLUMN declined INTEGER NOT NULL DEFAULT 0;

-- Whoever leaves is taken out of the figures with the answers that they last gave.
DROP TRIGGER person_left;
CREATE TRIGGER person_left AFTER UPDATE OF state ON people WHEN NEW.state <> 'member' AND OLD.state = 'member'
BEGIN
    INSERT INTO member_changes (at, change, source, key_id, us_state, categories, referrer_id)
    SELECT coalesce(NEW.left_at, OLD.joined_at, OLD.created_at), -1, coalesce(s.partner, ''), s.key_id,
           CASE WHEN OLD.answered_at >= OLD.joined_at THEN OLD.own_us_state ELSE s.us_state END,
           coalesce(CASE WHEN OLD.answered_at >= OLD.joined_at THEN OLD.own_categories ELSE s.categories END, ''),
           OLD.referrer_id
    FROM (SELECT 1) LEFT JOIN sign_ups s ON s.id =
        (SELECT max(id) FROM sign_ups WHERE person_id = OLD.id AND state = 'confirmed' AND decided_at = OLD.joined_at);
END;
