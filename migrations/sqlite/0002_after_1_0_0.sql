-- Mail that failed, for good or to be tried again, is found without a look at the rest of the outbox.
CREATE INDEX outbox_given_up ON outbox (given_up_at) WHERE given_up_at IS NOT NULL;
CREATE INDEX outbox_failed ON outbox (send_after)
    WHERE last_error IS NOT NULL AND given_up_at IS NULL AND held_at IS NULL AND campaign_mail_id IS NULL;
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
