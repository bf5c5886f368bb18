-- What the ids of payouts carry since the records were restored; NULL: they never were. '0': that was before there was this column, so ids
-- of payouts may have been given out twice.
ALTER TABLE installation ADD COLUMN payout_generation TEXT;
UPDATE installation SET payout_generation = '0'
    WHERE EXISTS (SELECT 1 FROM audit WHERE command IN ('restore', 'resume') AND about <> 'treated as complete');
-- Of the secret before a rotation; NULL: the number before.
ALTER TABLE webhook_endpoints ADD COLUMN old_generation INTEGER;
-- How the last demand sheet counted a participation: in, accepted, or null for neither. Written by its first change after that sheet;
-- while nothing has changed since, it is the state.
ALTER TABLE participations ADD COLUMN counted TEXT CHECK (counted IN ('in', 'accepted'));
-- The generations of the secret after the first, which `installation` names. `done`: everything that the rotation sets off was done.
CREATE TABLE secret_generations (
    number      INTEGER PRIMARY KEY,
    fingerprint TEXT    NOT NULL,
    begins_at   INTEGER NOT NULL,
    after_leak  INTEGER NOT NULL DEFAULT 0,
    done        INTEGER NOT NULL DEFAULT 0
) STRICT;
-- Which generation of the secret an endpoint's secret and the one before it derive from.
ALTER TABLE webhook_endpoints ADD COLUMN made_with INTEGER NOT NULL DEFAULT 1;
ALTER TABLE webhook_endpoints ADD COLUMN old_made_with INTEGER NOT NULL DEFAULT 1;
-- Until when its partner is asked to rotate its secret, because the one of the installation leaked or is lost.
ALTER TABLE webhook_endpoints ADD COLUMN rotate_by INTEGER;
ALTER TABLE webhook_endpoints ADD COLUMN rotation_asked_at INTEGER;
-- What suppliers said. Append-only: a later bid of the same supplier takes the place of the earlier, and both stay.
CREATE TABLE campaign_bids (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign_id INTEGER NOT NULL REFERENCES campaigns,
    number      INTEGER NOT NULL, -- from 1, in its campaign
    at          INTEGER NOT NULL,
    who         TEXT    NOT NULL, -- an operator, or the name of a negotiator's seat
    bid         TEXT    NOT NULL  -- JSON, as a file for `campaigns bid`
) STRICT;
CREATE UNIQUE INDEX campaign_bids_unique ON campaign_bids (campaign_id, number);
CREATE TRIGGER campaign_bids_refuse_update BEFORE UPDATE ON campaign_bids
BEGIN SELECT RAISE(ABORT, 'the table campaign_bids is append-only'); END;
CREATE TRIGGER campaign_bids_refuse_delete BEFORE DELETE ON campaign_bids
BEGIN SELECT RAISE(ABORT, 'the table campaign_bids is append-only'); END;
CREATE TRIGGER campaign_bids_refuse_replace BEFORE INSERT ON campaign_bids WHEN EXISTS (SELECT 1 FROM campaign_bids WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the table campaign_bids is append-only'); END;
-- The name that the operator gave the negotiator's seat; empty: from before there were names.
ALTER TABLE campaign_rounds ADD COLUMN seat TEXT NOT NULL DEFAULT '';
-- A round whose texts were blanked, by whom and why.
ALTER TABLE campaign_rounds ADD COLUMN redacted_at INTEGER;
ALTER TABLE campaign_rounds ADD COLUMN redacted_by TEXT;
ALTER TABLE campaign_rounds ADD COLUMN redacted_why TEXT;
DROP TRIGGER campaign_rounds_refuse_update;
DROP TRIGGER campaign_rounds_refuse_delete;
-- From 1, in its campaign.
ALTER TABLE campaign_rounds ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
UPDATE campaign_rounds SET number =
    (SELECT count(*) FROM campaign_rounds r WHERE r.campaign_id = campaign_rounds.campaign_id AND r.id <= campaign_rounds.id);
CREATE TRIGGER campaign_rounds_refuse_update BEFORE UPDATE ON campaign_rounds
WHEN OLD.redacted_at IS NOT NULL OR NEW.redacted_at IS NULL OR NEW.id <> OLD.id OR NEW.campaign_id <> OLD.campaign_id
    OR NEW.number <> OLD.number OR NEW.at <> OLD.at OR NEW.client <> OLD.client OR NEW.seat <> OLD.seat
    OR NEW.supplier <> '' OR NEW.asked <> '' OR NEW.answered <> ''
BEGIN SELECT RAISE(ABORT, 'a row of campaign_rounds changes once: its texts are blanked'); END;
ALTER TABLE campaign_offer_drafts ADD COLUMN seat TEXT NOT NULL DEFAULT '';
-- Why it was proposed although it misses points of the mandate.
ALTER TABLE campaign_offer_drafts ADD COLUMN exception TEXT;
-- What became of a draft.
CREATE TABLE campaign_draft_answers (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    draft_id INTEGER NOT NULL UNIQUE REFERENCES campaign_offer_drafts,
    at       INTEGER NOT NULL,
    who      TEXT    NOT NULL,
    answer   TEXT    NOT NULL CHECK (answer IN ('rejected', 'published')),
    reason   TEXT    NOT NULL
) STRICT;
-- What an operator tells the negotiator.
CREATE TABLE campaign_messages (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign_id INTEGER NOT NULL REFERENCES campaigns,
    at          INTEGER NOT NULL,
    who         TEXT    NOT NULL,
    message     TEXT    NOT NULL
) STRICT;
CREATE INDEX campaign_messages_by_campaign ON campaign_messages (campaign_id, id);
-- What the negotiator must leave alone: one campaign, or all of them (NULL).
CREATE TABLE negotiation_pauses (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign_id INTEGER REFERENCES campaigns,
    at          INTEGER NOT NULL,
    who         TEXT    NOT NULL,
    reason      TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX negotiation_pauses_unique ON negotiation_pauses (coalesce(campaign_id, 0));
-- The step in `campaign_history` that asks for a count of members; NULL once they were counted. One day may have several sheets, and the
-- last is the one with the highest id. What was closed by 1.0.0 and not counted since is counted now.
ALTER TABLE campaigns ADD COLUMN count_due INTEGER;
UPDATE campaigns SET count_due = 0 WHERE state = 'closed'
    AND closed_at > coalesce((SELECT max(d.taken_at) FROM demand_sheets d WHERE d.campaign_id = campaigns.id), -1);
DROP INDEX demand_sheets_unique;
CREATE INDEX demand_sheets_by_campaign ON demand_sheets (campaign_id, taken_at, id);
-- What the last start of the service says of itself, for commands that print a link or the union's name; NULL before it.
ALTER TABLE installation ADD COLUMN union_name TEXT;
ALTER TABLE installation ADD COLUMN base_url TEXT;
ALTER TABLE installation ADD COLUMN join_site TEXT;
ALTER TABLE installation ADD COLUMN contact_email TEXT;
-- Who counts for their referrer, by the terms of the catalog when it became active: who accepted, or of whom the supplier says that they
-- switched. NULL: who accepted.
ALTER TABLE campaigns ADD COLUMN counts_on TEXT CHECK (counts_on IN ('accepted', 'switched'));
-- Goes up with each offer that members are asked about anew, and when an offer is withdrawn: acceptances with a lower number end.
ALTER TABLE campaigns ADD COLUMN offer_number INTEGER NOT NULL DEFAULT 0;
-- Of how many the supplier says that they switched: exactly; as everybody may know it, and since when; and how many changes that lacks.
ALTER TABLE campaigns ADD COLUMN switched INTEGER NOT NULL DEFAULT 0;
ALTER TABLE campaigns ADD COLUMN switched_shown INTEGER NOT NULL DEFAULT 0;
ALTER TABLE campaigns ADD COLUMN switched_as_of INTEGER;
ALTER TABLE campaigns ADD COLUMN switched_changes INTEGER NOT NULL DEFAULT 0;
-- From when the hold of a participation runs, where the supplier's date is later than the acceptance.
ALTER TABLE participations ADD COLUMN hold_from INTEGER;
DROP INDEX participations_to_check;
CREATE INDEX participations_to_check ON participations (campaign_id, coalesce(hold_from, accepted_at), id)
    WHERE state = 'accepted' AND NOT hold_checked;
-- Files that tell a supplier who accepted, and who does no longer.
CREATE TABLE handover_batches (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign_id INTEGER NOT NULL REFERENCES campaigns,
    number      INTEGER NOT NULL, -- from 1, in its campaign
    created_at  INTEGER NOT NULL,
    who         TEXT NOT NULL,
    filled_at   INTEGER,          -- everybody was looked at
    closed_at   INTEGER,          -- its file begins to be written: nobody is taken out of it from now on
    written_at  INTEGER
) STRICT;
CREATE UNIQUE INDEX handover_batches_unique ON handover_batches (campaign_id, number);
-- What a member agreed to when they accepted an offer, whom the supplier is told of, and what it says. The reference stays with it: whoever
-- accepts again after the supplier was told that they do no longer has another one.
CREATE TABLE acceptances (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign_id        INTEGER NOT NULL REFERENCES campaigns,
    person_id          INTEGER,          -- NULL: erased. No foreign key to people, whose rows would be locked by each
    reference          TEXT NOT NULL UNIQUE,
    notice             TEXT NOT NULL, -- the hash of the sentence above the button
    handover           TEXT NOT NULL CHECK (handover IN ('code', 'address')),
    offer_number       INTEGER NOT NULL, -- of its campaign at that time
    made_at            INTEGER NOT NULL, -- nothing that the supplier says is from before
    accepted_at        INTEGER NOT NULL, -- when they last agreed to it
    ended_at           INTEGER,
    ended_why          TEXT CHECK (ended_why IN ('passed', 'left', 'erased', 'offer')),
    batch_id           INTEGER REFERENCES handover_batches,
    withdrawn_batch_id INTEGER REFERENCES handover_batches, -- tells the supplier that it ended
    status             TEXT CHECK (status IN ('ordered', 'switched', 'rejected', 'cancelled')),
    status_on          INTEGER,          -- the day that the supplier names
    settled_at         INTEGER,
    trouble_at         INTEGER           -- when the member said that it did not work
) STRICT;
CREATE UNIQUE INDEX acceptances_unique ON acceptances (campaign_id, person_id) WHERE ended_at IS NULL;
CREATE INDEX acceptances_by_person ON acceptances (person_id, id);
CREATE INDEX acceptances_to_end ON acceptances (campaign_id, offer_number, id) WHERE ended_at IS NULL;
CREATE INDEX acceptances_to_hand_over ON acceptances (campaign_id, id) WHERE ended_at IS NULL AND batch_id IS NULL;
CREATE INDEX acceptances_to_withdraw ON acceptances (campaign_id, id)
    WHERE ended_at IS NOT NULL AND batch_id IS NOT NULL AND withdrawn_batch_id IS NULL;
CREATE INDEX acceptances_by_batch ON acceptances (batch_id, reference) WHERE batch_id IS NOT NULL;
CREATE INDEX acceptances_by_withdrawn_batch ON acceptances (withdrawn_batch_id, reference) WHERE withdrawn_batch_id IS NOT NULL;
CREATE INDEX acceptances_by_status ON acceptances (campaign_id, status) WHERE status IS NOT NULL;
CREATE INDEX acceptances_in_trouble ON acceptances (campaign_id, id) WHERE trouble_at IS NOT NULL;
-- People who counted and do no longer. Until the worker has looked at them, no file of payouts is written.
CREATE TABLE disqualifications (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign_id INTEGER NOT NULL REFERENCES campaigns,
    person_id   INTEGER NOT NULL,
    why         TEXT NOT NULL CHECK (why IN ('passed', 'left', 'erased', 'offer', 'rejected', 'cancelled'))
) STRICT;
CREATE UNIQUE INDEX disqualifications_unique ON disqualifications (campaign_id, person_id);
-- The day on which somebody ceased to count whose group was paid by then, and why.
ALTER TABLE qualifications ADD COLUMN ended_on INTEGER;
ALTER TABLE qualifications ADD COLUMN ended_why TEXT;
CREATE INDEX qualifications_ended ON qualifications (referrer_id) WHERE ended_on IS NOT NULL;
-- Receipts are deleted after a while.
CREATE INDEX campaign_mails_receipts ON campaign_mails (queued_at) WHERE kind = 'receipt';
-- A receipt is a kind of mail, too.
CREATE TABLE outbox_with_receipts (
    id               INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: message ids are made from it
    sign_up_id       INTEGER UNIQUE REFERENCES sign_ups,
    sign_in_id       INTEGER UNIQUE REFERENCES sign_ins,
    campaign_mail_id INTEGER UNIQUE REFERENCES campaign_mails,
    kind             TEXT    NOT NULL CHECK (kind IN ('confirm', 'already_member', 'sign_in', 'campaign_opened', 'campaign_offer', 'campaign_result', 'receipt')),
    recipient        TEXT    NOT NULL,                  -- as typed this time
    lane             INTEGER NOT NULL DEFAULT 0,        -- the fair-queueing lane
    priority         INTEGER NOT NULL DEFAULT 0,        -- -1: a reminder, 0: normal, 1: skips the source's budget, 2: skips all caps
    created_at       INTEGER NOT NULL,
    send_after       INTEGER NOT NULL,
    attempts         INTEGER NOT NULL DEFAULT 0,        -- counts leases; a worker whose count is outdated lost its lease
    first_attempt_at INTEGER,
    leased_until     INTEGER NOT NULL DEFAULT 0,
    leased_by        TEXT,
    last_error       TEXT,                              -- never contains an address
    held_at          INTEGER,                           -- held until the operator releases or drops it
    held_suspended   INTEGER NOT NULL DEFAULT 0,        -- held because its partner is suspended: goes when that is lifted
    given_up_at      INTEGER,
    CHECK ((sign_up_id IS NOT NULL) + (sign_in_id IS NOT NULL) + (campaign_mail_id IS NOT NULL) = 1)
) STRICT;
INSERT INTO sqlite_sequence (name, seq) SELECT 'outbox_with_receipts', seq FROM sqlite_sequence WHERE name = 'outbox';
INSERT INTO outbox_with_receipts SELECT * FROM outbox;
DROP TABLE outbox;
ALTER TABLE outbox_with_receipts RENAME TO outbox;
CREATE INDEX outbox_due ON outbox (send_after) WHERE given_up_at IS NULL AND held_at IS NULL AND campaign_mail_id IS NULL;
CREATE INDEX outbox_lanes ON outbox (lane, send_after) WHERE given_up_at IS NULL AND held_at IS NULL AND campaign_mail_id IS NULL;
CREATE INDEX outbox_campaign_mail ON outbox (send_after) WHERE campaign_mail_id IS NOT NULL;
-- What somebody decided about goes before the rest of its lane.
CREATE INDEX outbox_decided ON outbox (lane, send_after) WHERE priority >= 1 AND given_up_at IS NULL AND held_at IS NULL AND campaign_mail_id IS NULL;
CREATE INDEX outbox_held ON outbox (held_at) WHERE held_at IS NOT NULL;
-- Mail that failed, for good or to be tried again, is found without a look at the rest of the outbox.
CREATE INDEX outbox_given_up ON outbox (given_up_at) WHERE given_up_at IS NOT NULL;
CREATE INDEX outbox_failed ON outbox (send_after)
    WHERE last_error IS NOT NULL AND given_up_at IS NULL AND held_at IS NULL AND campaign_mail_id IS NULL;
-- Receipts go at once, before other mail about campaigns.
CREATE INDEX outbox_receipts ON outbox (send_after) WHERE kind = 'receipt';
-- That the offer was withdrawn, until another is published (JSON: by whom, when, and why in each language).
ALTER TABLE campaigns ADD COLUMN withdrawn TEXT;
-- Of a demonstration: how far its clock is ahead, and how far it is asked to be, in milliseconds. NULL: this is none.
ALTER TABLE installation ADD COLUMN demonstration_ahead INTEGER;
ALTER TABLE installation ADD COLUMN demonstration_until INTEGER;
-- What an operator may do, where links are mailed to, and when the last was. `email_normalized` finds them.
ALTER TABLE operators ADD COLUMN role TEXT NOT NULL DEFAULT 'all' CHECK (role IN ('look', 'support', 'money', 'all'));
ALTER TABLE operators ADD COLUMN email TEXT;
ALTER TABLE operators ADD COLUMN email_normalized TEXT;
ALTER TABLE operators ADD COLUMN mailed_at INTEGER;
CREATE UNIQUE INDEX operators_email ON operators (email_normalized);
-- The second factor: its secret, sealed; since when it is asked for; the last time step whose code was used; and wrong codes of a day.
ALTER TABLE operators ADD COLUMN factor TEXT;
ALTER TABLE operators ADD COLUMN factor_since INTEGER;
ALTER TABLE operators ADD COLUMN factor_step INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operators ADD COLUMN wrong_codes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operators ADD COLUMN wrong_codes_day INTEGER NOT NULL DEFAULT 0;
-- A session that waits for the code of the second factor opens nothing else.
ALTER TABLE operator_sessions ADD COLUMN waits_for_code INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operator_sessions ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
-- Links, which replace those of `operators`: one that is mailed ends no other. Hashes alone.
CREATE TABLE operator_links (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    operator_id INTEGER NOT NULL REFERENCES operators,
    hash        TEXT    NOT NULL UNIQUE,
    expires_at  INTEGER NOT NULL,
    used_at     INTEGER
) STRICT;
CREATE INDEX operator_links_by_operator ON operator_links (operator_id);
CREATE TABLE operator_recovery_codes (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    operator_id INTEGER NOT NULL REFERENCES operators,
    hash        TEXT    NOT NULL UNIQUE
) STRICT;
CREATE INDEX operator_recovery_codes_by_operator ON operator_recovery_codes (operator_id);
-- Whether one person makes a batch or an offer and another releases it, as the last start of the service says.
ALTER TABLE installation ADD COLUMN two_people INTEGER NOT NULL DEFAULT 0;
-- Of confirmations_sent, those that left long after their first attempt: a source is not judged by them.
ALTER TABLE source_days ADD COLUMN sent_late INTEGER NOT NULL DEFAULT 0;
-- What was found wrong and has to be told (`--notify`), or was: a row until its end was told.
CREATE TABLE told_findings (
    name         TEXT PRIMARY KEY,
    message      TEXT    NOT NULL,
    began_at     INTEGER NOT NULL,
    seen_at      INTEGER NOT NULL, -- by any node
    told_at      INTEGER,
    leased_until INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
