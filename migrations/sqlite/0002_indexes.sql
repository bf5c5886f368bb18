-- Mail that failed, for good or to be tried again, is found without a look at the rest of the outbox.
CREATE INDEX outbox_given_up ON outbox (given_up_at) WHERE given_up_at IS NOT NULL;
CREATE INDEX outbox_failed ON outbox (send_after)
    WHERE last_error IS NOT NULL AND given_up_at IS NULL AND held_at IS NULL AND campaign_mail_id IS NULL;
