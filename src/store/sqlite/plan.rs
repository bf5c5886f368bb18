//! Debug builds hold every statement to its plan: none reads a whole table that grows, unless [`ALLOWED`] says why. SQLite plans
//! without looking at rows or values, so whatever test runs a statement first, on however few rows, finds a missing index.
//!
//! With the variable [`STEPS_FILE`] set they also write down what each statement took, for tests that count work.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::{LazyLock, Mutex, PoisonError};

use rusqlite::{Connection, Statement, StatementStatus};

use crate::store::StoreError;
use crate::store::sql::Failure;

/// Names a file that gets a line for each statement that ran: the steps of SQLite's virtual machine, a tab, and the statement.
const STEPS_FILE: &str = "UNIONHALL_TEST_STEPS";

/// Tables of few rows, however many people there are: one row, a row a day for each source, or what operators and partners make by
/// hand.
const SMALL: [&str; 15] = [
    "api_keys",
    "campaign_mailings",
    "campaign_pace",
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
    "webhook_endpoints",
];

/// A statement that may read a table from one end.
struct AllowedScan {
    /// A part of the statement, with single spaces.
    statement: &'static str,
    table: &'static str,
    why: &'static str,
    /// Rows that it reads at the most, in a debug build where there are more.
    most: i32,
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

/// Rows of [`SMALL`] tables that a statement may read besides.
const OF_SMALL: i32 = 1000;

/// However many there are.
const WHOLE: i32 = i32::MAX;

/// The statements whose plans were looked at, and what each may read.
static CHECKED: LazyLock<Mutex<HashMap<String, Option<&'static AllowedScan>>>> = LazyLock::new(Mutex::default);

/// Refuses a statement whose plan reads more than it may.
pub(super) fn check(connection: &Connection, sql: &str) -> Result<(), Failure> {
    if CHECKED.lock().unwrap_or_else(PoisonError::into_inner).contains_key(sql) {
        return Ok(());
    }
    let words = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut allowed, mut refused) = (None::<&AllowedScan>, String::new());
    for (table, what) in scans(connection, sql)? {
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
        let told = format!("SQLite: a statement reads all of{refused} (store/sqlite/plan.rs): {words}");
        return Err(Failure::Refused(StoreError::Unavailable(told)));
    }
    CHECKED.lock().unwrap_or_else(PoisonError::into_inner).insert(sql.to_owned(), allowed);
    Ok(())
}

/// Refuses a statement that read more rows than [`ALLOWED`] says, and writes down what it took.
pub(super) fn count(statement: &Statement<'_>, sql: &str) -> Result<(), Failure> {
    static FILE: LazyLock<Option<Mutex<File>>> = LazyLock::new(|| {
        let path = std::env::var_os(STEPS_FILE)?;
        OpenOptions::new().create(true).append(true).open(path).ok().map(Mutex::new)
    });
    let steps = statement.reset_status(StatementStatus::VmStep);
    let scanned = statement.reset_status(StatementStatus::FullscanStep);
    if let Some(file) = &*FILE {
        let words = sql.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.write_all(format!("{steps}\t{words}\n").as_bytes());
        written.map_err(|error| StoreError::Unavailable(format!("{STEPS_FILE}: {error}"))).map_err(Failure::Refused)?;
    }
    let allowed = CHECKED.lock().unwrap_or_else(PoisonError::into_inner).get(sql).copied().flatten();
    match allowed.filter(|allowed| scanned > allowed.most.saturating_add(OF_SMALL)) {
        Some(AllowedScan { table, why, .. }) => {
            let told = format!("SQLite: a statement read {scanned} rows of {table}, of which it reads {why}: {sql}");
            Err(Failure::Refused(StoreError::Unavailable(told)))
        }
        None => Ok(()),
    }
}

