-- Mail is shared out between its sources, and a mailbox between those who write to it.

-- Which of the lanes that mail leaves by; whom it passes (0: nobody, 1: the budget of its source, 2: its mailbox's caps too); and
-- since when it is held, until the operator decides.
ALTER TABLE outbox
    ADD COLUMN lane BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN pass BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN held_at BIGINT;
DROP INDEX outbox_due;
CREATE INDEX outbox_due ON outbox (send_after) WHERE given_up_at IS NULL AND held_at IS NULL;
CREATE INDEX outbox_lanes ON outbox (lane, send_after) WHERE given_up_at IS NULL AND held_at IS NULL;

-- Which source each of the last four mails came through: a partner's name, '' for the form.
ALTER TABLE mailboxes
    ADD COLUMN source_1 TEXT COLLATE "C",
    ADD COLUMN source_2 TEXT COLLATE "C",
    ADD COLUMN source_3 TEXT COLLATE "C",
    ADD COLUMN source_4 TEXT COLLATE "C";

-- A partner has at most one pending sign-up for a person (slot 0), and the form three (slots 1 to 3): whoever fills it in, nobody
-- can know that it is the same person, so no post touches another.
ALTER TABLE sign_ups ADD COLUMN slot BIGINT NOT NULL DEFAULT 0;
UPDATE sign_ups SET slot = 1 WHERE partner = '' AND state = 'pending';
DROP INDEX one_pending_sign_up;
CREATE UNIQUE INDEX one_pending_sign_up ON sign_ups (person_id, partner, slot) WHERE state = 'pending';
