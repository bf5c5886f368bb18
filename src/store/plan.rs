//! Checks the plan of every statement: none may read a whole table that grows, unless `ALLOWED` says why. On SQLite a debug build
//! checks before a statement first runs (`sqlite/plan.rs`); on PostgreSQL a test checks all statements that ran
//! (`postgres/plan.rs`).

use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::StoreError;

/// Tables that have few rows however many people there are: one row, a row per day and source, what operators and partners create
/// by hand, or what a negotiator may create for a campaign.
const SMALL: &[&str] = &[
    "api_keys",
    "campaign_bids",
    "campaign_draft_answers",
    "campaign_mailings",
    "campaign_messages",
    "campaign_offer_drafts",
    "campaign_pace",
    "campaign_rounds",
    "campaigns",
    "negotiation_pauses",
    "demand",
    "handover_batches",
    "installation",
    "operator_links",
    "operator_recovery_codes",
    "operator_sessions",
    "operators",
    "partners",
    "payout_batches",
    "reward_totals",
    "rollup",
    "secret_generations",
    "source_days",
    "sqlite_sequence",
    "told_findings",
    "unionhall_schema",
    "webhook_endpoints",
];

/// Statements that may read a table from one end, for one reason.
struct AllowedScans {
    why: &'static str,
    /// The most rows that each may read, in a debug build where there are more.
    most: i32,
    /// The table, and a part of the statement, with single spaces and parameters as SQLite writes them.
    of: &'static [(&'static str, &'static str)],
}

/// What a statement may read of a table.
#[derive(Clone, Copy)]
pub(super) struct AllowedScan {
    pub(super) table: &'static str,
    pub(super) why: &'static str,
    pub(super) most: i32,
}

const ALLOWED: &[AllowedScans] = &[
    AllowedScans {
        why: "looks for one row",
        most: 1,
        of: &[
            ("member_changes", "SELECT EXISTS (SELECT 1 FROM member_changes)"),
            ("account_changes", "SELECT EXISTS (SELECT 1 FROM member_changes)"),
        ],
    },
    AllowedScans {
        why: "the oldest, as many as a step takes",
        most: 1000,
        of: &[
            ("member_changes", "FROM member_changes ORDER BY id LIMIT"),
            ("account_changes", "FROM account_changes ORDER BY id LIMIT"),
            ("idempotency_keys", "FROM idempotency_keys ORDER BY id LIMIT"),
            ("inbox", "FROM inbox ORDER BY id LIMIT"),
            ("disqualifications", "FROM disqualifications d ORDER BY d.id LIMIT"),
        ],
    },
    AllowedScans {
        why: "what happened since the last roll-up, a minute ago",
        most: 100_000,
        of: &[
            ("member_changes", "FROM member_changes WHERE change = 1 GROUP BY key_id"),
            ("member_changes", "UPDATE member_changes SET referrer_id = NULL"),
        ],
    },
    AllowedScans {
        why: "who ceased to count since the worker last looked, half a minute ago",
        most: 100_000,
        of: &[("disqualifications", "FROM disqualifications d WHERE (SELECT q.referrer_id")],
    },
    AllowedScans {
        why: "the newest",
        most: 1,
        of: &[
            ("sign_ups", "FROM sign_ups ORDER BY id DESC LIMIT 1"),
            ("people", "FROM people ORDER BY id DESC LIMIT 1"),
            ("campaign_history", "SELECT max(id) FROM campaign_history"),
            ("demand_sheets", "SELECT max(id) FROM demand_sheets"),
            ("payouts", "SELECT max(batch_id) FROM payouts WHERE state = 'out'"),
        ],
    },
    AllowedScans { why: "the oldest", most: 1, of: &[("regroupings", "FROM regroupings ORDER BY id LIMIT 1")] },
    AllowedScans {
        why: "the first",
        most: 1,
        of: &[("requalifications", "FROM requalifications ORDER BY person_id LIMIT 1")],
    },
    AllowedScans {
        why: "what is counted, up to a bound",
        most: 10000,
        of: &[
            ("outbox", "SELECT count(*) AS mails, min(created_at) AS oldest"),
            ("outbox", "WHERE held_at IS NOT NULL ORDER BY held_at LIMIT ?1) o LEFT JOIN sign_ups"),
        ],
    },
    AllowedScans {
        why: "the operator's list of mail",
        most: 10000,
        of: &[("outbox", "FROM outbox o ORDER BY o.id LIMIT 10000")],
    },
    AllowedScans {
        why: "all that is held, for it is released or deleted",
        most: WHOLE,
        of: &[
            ("outbox", "WHERE o.held_at IS NOT NULL AND NOT o.held_suspended AND o.leased_by IS NULL"),
            ("sign_ups", "WHERE o.held_at IS NOT NULL AND NOT o.held_suspended AND o.leased_by IS NULL"),
        ],
    },
    AllowedScans {
        why: "everything once, when an operator decides on a key's mail",
        most: WHOLE,
        of: &[
            ("sign_ups", "AND s.key_id = ?1 AND o.leased_by IS NULL"),
            ("outbox", "AND s.key_id = ?1 AND o.leased_by IS NULL"),
        ],
    },
    AllowedScans {
        why: "those of mailings that are over, 500 at once; PostgreSQL looks for each where there are many more",
        most: 50_000,
        of: &[("campaign_mails", "DELETE FROM campaign_mails WHERE id IN (SELECT m.id FROM campaign_mailings g")],
    },
    AllowedScans {
        why: "what is counted, up to a bound",
        most: 1000,
        of: &[(
            "outbox",
            "FROM outbox WHERE campaign_mail_id IS NOT NULL AND given_up_at IS NULL AND held_at IS NULL LIMIT",
        )],
    },
    AllowedScans {
        why: "everything once, when a worker stops",
        most: WHOLE,
        of: &[("outbox", "UPDATE outbox SET leased_until = 0, leased_by = NULL WHERE leased_by = ?1")],
    },
    AllowedScans {
        why: "what is not settled, once, when a worker stops",
        most: WHOLE,
        of: &[("webhook_deliveries", "WHERE leased_by = ?1 AND settled_at IS NULL")],
    },
    AllowedScans {
        why: "everything once, after a restore",
        most: WHOLE,
        of: &[
            ("outbox", "UPDATE outbox SET held_at = ?1 WHERE held_at IS NULL"),
            ("outbox", "UPDATE outbox SET held_suspended = FALSE WHERE held_suspended"),
            ("outbox", "WHERE leased_until <> 0"),
            ("webhook_deliveries", "WHERE leased_until <> 0"),
            ("partner_events", "UPDATE partner_events SET position = NULL WHERE position IS NOT NULL"),
            ("sign_ins", "DELETE FROM sign_ins"),
        ],
    },
    AllowedScans {
        why: "as many as are shown",
        most: 1000,
        of: &[("referrers", "FROM referrers WHERE members > 0 ORDER BY members DESC, person_id LIMIT")],
    },
    AllowedScans {
        why: "what is counted, up to a bound",
        most: 100_000,
        of: &[("participations", "NOT part.hold_checked AND part.accepted_at IS NOT NULL LIMIT")],
    },
];

