-- The schema of the SQLite store. `migrations/postgres/0001_schema.sql` has the same tables and columns.
-- Times are milliseconds since 1970 in UTC; days are counted from 1970. States are text, for operators who read this with
-- the sqlite3 shell.

-- One row. The member count is kept here and changed in the transaction that changes a person's state, so that reading it
-- costs the same at any size.
CREATE TABLE installation (
    id                 INTEGER PRIMARY KEY CHECK (id = 1),
    member_count       INTEGER NOT NULL DEFAULT 0 CHECK (member_count >= 0),
    signups_paused     INTEGER NOT NULL DEFAULT 0 CHECK (signups_paused IN (0, 1)),
    secret_fingerprint TEXT,
    backed_up_at       INTEGER -- the last backup that was noted
) STRICT;
INSERT INTO installation (id) VALUES (1);

-- One row that only the readiness check writes, so that the check never waits for other writers. `probe` is as large as what
-- a sign-up writes; it holds nothing.
CREATE TABLE readiness (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    checked_at INTEGER NOT NULL,
    probe      BLOB
) STRICT;
INSERT INTO readiness (id, checked_at) VALUES (1, 0);

CREATE TABLE partners (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    name            TEXT    NOT NULL UNIQUE,
    contact         TEXT,                       -- the address that is notified when a webhook endpoint fails
    created_at      INTEGER NOT NULL,
    suspended_at    INTEGER,                    -- set while the operator suspends it: no key works, no mail or webhook goes
    mails_a_day     INTEGER,                    -- its fixed mail budget; NULL: the server's setting and its reputation decide
    events_numbered INTEGER NOT NULL DEFAULT 0, -- the last position that was given to an event of it
    events_deleted  INTEGER NOT NULL DEFAULT 0, -- its events up to this position were deleted
    sandbox_members INTEGER NOT NULL DEFAULT 0 CHECK (sandbox_members >= 0) -- members of its sandbox; 0 in live records
) STRICT;

