//! Who was erased since a backup was made, as the logs of erasures tell.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::is_there;
use crate::domain::email::EmailAddress;
use crate::domain::secret::Secret;
use crate::domain::secret::mark::AddressMarker;
use crate::domain::time::Timestamp;
use crate::membership::erasures::ErasureLog;
use crate::store::sqlite::SqliteSnapshot;

/// An erasure is written down before it is done: one that was begun before the backup may have ended after it.
const ERASING_TAKES: Duration = Duration::from_secs(60);

/// What is known of erasures: the log in the data folder, and one that was given.
pub(super) struct ErasureLogs {
    pub here: ErasureLog,
    pub was_here: bool,
    pub given: Option<ErasureLog>,
}

impl ErasureLogs {
    pub(super) fn find(data: &Path, given: Option<&Path>) -> anyhow::Result<Self> {
        let here = ErasureLog::beside(data);
        let was_here = is_there(here.path())?;
        let given = given.map(ErasureLog::at);
        if let Some(log) = &given {
            let path = log.path().display();
            let known = std::fs::metadata(log.path()).and_then(|_| log.since(Timestamp::from_millis(i64::MIN)));
            let known = known.with_context(|| format!("cannot read the log of erasures {path}"))?;
            ensure!(!known.is_empty(), "{path} is no log of erasures: no line of it names one; leave --erasures out");
        }
        Ok(Self { here, was_here, given })
    }

    /// The marks of all who were erased at that time or later.
    fn since(&self, time: Timestamp) -> anyhow::Result<HashSet<String>> {
        let mut marks = HashSet::new();
        for log in [Some(&self.here), self.given.as_ref()].into_iter().flatten() {
            let read = log.since(time).with_context(|| format!("cannot read {}", log.path().display()));
            marks.extend(read?);
        }
        Ok(marks)
    }

    /// What was given is kept in the data folder from now on.
    pub(super) fn keep(&self) -> anyhow::Result<()> {
        let Some(given) = &self.given else { return Ok(()) };
        self.here.merge(given).with_context(|| format!("cannot write {}", self.here.path().display()))
    }
}

/// The addresses in the records that were erased since: as many as the log has marks at the most.
pub(super) fn erased_since(
    records: &SqliteSnapshot,
    logs: &ErasureLogs,
    secret: &Secret,
    made_at: Timestamp,
) -> anyhow::Result<Vec<String>> {
    let (marks, marker) = (logs.since(made_at.minus(ERASING_TAKES))?, AddressMarker::new(secret));
    let mut erased = Vec::new();
    if !marks.is_empty() {
        records.each_address(&mut |text| {
            // What cannot be read is no address any more.
            if EmailAddress::kept(text).is_ok_and(|email| marks.contains(&marker.address(&email))) {
                erased.push(text.to_owned());
            }
        })?;
    }
    Ok(erased)
}
