//! Everything about a whole person: their own page, signing in, export, leaving, erasure and retention.
//!
//! One code for the operator's commands and the member's own page. It must never know HTTP, MCP or a command line.

pub mod choices;
pub mod erasures;
pub mod export;
pub mod forget;
pub mod leave;
pub mod own_page;
pub mod records;
pub mod retention;
pub mod sign_in;
pub mod test_data;

use tokio::time::Instant;

use crate::domain::email::EmailAddress;
use crate::domain::figure::money;
use crate::domain::person::{ActivityPlace, Erased, Leaving, Lifted, PersonDetails, RewardsDue, Waiver};
use crate::domain::secret::mark::AddressMarker;
use crate::domain::time::Timestamp;
use crate::membership::tombstones;
use crate::people::erasures::ErasureLog;
use crate::people::leave::{Erase, Leave, Unsuppress};
use crate::people::records::{FindPerson, FindPersonBriefly, ListActivity, NamePerson};
use crate::rewards::new_account;
use crate::rewards::standing::FindRewardHistory;
use crate::store::{Store, StoreError};

#[derive(Debug, thiserror::Error)]
pub enum NotErased {
    #[error("nothing was erased: the list of erasures beside the database cannot be written: {0}")]
    Log(std::io::Error),
    /// Rewards must be paid first, or given up.
    #[error("nothing was erased: {amount} in rewards is due to this person", amount = money(.0.cents))]
    RewardsDue(RewardsDue),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Ends a membership at the person's request.
pub async fn leave(store: &Store, email: &EmailAddress, now: Timestamp) -> Result<Leaving, StoreError> {
    store.run(Leave { email_normalized: email.normalized(), account: new_account()?, now }).await
}

/// Adds a person's related records to their file, page by page.
pub async fn fill(store: &Store, mut file: PersonDetails, now: Timestamp) -> Result<PersonDetails, StoreError> {
    file.sign_ups.clear();
    let mut place = Some(ActivityPlace::default());
    while let Some(after) = place {
        let page = store.run(ListActivity { person: file.person.id, after, now }).await?;
        file.sign_ups.extend(page.sign_ups);
        file.sign_ins.extend(page.sign_ins);
        file.requests.extend(page.requests);
        place = page.next;
    }
    file.reward_history = store.run(FindRewardHistory(file.person.id, file.person.account.clone())).await?;
    Ok(file)
}

pub struct People {
    store: Store,
    marker: AddressMarker,
    erasures: ErasureLog,
}

impl People {
    pub fn new(store: Store, marker: AddressMarker, erasures: ErasureLog) -> Self {
        Self { store, marker, erasures }
    }

    /// Everything that is stored about the person with that address; for an erased person, what remains.
    pub async fn find(&self, email: &EmailAddress, now: Timestamp) -> Result<Option<PersonDetails>, StoreError> {
        let found = match self.store.run(FindPerson(email.normalized(), now)).await? {
            None => self.store.run(FindPerson(self.tombstone(email).await?, now)).await?,
            found => found,
        };
        match found {
            Some(file) => fill(&self.store, file, now).await.map(Some),
            None => Ok(None),
        }
    }

    /// The same, but only their last sign-ups. If this store is audited, the log says that they were looked up.
    pub async fn look_up(&self, email: &EmailAddress, now: Timestamp) -> Result<Option<PersonDetails>, StoreError> {
        let normalized = match self.store.run(NamePerson(email.normalized(), new_account()?)).await? {
            true => email.normalized(),
            false => self.tombstone(email).await?,
        };
        self.store.run(FindPersonBriefly(normalized, now)).await
    }

    pub async fn leave(&self, email: &EmailAddress, now: Timestamp) -> Result<Leaving, StoreError> {
        leave(&self.store, email, now).await
    }

    /// Lets mail reach the person who has that address, or had it before they were erased, whatever blocked it.
    pub async fn unsuppress(&self, email: &EmailAddress) -> Result<Option<Lifted>, StoreError> {
        let account = new_account()?;
        let lift = |email_normalized| self.store.run(Unsuppress { email_normalized, account: account.clone() });
        match lift(email.normalized()).await? {
            None => lift(self.tombstone(email).await?).await,
            lifted => Ok(lifted),
        }
    }

    /// Where someone with that address lies who was erased.
    async fn tombstone(&self, email: &EmailAddress) -> Result<String, StoreError> {
        tombstones::remark(&self.store, &self.marker, email).await?;
        Ok(self.marker.tombstone(email))
    }

    /// Deletes everything stored about the person with that address; none if no one has it. The erasure is first recorded beside
    /// the database, because an operator who restores an older copy has to know. `waiver` gives up the rewards that are due to
    /// them.
    pub async fn erase(
        &self,
        email: &EmailAddress,
        waiver: Option<Waiver>,
        now: Timestamp,
    ) -> Result<Option<Erased>, NotErased> {
        let Some(file) = self.store.run(FindPerson(email.normalized(), now)).await? else { return Ok(None) };
        // Before anything is recorded; the store checks again.
        let due = file.rewards.due_cents;
        if due > waiver.as_ref().map_or(0, |waiver| waiver.most_cents) {
            return Err(NotErased::RewardsDue(RewardsDue { cents: due }));
        }
        let marks = self.marker.marks(email);
        let (mark, id) = (marks.address.clone(), new_account()?);
        // Only the hour: the exact time would lead to the person that the audit log says was erased then.
        let at = now.end_of_hour();
        let line = self.log(move |log| log.append(&mark, id.as_str(), at)).await?;
        let (email_normalized, account) = (email.normalized(), new_account()?);
        let erase = Erase { email_normalized, marks, account, waiver, now };
        let mut so_far = None;
        // In steps, with pauses for other writes. After an interruption, the next call continues.
        let mut begun = Instant::now();
        while let Some(step) = self.store.run(erase.clone()).await? {
            let step = match step {
                Ok(step) => step,
                Err(due) => {
                    // Only if nothing is deleted yet. A store error leaves the line, because it is unknown what was committed.
                    if so_far.is_none() {
                        self.log(move |log| log.take_back(&line)).await?;
                    }
                    return Err(NotErased::RewardsDue(due));
                }
            };
            let is_whole = step.is_whole;
            so_far = Some(step.after(so_far));
            if is_whole {
                break;
            }
            tokio::time::sleep(begun.elapsed()).await;
            begun = Instant::now();
        }
        Ok(so_far)
    }

    /// Writes to the erasure log, which waits for the disk.
    async fn log<T: Send + 'static>(
        &self,
        write: impl FnOnce(&ErasureLog) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, NotErased> {
        let erasures = self.erasures.clone();
        let written = tokio::task::spawn_blocking(move || write(&erasures)).await;
        written.map_err(std::io::Error::other).and_then(|written| written).map_err(NotErased::Log)
    }
}
