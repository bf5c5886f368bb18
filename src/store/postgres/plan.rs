//! Debug builds write down which statements they run, for the test that looks at their plans on filled tables
//! (`tests/it/growth/plans.rs`): PostgreSQL plans by the rows that there are.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::store::plan::words;

/// Names a file that gets a line for each statement.
const STATEMENTS_FILE: &str = "UNIONHALL_TEST_STATEMENTS";

/// The file, and the statements that are in it.
struct Written {
    file: File,
    known: HashSet<&'static str>,
}

pub(super) fn record(sql: &'static str) {
    static WRITTEN: LazyLock<Option<Mutex<Written>>> = LazyLock::new(|| {
        let file = OpenOptions::new().create(true).append(true).open(std::env::var_os(STATEMENTS_FILE)?);
        Some(Mutex::new(Written { file: file.expect(STATEMENTS_FILE), known: HashSet::new() }))
    });
    let Some(written) = &*WRITTEN else { return };
    let Written { file, known } = &mut *written.lock().unwrap_or_else(PoisonError::into_inner);
    if known.insert(sql) {
        file.write_all(format!("{}\n", words(sql)).as_bytes()).expect(STATEMENTS_FILE);
    }
}