CREATE TABLE api_keys (
    id           TEXT    PRIMARY KEY,
    partner_id   INTEGER NOT NULL REFERENCES partners,
    hash         BLOB    NOT NULL,
    per_minute   INTEGER,                    -- the rate limit; NULL: the server's setting
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER,
    replaced_by  TEXT,                       -- the key that it was rotated to
    signed_up    INTEGER NOT NULL DEFAULT 0, -- rolled up, see `rollup`
    confirmed    INTEGER NOT NULL DEFAULT 0, -- rolled up: people who became members
    declined     INTEGER NOT NULL DEFAULT 0, -- declined sign-ups whose rows were deleted
    UNIQUE (id, partner_id) -- for the foreign key of sign_ups
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_by_partner ON api_keys (partner_id, created_at);

CREATE TABLE people (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused
    email               TEXT    NOT NULL,                  -- as first typed
    email_normalized    TEXT    NOT NULL UNIQUE,           -- equal for two spellings of the same address
    mailbox             TEXT    NOT NULL,                  -- the address without tags, dots and aliases of its provider
    code                TEXT    NOT NULL UNIQUE,           -- the referral code; never changes
    state               TEXT    NOT NULL CHECK (state IN ('invited', 'member', 'left')),
    account             TEXT,                              -- a random id for the audit log; NULL until needed, and after erasure
    referrer_id         INTEGER REFERENCES people,         -- who is credited for this member
    uncredited          INTEGER NOT NULL DEFAULT 0,        -- a member with this mailbox was erased: nobody is credited
    created_at          INTEGER NOT NULL,
    joined_at           INTEGER,
    left_at             INTEGER,
    -- Set on a tombstone. It keeps the code, whether the person was a member, and the referrer; keyed hashes replace the
    -- address and the mailbox.
    erased_at           INTEGER,
    language            TEXT,                              -- NULL: never chosen
    unwanted_mail       TEXT    NOT NULL DEFAULT '',       -- kinds of mail, separated by commas
    wanted_mail         TEXT    NOT NULL DEFAULT '',       -- kinds that they switched on though their notice did not name them
    undeliverable_until INTEGER,                           -- set by a hard bounce
    soft_bounces        INTEGER NOT NULL DEFAULT 0,
    -- Answers that the member changed after joining. They count if `answered_at >= joined_at`; else the sign-up's count.
    own_us_state        TEXT,
    own_categories      TEXT,
    own_comments        TEXT,
    answered_at         INTEGER,
    session             TEXT,                              -- nonce of the session cookies; a new one ends all sessions
    wrong_codes         INTEGER NOT NULL DEFAULT 0,        -- wrong sign-in codes on `wrong_codes_day`
    wrong_codes_day     INTEGER NOT NULL DEFAULT 0
) STRICT;
-- For most people `mailbox` equals `email_normalized`, which is indexed. Leaving them out saves every new person one more
-- random page write.
CREATE INDEX people_by_other_mailbox ON people (mailbox, state, uncredited) WHERE mailbox <> email_normalized;
CREATE UNIQUE INDEX people_by_account ON people (account) WHERE account IS NOT NULL;
CREATE UNIQUE INDEX people_by_session ON people (session) WHERE session IS NOT NULL;
-- For the list of referrals, and for the foreign key when a person is deleted.
CREATE INDEX people_by_referrer ON people (referrer_id, id) WHERE referrer_id IS NOT NULL;

CREATE TABLE sign_ups (
    id              INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: confirmation links are made from it
    person_id       INTEGER NOT NULL REFERENCES people,
    key_id          TEXT,
    partner_id      INTEGER,                           -- NULL: the form
    slot            INTEGER NOT NULL DEFAULT 0,        -- see one_pending_sign_up
    state           TEXT    NOT NULL CHECK (state IN ('pending', 'confirmed', 'expired', 'declined')),
    us_state        TEXT,
    categories      TEXT,                              -- slugs, separated by commas
    comments        TEXT,
    referrer_id     INTEGER REFERENCES people,
    disposable      INTEGER NOT NULL DEFAULT 0,        -- the address is a throwaway: nobody is credited for it
    language        TEXT,                              -- of the form's page; NULL for partners
    campaign_id     INTEGER,                           -- the campaign whose page the form was opened from
    -- Evidence of consent: how the sign-up arrived, the client's own name, and the hash of the notice that was shown.
    consent_version INTEGER NOT NULL,
    channel         TEXT,
    client          TEXT,
    notice          TEXT,
    mailed_at       INTEGER,
    decided_at      INTEGER,
    decided_how     TEXT,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    purged_at       INTEGER,                           -- when the answers of an expired or declined sign-up were deleted
    -- A partner's sign-up names a key of that partner. One foreign key, because each costs every sign-up a look-up.
    FOREIGN KEY (key_id, partner_id) REFERENCES api_keys (id, partner_id),
    CHECK ((key_id IS NULL) = (partner_id IS NULL))
) STRICT;
-- A partner has at most one pending sign-up per person (slot 0); signing up again replaces its answers. The form has three
-- (slots 1 to 3): anyone may fill it in, so no post changes another.
CREATE UNIQUE INDEX one_pending_sign_up ON sign_ups (person_id, coalesce(partner_id, 0), slot) WHERE state = 'pending';
CREATE INDEX sign_ups_by_person ON sign_ups (person_id);
-- The sign-up that a member joined by, however many others name them.
CREATE INDEX sign_ups_confirmed ON sign_ups (person_id, decided_at) WHERE state = 'confirmed';
CREATE INDEX sign_ups_by_referrer ON sign_ups (referrer_id) WHERE referrer_id IS NOT NULL;
CREATE INDEX sign_ups_declined ON sign_ups (key_id) WHERE state = 'declined';
CREATE INDEX sign_ups_to_expire ON sign_ups (expires_at) WHERE state = 'pending';
CREATE INDEX sign_ups_to_purge ON sign_ups (updated_at) WHERE state IN ('expired', 'declined') AND purged_at IS NULL;

-- The text of each consent notice, by its hash. Append-only.
CREATE TABLE notices (
    hash           TEXT    PRIMARY KEY,
    text           TEXT    NOT NULL,
    first_shown_at INTEGER NOT NULL,
    names_campaign_mail INTEGER NOT NULL DEFAULT 0 -- whether it says that campaigns are mailed about
) STRICT, WITHOUT ROWID;
CREATE TRIGGER notices_refuse_update BEFORE UPDATE ON notices
BEGIN SELECT RAISE(ABORT, 'the table notices is append-only'); END;
CREATE TRIGGER notices_refuse_delete BEFORE DELETE ON notices
BEGIN SELECT RAISE(ABORT, 'the table notices is append-only'); END;
-- Without `recursive_triggers`, which others may not set, REPLACE deletes past the trigger above; so on every table of this kind.
CREATE TRIGGER notices_refuse_replace BEFORE INSERT ON notices WHEN EXISTS (SELECT 1 FROM notices WHERE hash = NEW.hash)
BEGIN SELECT RAISE(ABORT, 'the table notices is append-only'); END;

-- Requests to sign in, for any address that was typed.
CREATE TABLE sign_ins (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: links and codes are made from it
    person_id  INTEGER REFERENCES people,         -- NULL: nobody can sign in with it
    browser    TEXT    NOT NULL,                  -- a keyed hash of the browser's nonce and the address
    mailed     INTEGER NOT NULL,
    mailbox    TEXT,                              -- where the mail went; NULL: nowhere
    tries      INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER,
    campaign_id INTEGER -- the campaign that they want to get back to
) STRICT;
CREATE INDEX sign_ins_by_browser ON sign_ins (browser);
CREATE INDEX sign_ins_by_person ON sign_ins (person_id, created_at) WHERE person_id IS NOT NULL;
CREATE INDEX sign_ins_by_mailbox ON sign_ins (mailbox, created_at) WHERE mailbox IS NOT NULL;
-- Requests without a person are deleted sooner than the others.
CREATE INDEX sign_ins_to_delete ON sign_ins (expires_at) WHERE person_id IS NOT NULL;
CREATE INDEX sign_ins_to_delete_without_person ON sign_ins (expires_at) WHERE person_id IS NULL;

-- A campaign: one category, some states or all, one offer. `definition` and `offer` are the operator's own files (TOML).
CREATE TABLE campaigns (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    slug         TEXT    NOT NULL UNIQUE,
    definition   TEXT    NOT NULL,
    state        TEXT    NOT NULL CHECK (state IN ('draft', 'gathering', 'negotiating', 'offered', 'active', 'closed', 'cancelled')),
    gather_until INTEGER NOT NULL, -- the last day, as are the two below
    offer        TEXT,
    decide_by    INTEGER,
    open_until   INTEGER,
    active_at    INTEGER,
    closed_at    INTEGER,          -- when it was closed or cancelled
    -- The referral terms of the catalog when it became active; NULL before.
    reward_cents INTEGER,
    group_size   INTEGER,
    max_groups   INTEGER,
    hold_days    INTEGER,
    created_at   INTEGER NOT NULL
) STRICT;

-- Every step of a campaign. Append-only.
CREATE TABLE campaign_history (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign_id INTEGER NOT NULL REFERENCES campaigns,
    at          INTEGER NOT NULL,
    who         TEXT    NOT NULL,
    from_state  TEXT    NOT NULL,
    to_state    TEXT    NOT NULL,
    note        TEXT    NOT NULL
) STRICT;
CREATE INDEX campaign_history_by_campaign ON campaign_history (campaign_id, id);
CREATE TRIGGER campaign_history_refuse_update BEFORE UPDATE ON campaign_history
BEGIN SELECT RAISE(ABORT, 'the table campaign_history is append-only'); END;
CREATE TRIGGER campaign_history_refuse_delete BEFORE DELETE ON campaign_history
BEGIN SELECT RAISE(ABORT, 'the table campaign_history is append-only'); END;
CREATE TRIGGER campaign_history_refuse_replace BEFORE INSERT ON campaign_history WHEN EXISTS (SELECT 1 FROM campaign_history WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the table campaign_history is append-only'); END;

-- Whether a member is in a campaign. The row of somebody who is erased stays, at their tombstone and without times, so that
-- erasing and joining again earns nothing twice.
CREATE TABLE participations (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign_id INTEGER NOT NULL REFERENCES campaigns,
    person_id   INTEGER NOT NULL REFERENCES people,
    state       TEXT    NOT NULL CHECK (state IN ('in', 'out', 'accepted', 'passed')),
    in_at       INTEGER,          -- when they last counted themselves in
    accepted_at INTEGER,          -- when they last accepted the offer
    changed_at  INTEGER NOT NULL,
    hold_checked INTEGER NOT NULL DEFAULT 0 -- the hold was over, and it was checked whether the referrer earns by it
) STRICT;
CREATE UNIQUE INDEX participations_unique ON participations (campaign_id, person_id);
CREATE INDEX participations_by_person ON participations (person_id);
CREATE INDEX participations_by_change ON participations (campaign_id, changed_at);
CREATE INDEX participations_to_check ON participations (campaign_id, accepted_at, id) WHERE state = 'accepted' AND NOT hold_checked;

-- What was counted of a campaign on a day, rounded; pages and programs are shown the last one.
CREATE TABLE demand_sheets (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign_id INTEGER NOT NULL REFERENCES campaigns,
    day         INTEGER NOT NULL,
    taken_at    INTEGER NOT NULL, -- changes up to this time are in it
    sheet       TEXT    NOT NULL  -- JSON
) STRICT;
CREATE UNIQUE INDEX demand_sheets_unique ON demand_sheets (campaign_id, day);

-- A mailing about a campaign walks people in the order of their ids, some at a time.
CREATE TABLE campaign_mailings (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign_id INTEGER NOT NULL REFERENCES campaigns,
    kind        TEXT    NOT NULL,
    after_id    INTEGER NOT NULL DEFAULT 0, -- the last person that was looked at
    queued      INTEGER NOT NULL DEFAULT 0, -- mails that were put into the outbox
    started_at  INTEGER NOT NULL,
    finished_at INTEGER,
    ended_early INTEGER NOT NULL DEFAULT 0 -- its time was over before everybody was looked at
) STRICT;
CREATE UNIQUE INDEX campaign_mailings_unique ON campaign_mailings (campaign_id, kind);

-- One row: the pace of campaign mail over all campaigns and nodes. Not in `installation`, which every confirmation waits for.
CREATE TABLE campaign_pace (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    used_to INTEGER NOT NULL -- each mail moves it on by its share of an hour; mail may be queued while it lies in the past
) STRICT;
INSERT INTO campaign_pace (id, used_to) VALUES (1, 0);

-- One mail for each campaign, kind and person. Deleted once the mailing is finished and the mail is gone.
CREATE TABLE campaign_mails (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign_id INTEGER NOT NULL REFERENCES campaigns,
    kind        TEXT    NOT NULL,
    person_id   INTEGER NOT NULL REFERENCES people,
    queued_at   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX campaign_mails_unique ON campaign_mails (campaign_id, kind, person_id);
CREATE INDEX campaign_mails_by_person ON campaign_mails (person_id);

-- What the negotiator asked suppliers and was answered, for operators alone. Append-only.
CREATE TABLE campaign_rounds (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign_id INTEGER NOT NULL REFERENCES campaigns,
    at          INTEGER NOT NULL,
    client      TEXT    NOT NULL, -- what the negotiator calls itself; nobody checked it
    supplier    TEXT    NOT NULL,
    asked       TEXT    NOT NULL,
    answered    TEXT    NOT NULL
) STRICT;
CREATE INDEX campaign_rounds_by_campaign ON campaign_rounds (campaign_id, id);
CREATE TRIGGER campaign_rounds_refuse_update BEFORE UPDATE ON campaign_rounds
BEGIN SELECT RAISE(ABORT, 'the table campaign_rounds is append-only'); END;
CREATE TRIGGER campaign_rounds_refuse_delete BEFORE DELETE ON campaign_rounds
BEGIN SELECT RAISE(ABORT, 'the table campaign_rounds is append-only'); END;
CREATE TRIGGER campaign_rounds_refuse_replace BEFORE INSERT ON campaign_rounds WHEN EXISTS (SELECT 1 FROM campaign_rounds WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the table campaign_rounds is append-only'); END;

-- Offers that the negotiator proposes; a person publishes one or none. Append-only.
CREATE TABLE campaign_offer_drafts (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign_id INTEGER NOT NULL REFERENCES campaigns,
    at          INTEGER NOT NULL,
    client      TEXT    NOT NULL,
    offer       TEXT    NOT NULL  -- a file for `campaigns offer` (TOML)
) STRICT;
CREATE INDEX campaign_offer_drafts_by_campaign ON campaign_offer_drafts (campaign_id, id);
CREATE TRIGGER campaign_offer_drafts_refuse_update BEFORE UPDATE ON campaign_offer_drafts
BEGIN SELECT RAISE(ABORT, 'the table campaign_offer_drafts is append-only'); END;
CREATE TRIGGER campaign_offer_drafts_refuse_delete BEFORE DELETE ON campaign_offer_drafts
BEGIN SELECT RAISE(ABORT, 'the table campaign_offer_drafts is append-only'); END;
CREATE TRIGGER campaign_offer_drafts_refuse_replace BEFORE INSERT ON campaign_offer_drafts WHEN EXISTS (SELECT 1 FROM campaign_offer_drafts WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the table campaign_offer_drafts is append-only'); END;

-- Who counts for whom in a campaign: people whose hold is over, and people whom the operator voided, before that or after.
-- One row for each person and campaign, for ever; no foreign keys to people, whose rows would be locked by each.
CREATE TABLE qualifications (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign_id  INTEGER NOT NULL REFERENCES campaigns,
    person_id    INTEGER NOT NULL,
    referrer_id  INTEGER,
    qualified_at INTEGER,          -- NULL: voided before
    group_id     INTEGER,          -- the group that they are in
    voided_at    INTEGER          -- the day, as of a group
) STRICT;
CREATE UNIQUE INDEX qualifications_unique ON qualifications (campaign_id, person_id);
CREATE INDEX qualifications_by_person ON qualifications (person_id);
CREATE INDEX qualifications_by_group ON qualifications (group_id) WHERE group_id IS NOT NULL;
-- Who waits for a group, in the order in which groups are formed.
CREATE INDEX qualifications_waiting ON qualifications (referrer_id, campaign_id, qualified_at, person_id)
    WHERE group_id IS NULL AND voided_at IS NULL AND qualified_at IS NOT NULL;

-- A full group of people whom one person referred.
CREATE TABLE reward_groups (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    referrer_id INTEGER NOT NULL,
    campaign_id INTEGER NOT NULL REFERENCES campaigns,
    -- capped: worth nothing, the referrer has as many as may be rewarded. dissolved: somebody in it was voided before it was paid.
    -- reversed: the same, after. waived: given up by the referrer. settled: the referrer was erased.
    state       TEXT    NOT NULL CHECK (state IN ('accrued', 'capped', 'dissolved', 'reversed', 'waived', 'settled')),
    formed_at   INTEGER NOT NULL, -- the day: the moment would lead to the ledger
    payout_id   INTEGER            -- the payout that it is in; NULL: not paid
) STRICT;
CREATE INDEX reward_groups_by_referrer ON reward_groups (referrer_id, campaign_id, state, id);
CREATE INDEX reward_groups_due ON reward_groups (referrer_id, campaign_id) WHERE state = 'accrued' AND payout_id IS NULL;
CREATE INDEX reward_groups_by_payout ON reward_groups (payout_id) WHERE payout_id IS NOT NULL;
CREATE INDEX reward_groups_by_campaign ON reward_groups (campaign_id, id);

-- Money that members earned and were paid, in cents; a balance is a sum. Append-only. A person appears by `people.account`.
CREATE TABLE reward_ledger (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    account      TEXT    NOT NULL,
    campaign_id  INTEGER REFERENCES campaigns, -- NULL: of all campaigns
    kind         TEXT    NOT NULL CHECK (kind IN ('accrual', 'reversal', 'payout', 'payout_failed')),
    amount_cents INTEGER NOT NULL, -- what it adds to the balance
    at           INTEGER NOT NULL,
    who          TEXT    NOT NULL,
    why          TEXT    NOT NULL,
    CHECK ((amount_cents > 0) = (kind IN ('accrual', 'payout_failed')) AND amount_cents <> 0)
) STRICT;
CREATE INDEX reward_ledger_by_account ON reward_ledger (account, id);
CREATE INDEX reward_ledger_by_campaign ON reward_ledger (campaign_id, id);
CREATE TRIGGER reward_ledger_refuse_update BEFORE UPDATE ON reward_ledger
BEGIN SELECT RAISE(ABORT, 'the table reward_ledger is append-only'); END;
CREATE TRIGGER reward_ledger_refuse_delete BEFORE DELETE ON reward_ledger
BEGIN SELECT RAISE(ABORT, 'the table reward_ledger is append-only'); END;
CREATE TRIGGER reward_ledger_refuse_replace BEFORE INSERT ON reward_ledger WHEN EXISTS (SELECT 1 FROM reward_ledger WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the table reward_ledger is append-only'); END;

-- A file of payouts for whoever pays them. It is filled in steps, in the order of the referrers' ids.
CREATE TABLE payout_batches (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    created_at INTEGER NOT NULL,
    who        TEXT    NOT NULL,
    after_id   INTEGER NOT NULL DEFAULT 0, -- the last referrer who was looked at
    filled_at  INTEGER,
    closed_at  INTEGER,                   -- its file is written from now on: nothing is taken out of it any more
    written_at INTEGER                     -- when its file was first written
) STRICT;

-- What one member is paid for one campaign.
CREATE TABLE payouts (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    batch_id     INTEGER NOT NULL REFERENCES payout_batches,
    external_id  TEXT    NOT NULL UNIQUE, -- the account, the campaign and a number
    account      TEXT    NOT NULL,
    campaign_id  INTEGER NOT NULL REFERENCES campaigns,
    amount_cents INTEGER NOT NULL CHECK (amount_cents >= 0),
    group_count  INTEGER NOT NULL,
    -- out: in a file, and not settled. netted: all of it went to what was paid too much before.
    state        TEXT    NOT NULL CHECK (state IN ('out', 'paid', 'failed', 'netted')),
    reference    TEXT,                    -- what the provider calls it
    paid_at      INTEGER,
    reason       TEXT,                    -- why it failed
    settled_at   INTEGER
) STRICT;
CREATE INDEX payouts_by_batch ON payouts (batch_id, id);
CREATE INDEX payouts_out ON payouts (batch_id) WHERE state = 'out';
CREATE INDEX payouts_by_account ON payouts (account, campaign_id);
-- For the sums of a year: the accounts in their order, a page after the other, each payout read once.
CREATE INDEX payouts_paid ON payouts (account, paid_at, amount_cents) WHERE state = 'paid';

-- Referrers and campaigns of which groups may be formed.
CREATE TABLE regroupings (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    referrer_id INTEGER NOT NULL,
    campaign_id INTEGER NOT NULL REFERENCES campaigns
) STRICT;
CREATE UNIQUE INDEX regroupings_unique ON regroupings (referrer_id, campaign_id);

-- People who joined, again or after those whom they referred: whoever waits for that is checked again, in the order of ids.
CREATE TABLE requalifications (
    person_id INTEGER PRIMARY KEY,
    after_id  INTEGER NOT NULL DEFAULT 0 -- the last person whom they referred that was checked
) STRICT;

-- Mail to be sent, written in the transaction of the sign-up, the request to sign in or the step of a mailing; at most one for
-- each. Sent mail is deleted.
CREATE TABLE outbox (
    id               INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: message ids are made from it
    sign_up_id       INTEGER UNIQUE REFERENCES sign_ups,
    sign_in_id       INTEGER UNIQUE REFERENCES sign_ins,
    campaign_mail_id INTEGER UNIQUE REFERENCES campaign_mails,
    kind             TEXT    NOT NULL CHECK (kind IN ('confirm', 'already_member', 'sign_in', 'campaign_opened', 'campaign_offer', 'campaign_result')),
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
CREATE INDEX outbox_due ON outbox (send_after) WHERE given_up_at IS NULL AND held_at IS NULL AND campaign_mail_id IS NULL;
CREATE INDEX outbox_lanes ON outbox (lane, send_after) WHERE given_up_at IS NULL AND held_at IS NULL AND campaign_mail_id IS NULL;
CREATE INDEX outbox_campaign_mail ON outbox (send_after) WHERE campaign_mail_id IS NOT NULL;
-- What somebody decided about goes before the rest of its lane.
CREATE INDEX outbox_decided ON outbox (lane, send_after) WHERE priority >= 1 AND given_up_at IS NULL AND held_at IS NULL AND campaign_mail_id IS NULL;
CREATE INDEX outbox_held ON outbox (held_at) WHERE held_at IS NOT NULL;

-- Per mailbox, for all sources: its last four mails, newest first, with the partner of each (NULL: the form); and whether it
-- wants mail. Partners have no foreign key here, for these rows change with every mail.
CREATE TABLE mailboxes (
    mailbox          TEXT PRIMARY KEY,
    sent_1           INTEGER,
    sent_2           INTEGER,
    sent_3           INTEGER,
    sent_4           INTEGER,
    source_1         INTEGER,
    source_2         INTEGER,
    source_3         INTEGER,
    source_4         INTEGER,
    last_mail_id     INTEGER, -- the mail in the outbox that `sent_1` counts: a retry of it is not counted again
    suppressed_until INTEGER, -- 0: a suppression that was lifted
    complained_at    INTEGER  -- a complaint marked our mail as spam
) STRICT, WITHOUT ROWID;

-- Mailboxes that do not want mail of a partner.
CREATE TABLE stopped_partners (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    mailbox    TEXT    NOT NULL,
    partner_id INTEGER REFERENCES partners, -- NULL: the form
    stopped_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX stopped_partners_unique ON stopped_partners (mailbox, coalesce(partner_id, 0));
CREATE INDEX stopped_partners_to_delete ON stopped_partners (stopped_at);

-- What a source (a partner, or the form) caused on a day: for its mail budget, its reputation and the operator's figures.
CREATE TABLE source_days (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    partner_id         INTEGER REFERENCES partners, -- NULL: the form
    day                INTEGER NOT NULL,
    signed_up          INTEGER NOT NULL DEFAULT 0, -- rolled up
    mailed             INTEGER NOT NULL DEFAULT 0, -- mails whose first attempt began: what the budget is spent on
    confirmations_sent INTEGER NOT NULL DEFAULT 0, -- confirmation mails that left: what the source is judged by
    proofs_of_work     INTEGER NOT NULL DEFAULT 0,
    confirmed          INTEGER NOT NULL DEFAULT 0,
    declined           INTEGER NOT NULL DEFAULT 0,
    declines_withdrawn INTEGER NOT NULL DEFAULT 0, -- no longer in `declined`: the person joined after all
    expired            INTEGER NOT NULL DEFAULT 0,
    bounced            INTEGER NOT NULL DEFAULT 0, -- hard bounces
    soft_bounced       INTEGER NOT NULL DEFAULT 0,
    complained         INTEGER NOT NULL DEFAULT 0,
    joined             INTEGER NOT NULL DEFAULT 0, -- rolled up
    departed           INTEGER NOT NULL DEFAULT 0, -- rolled up: members who left
    requests           INTEGER NOT NULL DEFAULT 0, -- of its keys, as nodes count them
    sign_ups_sent      INTEGER NOT NULL DEFAULT 0, -- of these, sign-ups that were taken, repeats included
    sign_ups_confirmed INTEGER NOT NULL DEFAULT 0  -- sign-ups whose button was pressed, by new members or not
) STRICT;
CREATE UNIQUE INDEX source_days_unique ON source_days (coalesce(partner_id, 0), day);
CREATE INDEX source_days_by_day ON source_days (day);

-- Names that may be used once: proofs of work, reports of mail services. Deleted once they would be refused for their age.
CREATE TABLE used_once (
    name    TEXT    PRIMARY KEY,
    ends_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX used_once_to_delete ON used_once (ends_at);

-- Requests with an Idempotency-Key, and the answer to the first of each. Kept for 30 days.
CREATE TABLE idempotency_keys (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    partner_id   INTEGER NOT NULL REFERENCES partners,
    key          TEXT    NOT NULL,
    operation    TEXT    NOT NULL,
    input        TEXT    NOT NULL,                    -- a keyed hash of the request
    person_id    INTEGER REFERENCES people ON DELETE SET NULL,
    sign_up_id   INTEGER REFERENCES sign_ups ON DELETE SET NULL, -- NULL: only a link was asked for
    link         TEXT    NOT NULL,                    -- the answer
    joined_count INTEGER NOT NULL DEFAULT 0,
    savings      INTEGER NOT NULL DEFAULT 0,
    attributed   INTEGER NOT NULL DEFAULT 0,
    created_at   INTEGER NOT NULL,
    closes_at    INTEGER,                           -- NULL: only a link was asked for
    confirmed_at INTEGER,                           -- set only if the person confirmed before `closes_at`
    closed_at    INTEGER                            -- when the event of the closing was recorded
) STRICT;
CREATE UNIQUE INDEX idempotency_keys_unique ON idempotency_keys (partner_id, key);
CREATE INDEX idempotency_keys_by_partner ON idempotency_keys (partner_id, created_at, id) WHERE closes_at IS NOT NULL;
CREATE INDEX idempotency_keys_by_person ON idempotency_keys (person_id, partner_id, created_at) WHERE person_id IS NOT NULL;
CREATE INDEX idempotency_keys_by_sign_up ON idempotency_keys (sign_up_id) WHERE sign_up_id IS NOT NULL;
CREATE INDEX idempotency_keys_to_close ON idempotency_keys (closes_at)
    WHERE closes_at IS NOT NULL AND confirmed_at IS NULL AND closed_at IS NULL;

-- What partners learn of their sign-ups. A row is written in the transaction that causes the event, with or without an
-- endpoint, and kept for 30 days.
CREATE TABLE partner_events (
    id              INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: webhook message ids are made from it
    partner_id      INTEGER NOT NULL REFERENCES partners,
    idempotency_key TEXT    NOT NULL,
    kind            TEXT    NOT NULL,
    at              INTEGER NOT NULL,                  -- when it happened
    position        INTEGER                            -- its place in the partner's list, given after the commit
) STRICT;
CREATE INDEX partner_events_by_time ON partner_events (partner_id, at, id);
CREATE INDEX partner_events_by_key ON partner_events (partner_id, idempotency_key);
CREATE UNIQUE INDEX partner_events_by_position ON partner_events (partner_id, position) WHERE position IS NOT NULL;
CREATE INDEX partner_events_to_number ON partner_events (partner_id, at, id) WHERE position IS NULL;

CREATE TABLE webhook_endpoints (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: secrets are made from it
    partner_id          INTEGER NOT NULL REFERENCES partners,
    url                 TEXT    NOT NULL,
    generation          INTEGER NOT NULL DEFAULT 1,        -- of the secret
    rotated_at          INTEGER,                           -- when the secret before this one began to expire
    created_at          INTEGER NOT NULL,
    delivered_at        INTEGER,                           -- a success within a minute of the last, which its deliveries tell
    failing_since       INTEGER,                           -- the first failure after it
    last_error          TEXT,
    disabled_at         INTEGER,
    disabled_reason     TEXT,
    notified_at         INTEGER,                           -- when the partner's contact was notified that it is disabled
    notify_leased_until INTEGER NOT NULL DEFAULT 0,        -- lease of the worker that sends the notification
    removed_at          INTEGER                            -- it is no more; its row goes with the last of its deliveries
) STRICT;
CREATE INDEX webhook_endpoints_by_partner ON webhook_endpoints (partner_id);

-- Events to be delivered, one row per endpoint, written in the transaction that causes the event. Kept as long as the event.
CREATE TABLE webhook_deliveries (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint_id     INTEGER NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE,
    event_id        INTEGER NOT NULL REFERENCES partner_events ON DELETE CASCADE,
    send_after      INTEGER NOT NULL,
    attempts        INTEGER NOT NULL DEFAULT 0, -- counts leases; a worker whose count is outdated lost its lease
    leased_until    INTEGER NOT NULL DEFAULT 0,
    leased_by       TEXT,
    last_attempt_at INTEGER,                    -- when the last attempt ended
    last_status     INTEGER,                    -- the HTTP status of its answer; NULL: there was none
    last_error      TEXT,
    delivered_at    INTEGER,
    settled_at      INTEGER                     -- when it was delivered or given up
) STRICT;
CREATE UNIQUE INDEX webhook_deliveries_unique ON webhook_deliveries (endpoint_id, event_id);
CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (event_id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, send_after) WHERE settled_at IS NULL;
CREATE INDEX webhook_deliveries_delivered ON webhook_deliveries (endpoint_id, delivered_at) WHERE delivered_at IS NOT NULL;
CREATE INDEX webhook_deliveries_given_up ON webhook_deliveries (endpoint_id)
    WHERE settled_at IS NOT NULL AND delivered_at IS NULL;

-- What partners change themselves over the API: how often in a day, and what their contact is mailed about. Kept four days.
CREATE TABLE partner_changes (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    partner_id   INTEGER NOT NULL REFERENCES partners,
    key_id       TEXT    NOT NULL,           -- the key that was presented
    kind         TEXT    NOT NULL,
    at           INTEGER NOT NULL,           -- when it was asked for
    about        TEXT    NOT NULL DEFAULT '',
    done_at      INTEGER,                    -- set in the transaction that made the change
    mailed_at    INTEGER,
    leased_until INTEGER NOT NULL DEFAULT 0  -- lease of the worker that sends the mail
) STRICT;
CREATE INDEX partner_changes_by_partner ON partner_changes (partner_id, kind, at);
CREATE INDEX partner_changes_to_mail ON partner_changes (at) WHERE done_at IS NOT NULL AND mailed_at IS NULL;

-- Mail of the sandbox, which is never sent. Empty in live records.
CREATE TABLE inbox (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    partner_id  INTEGER REFERENCES partners, -- NULL: the form
    message_id  TEXT    NOT NULL UNIQUE, -- a mail that is sent twice is stored once
    recipient   TEXT    NOT NULL,
    sender      TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    text        TEXT    NOT NULL,
    html        TEXT    NOT NULL,
    received_at INTEGER NOT NULL
) STRICT;
CREATE INDEX inbox_by_partner ON inbox (coalesce(partner_id, 0), id);

-- Who changed what, and with which command. Append-only. A person appears by `people.account`, never by an address.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    who     TEXT    NOT NULL,
    command TEXT    NOT NULL,
    about   TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_about ON audit (about, at);
CREATE INDEX audit_by_time ON audit (at, id);
CREATE TRIGGER audit_refuse_update BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the table audit is append-only'); END;
CREATE TRIGGER audit_refuse_delete BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the table audit is append-only'); END;
CREATE TRIGGER audit_refuse_replace BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the table audit is append-only'); END;

-- Who may use the page /operator. A link signs them in, once; only hashes of tokens are kept.
CREATE TABLE operators (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    name            TEXT    NOT NULL UNIQUE,
    created_at      INTEGER NOT NULL,
    link_hash       TEXT    UNIQUE, -- of the newest link; it stays when it was used, so that a second use is told
    link_expires_at INTEGER,
    link_used_at    INTEGER,
    signed_in_at    INTEGER         -- the last time
) STRICT;
CREATE TABLE operator_sessions (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    operator_id INTEGER NOT NULL REFERENCES operators,
    hash        TEXT    NOT NULL UNIQUE,
    expires_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX operator_sessions_by_operator ON operator_sessions (operator_id);

-- The operator's figures. A roll-up adds what happened since the last one, at most a minute ago, to `demand`, `referrers`,
-- `account_sums`, `reward_totals` and columns of `source_days` and `api_keys`; reading them costs the same at any size.
CREATE TABLE rollup (
    id               INTEGER PRIMARY KEY CHECK (id = 1),
    sign_up_id       INTEGER NOT NULL,          -- the last sign-up that is counted
    referred_members INTEGER NOT NULL DEFAULT 0 -- members whom somebody is credited for: the sum of `referrers.members`
) STRICT;
INSERT INTO rollup (id, sign_up_id) VALUES (1, 0);

-- Members by the category and the US state that they named. '': members in all, and members who named no state.
CREATE TABLE demand (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    category TEXT    NOT NULL,
    us_state TEXT    NOT NULL,
    members  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX demand_unique ON demand (category, us_state);

-- How many members a person is credited for.
CREATE TABLE referrers (
    person_id INTEGER PRIMARY KEY REFERENCES people,
    members   INTEGER NOT NULL DEFAULT 0,
    -- Groups that count toward the most that one person is rewarded for, and their rewards.
    rewarded_groups INTEGER NOT NULL DEFAULT 0,
    rewarded_cents  INTEGER NOT NULL DEFAULT 0,
    owed_cents      INTEGER NOT NULL DEFAULT 0, -- paid too much, to an account that was cut off since
    rest_due        INTEGER NOT NULL DEFAULT 0 -- a payout failed: the next batch pays what is due, with groups or without
) STRICT;
CREATE INDEX referrers_by_members ON referrers (members DESC, person_id);
CREATE INDEX referrers_rest_due ON referrers (person_id) WHERE rest_due;

-- People who joined (1) or left (-1) since the last roll-up, with the answers that are to be counted.
CREATE TABLE member_changes (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    change      INTEGER NOT NULL CHECK (change IN (1, -1)),
    partner_id  INTEGER REFERENCES partners, -- NULL: the form
    key_id      TEXT,
    us_state    TEXT,
    categories  TEXT    NOT NULL,
    referrer_id INTEGER
) STRICT;
CREATE TRIGGER person_joined AFTER UPDATE OF state ON people WHEN NEW.state = 'member' AND OLD.state <> 'member'
BEGIN
    INSERT INTO member_changes (at, change, partner_id, key_id, us_state, categories, referrer_id)
    SELECT coalesce(NEW.joined_at, NEW.created_at), 1, s.partner_id, s.key_id, s.us_state, coalesce(s.categories, ''), NEW.referrer_id
    FROM (SELECT 1) LEFT JOIN sign_ups s ON s.id =
        (SELECT max(id) FROM sign_ups WHERE person_id = NEW.id AND state = 'confirmed' AND decided_at = NEW.joined_at);
    INSERT INTO requalifications (person_id)
    SELECT NEW.id WHERE EXISTS (SELECT 1 FROM people WHERE referrer_id = NEW.id)
                     OR EXISTS (SELECT 1 FROM participations WHERE person_id = NEW.id)
    ON CONFLICT (person_id) DO UPDATE SET after_id = 0;
END;
-- Counts the answers that the member gave last.
CREATE TRIGGER person_left AFTER UPDATE OF state ON people WHEN NEW.state <> 'member' AND OLD.state = 'member'
BEGIN
    INSERT INTO member_changes (at, change, partner_id, key_id, us_state, categories, referrer_id)
    SELECT coalesce(NEW.left_at, OLD.joined_at, OLD.created_at), -1, s.partner_id, s.key_id,
           CASE WHEN OLD.answered_at >= OLD.joined_at THEN OLD.own_us_state ELSE s.us_state END,
           coalesce(CASE WHEN OLD.answered_at >= OLD.joined_at THEN OLD.own_categories ELSE s.categories END, ''),
           OLD.referrer_id
    FROM (SELECT 1) LEFT JOIN sign_ups s ON s.id =
        (SELECT max(id) FROM sign_ups WHERE person_id = OLD.id AND state = 'confirmed' AND decided_at = OLD.joined_at);
END;

-- A sign-up that is deleted before it was rolled up is counted all the same: counters never fall.
CREATE TRIGGER sign_up_deleted AFTER DELETE ON sign_ups WHEN OLD.id > (SELECT sign_up_id FROM rollup WHERE id = 1)
BEGIN
    INSERT INTO source_days (partner_id, day, signed_up) VALUES (OLD.partner_id, OLD.created_at / 86400000, 1)
        ON CONFLICT (coalesce(partner_id, 0), day) DO UPDATE SET signed_up = signed_up + 1;
    UPDATE api_keys SET signed_up = signed_up + 1 WHERE id = OLD.key_id;
END;

-- Accounts whose balance, payouts or owner changed since the last roll-up.
CREATE TABLE account_changes (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    account TEXT    NOT NULL
) STRICT;

-- What each account that earned something is due, is being paid and was paid, as of the last roll-up.
CREATE TABLE account_sums (
    account    TEXT    PRIMARY KEY,
    due_cents  INTEGER NOT NULL, -- less than zero where too much was paid
    out_cents  INTEGER NOT NULL,
    paid_cents INTEGER NOT NULL,
    is_erased  INTEGER NOT NULL  -- nobody can be paid it
) STRICT, WITHOUT ROWID;

-- One row: the sums of `account_sums`.
CREATE TABLE reward_totals (
    id                INTEGER PRIMARY KEY CHECK (id = 1),
    accounts          INTEGER NOT NULL DEFAULT 0,
    due_cents         INTEGER NOT NULL DEFAULT 0, -- without accounts below zero
    erased_cents      INTEGER NOT NULL DEFAULT 0, -- of that, what nobody can be paid
    out_cents         INTEGER NOT NULL DEFAULT 0,
    paid_cents        INTEGER NOT NULL DEFAULT 0,
    negative_accounts INTEGER NOT NULL DEFAULT 0,
    negative_cents    INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO reward_totals (id) VALUES (1);
