//! The tables that `move` copies. Their columns are read from the catalog of the database.

/// A table, as every store has it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    /// The column that rows are ordered by.
    pub key: &'static str,
    /// Whether the store generates the key.
    pub numbered: bool,
    /// Whether a new store has its only row already.
    pub has_row: bool,
}

const fn numbered(name: &'static str) -> Table {
    Table { name, key: "id", numbered: true, has_row: false }
}

const fn keyed(name: &'static str, key: &'static str) -> Table {
    Table { name, key, numbered: false, has_row: false }
}

const fn single_row(name: &'static str) -> Table {
    Table { name, key: "id", numbered: false, has_row: true }
}

/// All of them, in an order in which no table refers to a later one.
pub const TABLES: &[Table] = &[
    single_row("installation"),
    single_row("readiness"),
    single_row("rollup"),
    keyed("secret_generations", "number"),
    numbered("partners"),
    keyed("api_keys", "id"),
    numbered("people"),
    numbered("sign_ups"),
    keyed("notices", "hash"),
    numbered("sign_ins"),
    numbered("campaigns"),
    numbered("campaign_history"),
    numbered("participations"),
    numbered("demand_sheets"),
    numbered("campaign_mailings"),
    single_row("campaign_pace"),
    numbered("campaign_mails"),
    numbered("campaign_rounds"),
    numbered("campaign_offer_drafts"),
    numbered("campaign_draft_answers"),
    numbered("campaign_bids"),
    numbered("campaign_messages"),
    numbered("negotiation_pauses"),
    numbered("handover_batches"),
    numbered("acceptances"),
    numbered("qualifications"),
    numbered("disqualifications"),
    numbered("reward_groups"),
    numbered("reward_ledger"),
    numbered("payout_batches"),
    numbered("payouts"),
    numbered("regroupings"),
    keyed("requalifications", "person_id"),
    numbered("outbox"),
    keyed("mailboxes", "mailbox"),
    numbered("stopped_partners"),
    numbered("source_days"),
    keyed("used_once", "name"),
    numbered("idempotency_keys"),
    numbered("partner_events"),
    numbered("webhook_endpoints"),
    numbered("webhook_deliveries"),
    numbered("partner_changes"),
    numbered("inbox"),
    numbered("audit"),
    numbered("operators"),
    // Short-lived, and copied all the same: `move` compares every table, and nobody is signed out by it.
    numbered("operator_sessions"),
    numbered("operator_links"),
    numbered("operator_recovery_codes"),
    keyed("told_findings", "name"),
    numbered("demand"),
    keyed("referrers", "person_id"),
    numbered("member_changes"),
    numbered("account_changes"),
    keyed("account_sums", "account"),
    single_row("reward_totals"),
];
