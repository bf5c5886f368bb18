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
