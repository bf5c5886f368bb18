//! Who was erased since a copy of the records was made, as the logs of erasures tell.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};

use super::is_there;
use crate::domain::email::EmailAddress;
use crate::domain::secret::Secret;
use crate::domain::secret::mark::AddressMarker;
use crate::domain::time::Timestamp;
use crate::people::erasures::ErasureLog;

/// An erasure is written down before it is done: one that was begun before the backup may have ended after it.
const ERASING_TAKES: Duration = Duration::from_secs(60);

/// Whether someone who was erased is in the records again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CameBack {
    Yes,
    /// They were erased and came again by themselves within an hour, or were in the copy.
    Perhaps,
    No,
}

const HOUR: Duration = Duration::from_secs(3600);

/// What is known of erasures: the log in the data folder, and those that were given.
pub(super) struct ErasureLogs {
    pub here: ErasureLog,
    pub was_here: bool,
    pub given: Vec<ErasureLog>,
}

impl ErasureLogs {
    pub(super) fn find(data: &Path, given: &[PathBuf]) -> anyhow::Result<Self> {
        let here = ErasureLog::beside(data);
        let was_here = is_there(here.path())?;
        let given: Vec<_> = given.iter().map(|path| ErasureLog::at(path)).collect();
        for log in &given {
            let path = log.path().display();
            ensure!(
                is_there(log.path())?,
                "there is no log of erasures at {path}; give the right path, or leave out --erasures if nobody was ever erased: \
                 then there is none"
            );
            let is_one = log.is_one().with_context(|| format!("cannot read the log of erasures {path}"))?;
            ensure!(is_one, "{path} is not a log of erasures: no line names one; leave out --erasures");
        }
        Ok(Self { here, was_here, given })
    }

    /// When each mark was last erased: the end of the hour.
    fn latest(&self) -> anyhow::Result<HashMap<String, Timestamp>> {
        let mut latest = HashMap::new();
        for log in [&self.here].into_iter().chain(&self.given) {
            let read = log.all().with_context(|| format!("cannot read {}", log.path().display()));
            for (at, mark) in read? {
                let known = latest.entry(mark).or_insert(at);
                *known = at.max(*known);
            }
        }
        Ok(latest)
    }

    /// What was given is kept in the data folder from now on.
    pub(super) fn keep(&self) -> anyhow::Result<()> {
        for given in &self.given {
            self.here.merge(given).with_context(|| format!("cannot write {}", self.here.path().display()))?;
        }
        Ok(())
    }

    /// Tells an address of someone who was erased after the copy was made from others.
    pub(super) fn erased_since(
        &self,
        taken_at: Timestamp,
        secret: &Secret,
    ) -> anyhow::Result<impl Fn(&str) -> bool + use<>> {
        let (latest, marker, since) = (self.latest()?, AddressMarker::new(secret), taken_at.minus(ERASING_TAKES));
        // What cannot be read is no address any more.
        let erased = move |email: EmailAddress| hour_of(&latest, &marker, &email).is_some_and(|hour| hour >= since);
        Ok(move |text: &str| EmailAddress::kept(text).is_ok_and(&erased))
    }

    /// What the logs say of somebody in records that were restored at a time nobody knows: their row is older than their erasure, so
    /// that they can only have come back with a copy.
    pub(super) fn judge(
        &self,
        secret: &Secret,
    ) -> anyhow::Result<impl Fn(&EmailAddress, Timestamp) -> CameBack + use<>> {
        let (latest, marker) = (self.latest()?, AddressMarker::new(secret));
        Ok(move |email: &EmailAddress, created_at: Timestamp| match hour_of(&latest, &marker, email) {
            // The log tells the hour alone, by its end.
            Some(hour) if created_at <= hour.minus(HOUR) => CameBack::Yes,
            Some(hour) if created_at <= hour => CameBack::Perhaps,
            _ => CameBack::No,
        })
    }

    /// Whether anything is known at all.
    pub(super) fn were_found(&self) -> bool {
        self.was_here || !self.given.is_empty()
    }
}

/// When an address was last erased, by the marks that any generation of the secret makes of it.
fn hour_of(latest: &HashMap<String, Timestamp>, marker: &AddressMarker, email: &EmailAddress) -> Option<Timestamp> {
    let others = marker.other_marks(email);
    let marks = [marker.marks(email)].into_iter().chain(others);
    marks.filter_map(|marks| latest.get(&marks.address).copied()).max()
}