/// The tables that the statement walks from one end to the other, each with what is walked: itself or an index. SQLite's own
/// program for the statement says so (`EXPLAIN`), that of triggers and foreign keys included.
fn scans(connection: &Connection, sql: &str) -> rusqlite::Result<BTreeMap<String, String>> {
    let mut trees =
        connection.prepare_cached("SELECT rootpage, tbl_name, name FROM sqlite_schema WHERE rootpage > 0")?;
    let trees = trees.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    let trees = trees.collect::<rusqlite::Result<HashMap<i64, (String, String)>>>()?;
    let mut program = connection.prepare(&format!("EXPLAIN {sql}"))?;
    let mut steps = program.raw_query();
    let (mut cursors, mut found) = (HashMap::<i64, Cursor<'_>>::new(), BTreeMap::new());
    while let Some(step) = steps.next()? {
        // A trigger is a program of its own.
        if step.get::<_, i64>("addr")? == 0 {
            found.extend(cursors.drain().filter_map(|(_, cursor)| cursor.scanned()));
        }
        let (opcode, number): (String, i64) = (step.get("opcode")?, step.get("p1")?);
        if matches!(opcode.as_str(), "OpenRead" | "OpenWrite" | "ReopenIdx") {
            let tree = trees.get(&step.get("p2")?);
            // The same again is the same; a number may also be used anew for another tree.
            if cursors.get(&number).is_none_or(|cursor| Some(cursor.tree) != tree) {
                let new = tree.map(|tree| Cursor { tree, starts_at_end: false, moves: false, is_bounded: false });
                found.extend(cursors.remove(&number).and_then(Cursor::scanned));
                cursors.extend(new.map(|cursor| (number, cursor)));
            }
            continue;
        }
        let Some(cursor) = cursors.get_mut(&number) else { continue };
        match opcode.as_str() {
            "Rewind" | "Last" => cursor.starts_at_end = true,
            "Next" | "Prev" => cursor.moves = true,
            // A range without a lower end.
            "IdxGT" | "IdxGE" | "IdxLT" | "IdxLE" => cursor.is_bounded = true,
            "Count" => (cursor.starts_at_end, cursor.moves) = (true, true),
            _ => {}
        }
    }
    found.extend(cursors.into_values().filter_map(Cursor::scanned));
    Ok(found)
}

/// What a cursor of a program is open on, and what is done with it.
struct Cursor<'t> {
    tree: &'t (String, String),
    starts_at_end: bool,
    moves: bool,
    is_bounded: bool,
}

impl Cursor<'_> {
    /// The table and what is walked of it, if all of it is.
    fn scanned(self) -> Option<(String, String)> {
        (self.starts_at_end && self.moves && !self.is_bounded).then(|| self.tree.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::migration::MIGRATIONS;

    fn records() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        crate::store::sqlite::set_up(&connection).unwrap();
        for step in MIGRATIONS {
            connection.execute_batch(step.sqlite).unwrap();
        }
        connection
    }

    fn refusal(connection: &Connection, sql: &str) -> Option<String> {
        check(connection, sql).err().map(|refused| StoreError::from(refused).to_string())
    }

    /// As it stood before it was found: no index serves a pair that is looked for in a list.
    #[test]
    fn a_confirmation_that_reads_every_idempotency_key_is_refused() {
        let by_pair = "WITH job AS (SELECT ?1 AS id, ?2 AS now)
                       SELECT k.key FROM idempotency_keys k WHERE (k.sign_up_id, k.confirmed_at) IN (SELECT id, now FROM job)";
        let joined = "WITH job AS (SELECT ?1 AS id, ?2 AS now)
                      SELECT k.key FROM job JOIN idempotency_keys k ON k.sign_up_id = job.id AND k.confirmed_at = job.now";
        let told = refusal(&records(), by_pair).unwrap();
        assert!(told.contains("reads all of idempotency_keys (store/sqlite/plan.rs)"), "{told}");
        assert_eq!(refusal(&records(), joined), None);
    }

    #[test]
    fn a_list_without_its_index_is_refused_and_so_is_what_a_trigger_or_a_reference_reads() {
        let connection = records();
        let list = "SELECT id FROM partner_events WHERE partner_id = ?1 ORDER BY position LIMIT ?2";
        assert_eq!(refusal(&connection, list), None);
        connection
            .execute_batch(
                "DROP INDEX partner_events_by_time; DROP INDEX partner_events_by_key;
             DROP INDEX partner_events_by_position; DROP INDEX partner_events_to_number",
            )
            .unwrap();
        assert!(refusal(&connection, &format!("{list} ")).unwrap().contains("all of partner_events"));
        // A person who is deleted is looked for in every table that refers to them.
        assert_eq!(refusal(&connection, "DELETE FROM people WHERE id = ?1"), None);
        connection.execute_batch("DROP INDEX campaign_mails_by_person").unwrap();
        assert!(refusal(&connection, "DELETE FROM people WHERE id = ?1 ").unwrap().contains("all of campaign_mails"));
        connection
            .execute_batch(
                "DROP INDEX sign_ups_confirmed; DROP INDEX sign_ups_by_person; DROP INDEX one_pending_sign_up",
            )
            .unwrap();
        let join = "UPDATE people SET state = 'member' WHERE id = ?1";
        assert!(refusal(&connection, join).unwrap().contains("all of sign_ups"), "by the trigger person_joined");
    }

    #[test]
    fn what_may_be_read_whole_has_a_bound() {
        let connection = records();
        let oldest = "SELECT id FROM (SELECT id FROM inbox ORDER BY id LIMIT ?1) oldest";
        assert_eq!(refusal(&connection, oldest), None);
        let add = "INSERT INTO inbox (message_id, recipient, sender, subject, text, html, received_at) VALUES (?1, '', '', '', '', '', 1)";
        for n in 0..2002 {
            connection.execute(add, [n.to_string()]).unwrap();
        }
        for (most, is_refused) in [(1900, false), (3000, true)] {
            let mut statement = connection.prepare_cached(oldest).unwrap();
            let ids: Vec<i64> = statement.query_map([most], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
            assert_eq!(count(&statement, oldest).is_err(), is_refused, "{} rows", ids.len());
        }
    }
}
