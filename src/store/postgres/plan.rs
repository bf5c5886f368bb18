//! Debug builds write down which statements they run, for the test that looks at their plans on filled tables
//! (`tests/it/growth/plans.rs`): PostgreSQL plans by the rows that there are.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::store::plan::words;

/// Names a file that gets a line for each statement.
const STATEMENTS_FILE: &str = "UNIONHALL_TEST_STATEMENTS";

pub(super) fn record(sql: &'static str) {
    static WRITTEN: LazyLock<Option<Mutex<(File, HashSet<&'static str>)>>> = LazyLock::new(|| {
        let file = OpenOptions::new().create(true).append(true).open(std::env::var_os(STATEMENTS_FILE)?);
        Some(Mutex::new((file.expect(STATEMENTS_FILE), HashSet::new())))
    });
    let Some(written) = &*WRITTEN else { return };
    let (file, known) = &mut *written.lock().unwrap_or_else(PoisonError::into_inner);
    if known.insert(sql) {
        file.write_all(format!("{}\n", words(sql)).as_bytes()).expect(STATEMENTS_FILE);
    }
}
