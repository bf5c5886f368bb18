//! Who was erased and which keys were revoked since a copy of the records was made, as the logs of erasures tell.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};

use super::gap::erase_command;
use super::is_there;
use crate::cli::audit::act;
use crate::cli::print_line;
use crate::domain::api_key::{KeyId, KeyRecord};
use crate::domain::email::EmailAddress;
use crate::domain::person::Waiver;
use crate::domain::secret::Secret;
use crate::domain::secret::mark::{AddressMarker, generation_of};
use crate::domain::time::Timestamp;
use crate::keys::records::{ListKeys, RevokeKey};
use crate::operator::Operator;
use crate::people::erasures::ErasureLog;
use crate::people::records::ListPeopleAfter;

/// An erasure is written down before it is done: one that was begun before the backup may have ended after it.
const ERASING_TAKES: Duration = Duration::from_secs(60);

/// Whether someone who was erased is in the records again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CameBack {
    Yes,
    /// They were erased and came again by themselves within an hour, or were in the copy.
    Perhaps,
    No,
}

const HOUR: Duration = Duration::from_secs(3600);

/// People that are read at a time.
const PAGE: u32 = 1000;

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
                "there is no log of erasures at {path}; give the right path, or leave out --erasures if no one was ever erased: \
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

    /// When each key was revoked.
    fn revoked_keys(&self) -> anyhow::Result<HashMap<KeyId, Timestamp>> {
        let mut keys = HashMap::new();
        for log in [&self.here].into_iter().chain(&self.given) {
            let read = log.revoked_keys().with_context(|| format!("cannot read {}", log.path().display()))?;
            keys.extend(read.into_iter().map(|(at, key)| (key, at)));
        }
        Ok(keys)
    }

    /// What the logs say of somebody in records that were restored: their row is older than their erasure, so that they can only have
    /// come back with the copy. An erasure from before the copy was made, if that time is known, tells nothing.
    fn judge(
        &self,
        secret: &Secret,
        taken_at: Option<Timestamp>,
    ) -> anyhow::Result<impl Fn(&EmailAddress, Timestamp) -> CameBack + use<>> {
        let (latest, marker) = (self.latest()?, AddressMarker::new(secret));
        let since = taken_at.map(|at| at.minus(ERASING_TAKES));
        Ok(move |email: &EmailAddress, created_at: Timestamp| match hour_of(&latest, &marker, email) {
            Some(hour) if since.is_some_and(|since| hour < since) => CameBack::No,
            // The log tells the hour alone, by its end.
            Some(hour) if created_at <= hour.minus(HOUR) => CameBack::Yes,
            Some(hour) if created_at <= hour => CameBack::Perhaps,
            _ => CameBack::No,
        })
    }

    /// Erases and revokes again, before the records can be served: a person who was erased is never seen again. `secret` is none where
    /// there are no people yet, `taken_at` is when the copy was made, if that is known, `newest` its newest record otherwise, and `command`
    /// is what does so. Interrupted, it is done again.
    pub(super) async fn repeat(
        &self,
        operator: &Operator,
        secret: Option<&Secret>,
        taken_at: Option<Timestamp>,
        newest: Timestamp,
        command: &'static str,
        now: Timestamp,
    ) -> anyhow::Result<Again> {
        let mut again = Again::default();
        if let Some(secret) = secret {
            let audited = operator.audited(act(command, String::new(), now));
            let people = audited.people(secret, self.here.clone());
            let judge = self.judge(secret, taken_at)?;
            again.unreadable = self.unreadable(secret, taken_at.unwrap_or(newest))?;
            let mut after = 0;
            loop {
                let page = operator.ask(ListPeopleAfter { id: after, state: None, most: PAGE }).await?;
                let Some(last) = page.last() else { break };
                after = last.id;
                for person in &page {
                    // What cannot be read is no address any more.
                    let Ok(email) = EmailAddress::kept(&person.email) else { continue };
                    match judge(&email, person.created_at) {
                        CameBack::No => {}
                        CameBack::Perhaps => again.perhaps.push(person.email.clone()),
                        CameBack::Yes => {
                            // They were paid then, or gave up their rewards themselves.
                            let erased = people.erase(&email, Some(Waiver::of_all(command)), now).await?;
                            again.erased += u64::from(erased.is_some());
                        }
                    }
                }
            }
        }
        let revoked = self.revoked_keys()?;
        for (key, _) in operator.ask(ListKeys).await? {
            if let Some(at) = revoked.get(&key.id).filter(|_| key.revoked_at.is_none()) {
                let act = act(command, format!("key {}", key.id), now);
                operator.audited(act).run(RevokeKey(key.id, *at)).await?;
                again.keys.push(key);
            }
        }
        Ok(again)
    }

    /// How many people were erased after a time by marks that this secret does not make any more, for each of its generations.
    fn unreadable(&self, secret: &Secret, after: Timestamp) -> anyhow::Result<BTreeMap<u32, u64>> {
        let mut unreadable = BTreeMap::new();
        let generations = secret.generations();
        for (mark, at) in self.latest()? {
            if let Some(number) = generation_of(&mark).filter(|_| at >= after.minus(ERASING_TAKES))
                && generations.all().iter().all(|generation| generation.number != number)
            {
                *unreadable.entry(number).or_insert(0) += 1;
            }
        }
        Ok(unreadable)
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

/// What was done again.
#[derive(Default)]
pub(super) struct Again {
    erased: u64,
    /// Those whom the operator decides about.
    perhaps: Vec<String>,
    /// Those whom nobody can tell from others, for each generation of the secret that is not here.
    unreadable: BTreeMap<u32, u64>,
    /// The keys that were revoked.
    pub keys: Vec<KeyRecord>,
}

impl Again {
    /// Who was erased; `none` says that nobody was.
    pub(super) fn report(&self, none: &str, flags: &str) -> anyhow::Result<()> {
        print_line(&match self.erased {
            0 => none.to_owned(),
            1 => "1 person was erased since, and was erased again.".to_owned(),
            count => format!("{count} people were erased since, and were erased again."),
        })?;
        if !self.perhaps.is_empty() {
            print_line(
                "ERASED AND IN THESE RECORDS, BUT PERHAPS BECAUSE THEY CAME AGAIN within the hour. If not, erase them once more:",
            )?;
        }
        self.perhaps.iter().try_for_each(|address| print_line(&erase_command(flags, address)))?;
        self.unreadable.iter().try_for_each(|(generation, count)| {
            print_line(&format!(
                "THE LOG OF ERASURES NAMES {} by generation {generation} of the secret, which is not here: no one can tell whether they are in \
                 these records.",
                if *count == 1 { "1 PERSON".to_owned() } else { format!("{count} PEOPLE") }
            ))
        })
    }
}
