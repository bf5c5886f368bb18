//! Every table with its columns: what `move` carries, and what a filled database of each schema is compared by.

/// A table, as every store has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    /// The first is the key, and the order in which rows are carried over.
    pub columns: &'static str,
    /// Whether the key is a number that the store makes itself.
    pub numbered: bool,
    /// Whether a new store has its only row already.
    pub has_row: bool,
}

impl Table {
    pub fn key(&self) -> &'static str {
        self.columns.split(',').next().unwrap_or_default()
    }
}

/// All of them, in an order in which nothing refers to what comes later.
pub const TABLES: &[Table] = &[
    Table {
        name: "installation",
        columns: "id, member_count, signups_paused, secret_fingerprint",
        numbered: false,
        has_row: true,
    },
    Table {
        name: "api_keys",
        columns: "id, partner, hash, per_minute, created_at, expires_at, last_used_at, revoked_at, signed_up, confirmed, \
                  declined",
        numbered: false,
        has_row: false,
    },
    Table {
        name: "people",
        columns: "id, email, email_normalized, mailbox, code, state, referrer_id, created_at, joined_at, undeliverable_until, \
                  soft_bounces, account, left_at, erased_at, session, wrong_codes, wrong_codes_day, own_us_state, \
                  own_categories, own_comments, answered_at, unwanted_mail, uncredited, language",
        numbered: true,
        has_row: false,
    },
    Table {
        name: "sign_ups",
        columns: "id, person_id, key_id, partner, state, us_state, categories, comments, referrer_id, consent_version, \
                  created_at, updated_at, expires_at, decided_at, purged_at, slot, disposable, channel, client, notice, mailed_at, \
                  decided_how, language",
        numbered: true,
        has_row: false,
    },
    Table { name: "partners", columns: "id, name, contact, created_at", numbered: true, has_row: false },
    Table {
        name: "idempotency_keys",
        columns: "id, partner, key, operation, input, person_id, sign_up_id, link, joined_count, savings, attributed, \
                  created_at, closes_at, confirmed_at, closed_at",
        numbered: true,
        has_row: false,
    },
    Table {
        name: "webhook_endpoints",
        columns: "id, partner, url, generation, rotated_at, created_at, delivered_at, failing_since, last_error, disabled_at, \
                  disabled_why, told_at, telling_until",
        numbered: true,
        has_row: false,
    },
    Table {
        name: "webhook_deliveries",
        columns: "id, endpoint_id, idempotency_id, kind, at, send_after, attempts, leased_until, leased_by, last_error, \
                  given_up_at",
        numbered: true,
        has_row: false,
    },
    Table {
        name: "inbox",
        columns: "id, partner, name, recipient, sender, subject, text, html, received_at",
        numbered: true,
        has_row: false,
    },
    Table { name: "notices", columns: "hash, words, first_shown_at", numbered: false, has_row: false },
    Table {
        name: "sign_ins",
        columns: "id, person_id, browser, mailed, tries, created_at, expires_at, used_at",
        numbered: true,
        has_row: false,
    },
    Table {
        name: "outbox",
        columns: "id, sign_up_id, sign_in_id, kind, recipient, created_at, send_after, attempts, first_attempt_at, leased_until, \
                  leased_by, last_error, given_up_at, lane, pass, held_at",
        numbered: true,
        has_row: false,
    },
    Table {
        name: "mailboxes",
        columns: "mailbox, sent_1, sent_2, sent_3, sent_4, holder, suppressed_until, source_1, source_2, source_3, source_4, \
                  complained_at",
        numbered: false,
        has_row: false,
    },
    Table { name: "stopped_partners", columns: "id, mailbox, partner, stopped_at", numbered: true, has_row: false },
    Table {
        name: "source_days",
        columns: "id, source, day, mailed, asked, proven, confirmed, declined, bounced, complained, soft_bounced, \
                  signed_up, joined, departed, lapsed",
        numbered: true,
        has_row: false,
    },
    Table { name: "used_once", columns: "name, ends_at", numbered: false, has_row: false },
    Table { name: "readiness", columns: "id, checked_at", numbered: false, has_row: true },
    Table { name: "audit", columns: "id, at, who, command, about", numbered: true, has_row: false },
    Table { name: "demand", columns: "id, category, us_state, members", numbered: true, has_row: false },
    Table { name: "referrers", columns: "person_id, members", numbered: false, has_row: false },
    Table { name: "rollup", columns: "id, sign_up_id", numbered: false, has_row: true },
    Table {
        name: "member_changes",
        columns: "id, at, change, source, key_id, us_state, categories, referrer_id",
        numbered: true,
        has_row: false,
    },
];
