//! What a statement walks, by SQLite's own program for it: SQLite plans without looking at rows or values, so few rows hide nothing.
//!
//! With the variable [`STEPS_FILE`] set they also write down what each statement took, for tests that count work.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::{LazyLock, Mutex, PoisonError};

use rusqlite::{Connection, Statement, StatementStatus};

use crate::store::plan::{self, AllowedScan, OF_SMALL};
use crate::store::sql::Failure;

/// Names a file that gets a line for each statement that ran: the steps of SQLite's virtual machine, a tab, and the statement.
const STEPS_FILE: &str = "UNIONHALL_TEST_STEPS";

/// Refuses a statement whose plan reads more than it may.
pub(super) fn check(connection: &Connection, sql: &str) -> Result<(), Failure> {
    if plan::is_checked(sql) {
        Ok(())
    } else {
        plan::judge(sql, scans(connection, sql)?).map_err(|error| Failure::Unusable(error.to_string()))
    }
}

/// Refuses a statement that read more rows than it may, and writes down what it took.
pub(super) fn count(statement: &Statement<'_>, sql: &str) -> Result<(), Failure> {
    static FILE: LazyLock<Option<Mutex<File>>> = LazyLock::new(|| {
        let path = std::env::var_os(STEPS_FILE)?;
        OpenOptions::new().create(true).append(true).open(path).ok().map(Mutex::new)
    });
    let steps = statement.reset_status(StatementStatus::VmStep);
    let scanned = statement.reset_status(StatementStatus::FullscanStep);
    if let Some(file) = &*FILE {
        let words = plan::words(sql);
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.write_all(format!("{steps}\t{words}\n").as_bytes());
        written.map_err(|error| Failure::Unusable(format!("{STEPS_FILE}: {error}")))?;
    }
    match plan::allowed(sql).filter(|allowed| scanned > allowed.most.saturating_add(OF_SMALL)) {
        Some(AllowedScan { table, why, .. }) => {
            let told = format!("SQLite: a statement read {scanned} rows of {table}, of which it reads {why}: {sql}");
            Err(Failure::Unusable(told))
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
    use crate::store::StoreError;
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
        assert!(told.contains("reads all of idempotency_keys (store/plan.rs)"), "{told}");
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