/// Rows of [`SMALL`] tables that a statement may read in addition.
pub(super) const OF_SMALL: i32 = 1000;

/// Any number of rows.
const WHOLE: i32 = i32::MAX;

/// The statements whose plans were checked, and what each may read.
static CHECKED: LazyLock<Mutex<HashMap<String, Option<AllowedScan>>>> = LazyLock::new(Mutex::default);

fn checked() -> MutexGuard<'static, HashMap<String, Option<AllowedScan>>> {
    CHECKED.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn is_checked(sql: &str) -> bool {
    checked().contains_key(sql)
}

/// What a checked statement may read.
pub(super) fn allowed(sql: &str) -> Option<AllowedScan> {
    checked().get(sql).copied().flatten()
}

/// Refuses a statement that scans more than it may. `scans` has, for each table, what is scanned: the table itself or an index.
pub fn judge(sql: &str, scans: BTreeMap<String, String>) -> Result<(), StoreError> {
    let words = words(sql).replace('$', "?");
    let (mut allowed, mut refused) = (None::<AllowedScan>, String::new());
    for (table, what) in scans {
        if SMALL.contains(&table.as_str()) {
            continue;
        }
        match find_allowed(&table, &words) {
            Some(found) => allowed = allowed.into_iter().chain([found]).max_by_key(|allowed| allowed.most),
            None => refused = format!("{refused} {what}"),
        }
    }
    if !refused.is_empty() {
        return Err(StoreError::Unavailable(format!("a statement reads all of{refused} (store/plan.rs): {words}")));
    }
    checked().insert(sql.to_owned(), allowed);
    Ok(())
}

fn find_allowed(of: &str, words: &str) -> Option<AllowedScan> {
    ALLOWED.iter().find_map(|AllowedScans { why, most, of: scans }| {
        let (table, _) = scans.iter().find(|(table, statement)| *table == of && words.contains(statement))?;
        Some(AllowedScan { table, why, most: *most })
    })
}

/// The statement in one line.
pub(super) fn words(sql: &str) -> String {
    sql.split_whitespace().collect::<Vec<_>>().join(" ")
}
