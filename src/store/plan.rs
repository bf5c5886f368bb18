//! Checks the plan of every statement: none may read a whole table that grows, unless `ALLOWED` says why. On SQLite a debug build
//! checks before a statement first runs (`sqlite/plan.rs`); on PostgreSQL a test checks all statements that ran
//! (`postgres/plan.rs`).

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::StoreError;

/// Tables that have few rows however many people there are: one row, a row per day and source, what operators and partners create
/// by hand, or what a negotiator may create for a campaign.
const SMALL: [&str; 18] = [
    "api_keys",
    "campaign_mailings",
    "campaign_offer_drafts",
    "campaign_pace",
    "campaign_rounds",
    "campaigns",
    "demand",
    "installation",
    "operator_sessions",
    "operators",
    "partners",
    "payout_batches",
    "reward_totals",
    "rollup",
    "source_days",
    "sqlite_sequence",
    "unionhall_schema",
    "webhook_endpoints",
];

/// A statement that may read a table from one end.
pub(super) struct AllowedScan {
    /// A part of the statement, with single spaces and parameters as SQLite writes them.
    statement: &'static str,
    pub(super) table: &'static str,
    pub(super) why: &'static str,
    /// The most rows that it may read, in a debug build where there are more.
    pub(super) most: i32,
}

const ALLOWED: &[AllowedScan] = &[
    AllowedScan {
        statement: "SELECT EXISTS (SELECT 1 FROM member_changes)",
        table: "member_changes",
        why: "looks for one row",
        most: 1,
    },
    AllowedScan {
        statement: "SELECT EXISTS (SELECT 1 FROM member_changes)",
        table: "account_changes",
        why: "looks for one row",
        most: 1,
    },
    AllowedScan {
        statement: "FROM member_changes ORDER BY id LIMIT",
        table: "member_changes",
        why: "the oldest, as many as a step takes",
        most: 1000,
    },
    AllowedScan {
        statement: "FROM account_changes ORDER BY id LIMIT",
        table: "account_changes",
        why: "the oldest, as many as a step takes",
        most: 1000,
    },
    AllowedScan {
        statement: "FROM member_changes WHERE change = 1 GROUP BY key_id",
        table: "member_changes",
        why: "what happened since the last roll-up, a minute ago",
        most: 100000,
    },
    AllowedScan {
        statement: "UPDATE member_changes SET referrer_id = NULL",
        table: "member_changes",
        why: "what happened since the last roll-up, a minute ago",
        most: 100000,
    },
    AllowedScan { statement: "FROM sign_ups ORDER BY id DESC LIMIT 1", table: "sign_ups", why: "the newest", most: 1 },
    AllowedScan { statement: "FROM people ORDER BY id DESC LIMIT 1", table: "people", why: "the newest", most: 1 },
    AllowedScan {
        statement: "SELECT max(id) FROM campaign_history",
        table: "campaign_history",
        why: "the newest",
        most: 1,
    },
    AllowedScan { statement: "SELECT max(id) FROM demand_sheets", table: "demand_sheets", why: "the newest", most: 1 },
    AllowedScan {
        statement: "FROM idempotency_keys ORDER BY id LIMIT",
        table: "idempotency_keys",
        why: "the oldest, as many as a step takes",
        most: 1000,
    },
    AllowedScan {
        statement: "FROM inbox ORDER BY id LIMIT",
        table: "inbox",
        why: "the oldest, as many as a step takes",
        most: 1000,
    },
    AllowedScan {
        statement: "SELECT max(batch_id) FROM payouts WHERE state = 'out'",
        table: "payouts",
        why: "the newest",
        most: 1,
    },
    AllowedScan { statement: "FROM regroupings ORDER BY id LIMIT 1", table: "regroupings", why: "the oldest", most: 1 },
    AllowedScan {
        statement: "FROM requalifications ORDER BY person_id LIMIT 1",
        table: "requalifications",
        why: "the first",
        most: 1,
    },
    AllowedScan {
        statement: "SELECT count(*) AS mails, min(created_at) AS oldest",
        table: "outbox",
        why: "what is counted, up to a bound",
        most: 10000,
    },
    AllowedScan {
        statement: "WHERE held_at IS NOT NULL ORDER BY held_at LIMIT ?1) o LEFT JOIN sign_ups",
        table: "outbox",
        why: "what is counted, up to a bound",
        most: 10000,
    },
    AllowedScan {
        statement: "FROM outbox o ORDER BY o.id LIMIT 10000",
        table: "outbox",
        why: "what `mail list` shows",
        most: 10000,
    },
    AllowedScan {
        statement: "WHERE o.held_at IS NOT NULL AND NOT o.held_suspended AND o.leased_by IS NULL",
        table: "outbox",
        why: "all that is held, for it is released or deleted",
        most: WHOLE,
    },
    AllowedScan {
        statement: "WHERE o.held_at IS NOT NULL AND NOT o.held_suspended AND o.leased_by IS NULL",
        table: "sign_ups",
        why: "all that is held, for it is released or deleted",
        most: WHOLE,
    },
    AllowedScan {
        statement: "AND s.key_id = ?1 AND o.leased_by IS NULL",
        table: "sign_ups",
        why: "everything once, when an operator decides on a key's mail",
        most: WHOLE,
    },
    AllowedScan {
        statement: "DELETE FROM campaign_mails WHERE id IN (SELECT m.id FROM campaign_mailings g",
        table: "campaign_mails",
        why: "those of mailings that are over, 500 at once; PostgreSQL looks for each where there are many more",
        most: 50_000,
    },
    AllowedScan {
        statement: "FROM outbox WHERE campaign_mail_id IS NOT NULL AND given_up_at IS NULL AND held_at IS NULL LIMIT",
        table: "outbox",
        why: "what is counted, up to a bound",
        most: 1000,
    },
    AllowedScan {
        statement: "AND s.key_id = ?1 AND o.leased_by IS NULL",
        table: "outbox",
        why: "everything once, when an operator decides on a key's mail",
        most: WHOLE,
    },
    AllowedScan {
        statement: "UPDATE outbox SET leased_until = 0, leased_by = NULL WHERE leased_by = ?1",
        table: "outbox",
        why: "everything once, when a worker stops",
        most: WHOLE,
    },
    AllowedScan {
        statement: "WHERE leased_by = ?1 AND settled_at IS NULL",
        table: "webhook_deliveries",
        why: "what is not settled, once, when a worker stops",
        most: WHOLE,
    },
    AllowedScan {
        statement: "UPDATE outbox SET held_at = ?1 WHERE held_at IS NULL",
        table: "outbox",
        why: "everything once, after a restore",
        most: WHOLE,
    },
    AllowedScan {
        statement: "UPDATE outbox SET held_suspended = FALSE WHERE held_suspended",
        table: "outbox",
        why: "everything once, after a restore",
        most: WHOLE,
    },
    AllowedScan {
        statement: "WHERE leased_until <> 0",
        table: "outbox",
        why: "everything once, after a restore",
        most: WHOLE,
    },
    AllowedScan {
        statement: "WHERE leased_until <> 0",
        table: "webhook_deliveries",
        why: "everything once, after a restore",
        most: WHOLE,
    },
    AllowedScan {
        statement: "UPDATE partner_events SET position = NULL WHERE position IS NOT NULL",
        table: "partner_events",
        why: "everything once, after a restore",
        most: WHOLE,
    },
    AllowedScan {
        statement: "DELETE FROM sign_ins",
        table: "sign_ins",
        why: "everything once, after a restore",
        most: WHOLE,
    },
    AllowedScan {
        statement: "FROM referrers WHERE members > 0 ORDER BY members DESC, person_id LIMIT",
        table: "referrers",
        why: "as many as are shown",
        most: 1000,
    },
    AllowedScan {
        statement: "NOT part.hold_checked AND part.accepted_at IS NOT NULL LIMIT",
        table: "participations",
        why: "what is counted, up to a bound",
        most: 100_000,
    },
];

/// Rows of [`SMALL`] tables that a statement may read in addition.
pub(super) const OF_SMALL: i32 = 1000;

/// Any number of rows.
const WHOLE: i32 = i32::MAX;

/// The statements whose plans were checked, and what each may read.
static CHECKED: LazyLock<Mutex<HashMap<String, Option<&'static AllowedScan>>>> = LazyLock::new(Mutex::default);

fn checked() -> MutexGuard<'static, HashMap<String, Option<&'static AllowedScan>>> {
    CHECKED.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn is_checked(sql: &str) -> bool {
    checked().contains_key(sql)
}

/// What a checked statement may read.
pub(super) fn allowed(sql: &str) -> Option<&'static AllowedScan> {
    checked().get(sql).copied().flatten()
}

/// Refuses a statement that scans more than it may. `scans` has, for each table, what is scanned: the table itself or an index.
pub fn judge(sql: &str, scans: BTreeMap<String, String>) -> Result<(), StoreError> {
    let words = words(sql).replace('$', "?");
    let (mut allowed, mut refused) = (None::<&AllowedScan>, String::new());
    for (table, what) in scans {
        if SMALL.contains(&table.as_str()) {
            continue;
        }
        match ALLOWED.iter().find(|allowed| allowed.table == table && words.contains(allowed.statement)) {
            Some(found) => allowed = allowed.into_iter().chain([found]).max_by_key(|allowed| allowed.most),
            None => {
                let _infallible = write!(refused, " {what}");
            }
        }
    }
    if !refused.is_empty() {
        let told = format!("a statement reads all of{refused} (store/plan.rs): {words}");
        return Err(StoreError::Unavailable(told));
    }
    checked().insert(sql.to_owned(), allowed);
    Ok(())
}

/// The statement in one line.
pub(super) fn words(sql: &str) -> String {
    sql.split_whitespace().collect::<Vec<_>>().join(" ")
}
