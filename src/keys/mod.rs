//! The API keys of partners: authentication, and what the operator does with keys.
//!
//! A key is trusted for a second after it was read (a cache), so that a busy partner costs the store one read a second and a
//! key that is revoked, or whose partner is suspended, stops working well within two. After that second one request reads the
//! key again, and concurrent requests do not wait.

mod bearer;
pub mod records;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use self::bearer::bearer;
use crate::domain::api_key::{ApiKey, IssuedKey, KeyId, KeyRecord, KeyStatus, Mode};
use crate::domain::partner::name::PartnerName;
use crate::domain::remedy::Remedy;
use crate::domain::time::Timestamp;
use crate::error::KeyProblem;
use crate::keys::records::{FindKey, IssueKey, RotateKey, RotatedKey, TouchKey};
pub use crate::keys::records::{KeyFigures, KeyUse, RevokedKey};
use crate::store::{Store, StoreError};

/// How long a key's record is trusted after it was read.
const BELIEVED_FOR: Duration = Duration::from_secs(1);

/// How long it may still be used while another request reads it again.
const USED_FOR: Duration = Duration::from_millis(1800);

/// How often a key's last use and its number of uses are written, however often the key is used.
const TOUCHED_EVERY: Duration = Duration::from_secs(60);

/// How many keys are remembered at most. Only keys that exist are remembered, so this is far above what any operator issues.
/// Beyond it, counts that were not written yet are lost.
const REMEMBERED: usize = 10_000;

/// How many recently refused ids are remembered at most. Beyond it, the store is asked about them again.
const REFUSED: usize = 10_000;

/// How many ids not known to be a partner's are looked up in the store at once: a caller who makes up ids takes this share of
/// the store's connections and no more.
const STRANGERS_AT_ONCE: usize = 2;

/// How long such a lookup may wait for its turn.
const STRANGER_TIMEOUT: Duration = Duration::from_secs(3);

/// Why a caller is not a known partner.
#[derive(Debug)]
pub enum Refusal {
    Key(KeyProblem),
    Store(StoreError),
}

pub struct Keys {
    store: Store,
    /// Which keys these records know; other keys are unknown here.
    mode: Mode,
    known: RwLock<HashMap<KeyId, Known>>,
    /// When an id was last refused, whether or not such a key exists.
    refused: Mutex<HashMap<KeyId, Timestamp>>,
    strangers: Semaphore,
}

struct Known {
    record: Arc<KeyRecord>,
    read_at: Timestamp,
    /// Whether a request is reading it again right now.
    renewing: AtomicBool,
    touched_at: AtomicI64,
    uses: Arc<UseCounter>,
}

/// How often a key was used on this node since that was last written.
#[derive(Default)]
pub struct UseCounter {
    requests: AtomicU32,
    sign_ups: AtomicU32,
    /// When the last of these requests came, in milliseconds.
    last_at: AtomicI64,
}

impl UseCounter {
    pub fn note_sign_up(&self) {
        self.sign_ups.fetch_add(1, Ordering::Relaxed);
    }

    fn add(&self, used: KeyUse) {
        self.requests.fetch_add(used.requests, Ordering::Relaxed);
        self.sign_ups.fetch_add(used.sign_ups, Ordering::Relaxed);
    }

    fn take(&self) -> KeyUse {
        let (requests, sign_ups) = (self.requests.swap(0, Ordering::Relaxed), self.sign_ups.swap(0, Ordering::Relaxed));
        KeyUse { requests, sign_ups }
    }
}

/// A valid key, and the uses to write down, if it is time for that.
pub struct Holder {
    pub record: Arc<KeyRecord>,
    pub uses: Arc<UseCounter>,
    pub touch: Option<KeyUse>,
}

pub struct NewKey {
    pub partner: PartnerName,
    pub per_minute: Option<u32>,
    pub expires_at: Option<Timestamp>,
}

impl NewKey {
    fn issued(self, key: &ApiKey, now: Timestamp) -> IssuedKey {
        IssuedKey {
            id: key.id(),
            partner: self.partner,
            hash: key.hash(),
            per_minute: self.per_minute,
            created_at: now,
            expires_at: self.expires_at,
        }
    }
}

pub struct Rotated {
    pub old_ends: Timestamp,
    pub new_ends: Option<Timestamp>,
}

#[derive(Debug, thiserror::Error)]
pub enum NotRotated {
    #[error("there is no key {0}")]
    Unknown(KeyId),
    #[error("key {0} no longer works, so there is nothing to rotate; issue a new key")]
    Over(KeyId),
    #[error("key {0} was rotated to {1} before")]
    Replaced(KeyId, KeyId),
    #[error("too many keys of its partner are ending")]
    TooMany,
    #[error("key {0} belongs to {1}, which is suspended, so a new key would not work")]
    Suspended(KeyId, String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl NotRotated {
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Unknown(_) => Some(Remedy::ListKeys),
            Self::Suspended(_, partner) => Some(Remedy::ResumePartner(partner.clone())),
            Self::Over(_) | Self::Replaced(..) | Self::TooMany | Self::Store(_) => None,
        }
    }
}

impl Keys {
    pub fn new(store: Store, mode: Mode) -> Self {
        Self {
            store,
            mode,
            known: RwLock::default(),
            refused: Mutex::default(),
            strangers: Semaphore::new(STRANGERS_AT_ONCE),
        }
    }

    /// The holder of the key in an `Authorization` header's value. Counts the request.
    pub async fn authenticate(&self, authorization: Option<&[u8]>, now: Timestamp) -> Result<Holder, Refusal> {
        let record = self.recognize(authorization, now).await?;
        let (uses, touch) = self.note_use(record.id, now);
        Ok(Holder { record, uses, touch })
    }

    /// The same, without counting.
    pub async fn recognize(&self, authorization: Option<&[u8]>, now: Timestamp) -> Result<Arc<KeyRecord>, Refusal> {
        let key = bearer(authorization).map_err(Refusal::Key)?;
        if key.mode() != self.mode {
            return Err(Refusal::Key(KeyProblem::Unknown));
        }
        // The hash is compared before anything else is revealed: only the holder of the whole key learns its status.
        let holds = |record: &Arc<KeyRecord>| key.hash() == record.hash;
        let record = match self.remembered(key.id(), now).filter(holds) {
            Some(record) => record,
            None => self.read(key.id(), now).await?.filter(holds).ok_or_else(|| self.refuse(key.id(), now))?,
        };
        match record.status(now) {
            KeyStatus::Valid => Ok(record),
            KeyStatus::Expired => {
                Err(Refusal::Key(record.replaced_by.map_or(KeyProblem::Expired, KeyProblem::Rotated)))
            }
            KeyStatus::Revoked => Err(Refusal::Key(KeyProblem::Revoked)),
            KeyStatus::Suspended => Err(Refusal::Key(KeyProblem::Suspended)),
        }
    }

    /// Records that a key was used, and how often. What could not be written is counted again.
    pub async fn touch(&self, id: KeyId, used: KeyUse, now: Timestamp) -> Result<(), StoreError> {
        let written = self.store.run(TouchKey { id, used, now }).await;
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let (Err(_), Some(key)) = (&written, known.get(&id)) {
            key.uses.add(used);
        }
        written
    }

    /// Takes the counts of keys that have not been used for a while, with the time of their last use; with `all`, of every key.
    pub fn take_uses(&self, all: bool, now: Timestamp) -> Vec<(KeyId, KeyUse, Timestamp)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let is_counted =
            |key: &Known| [&key.uses.requests, &key.uses.sign_ups].iter().any(|n| n.load(Ordering::Relaxed) > 0);
        let due = known.iter().filter(|(_, key)| is_counted(key) && (key.is_due(now) || all));
        let last_at = |key: &Known| Timestamp::from_millis(key.uses.last_at.load(Ordering::Relaxed));
        due.map(|(id, key)| (*id, key.uses.take(), last_at(key))).collect()
    }

    pub async fn issue(&self, key: &ApiKey, new: NewKey, now: Timestamp) -> Result<(), StoreError> {
        self.store.run(IssueKey(new.issued(key, now))).await
    }

    /// Gives a key a successor with the same partner and limit, and ends the key after `grace`. A partner may do this only once
    /// per key, and only while few of its keys are ending.
    pub async fn rotate(
        &self,
        id: KeyId,
        successor: &ApiKey,
        grace: Duration,
        expires_at: Option<Timestamp>,
        by_partner: bool,
        now: Timestamp,
    ) -> Result<Rotated, NotRotated> {
        let old = self.store.run(FindKey(id)).await?.ok_or(NotRotated::Unknown(id))?;
        match old.status(now) {
            KeyStatus::Valid => {}
            KeyStatus::Suspended => return Err(NotRotated::Suspended(id, old.partner.as_str().to_owned())),
            KeyStatus::Expired | KeyStatus::Revoked => return Err(NotRotated::Over(id)),
        }
        let (end, new_ends) = (now.plus(grace), expires_at.or(old.expires_at));
        let new = NewKey { partner: old.partner, per_minute: old.per_minute, expires_at: new_ends };
        match self.store.run(RotateKey { old: id, end, successor: new.issued(successor, now), by_partner }).await? {
            RotatedKey::Done => {}
            // It was revoked in the meantime.
            RotatedKey::Over => return Err(NotRotated::Over(id)),
            RotatedKey::Replaced(by) => return Err(NotRotated::Replaced(id, by)),
            RotatedKey::TooMany => return Err(NotRotated::TooMany),
        }
        Ok(Rotated { old_ends: old.expires_at.map_or(end, |before| before.min(end)), new_ends })
    }

    fn remembered(&self, id: KeyId, now: Timestamp) -> Option<Arc<KeyRecord>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let key = known.get(&id)?;
        let age = now.since(key.read_at);
        // A clock that was set back must not keep an entry alive.
        let usable = now >= key.read_at
            && (age < BELIEVED_FOR || (age < USED_FOR && key.renewing.swap(true, Ordering::Relaxed)));
        usable.then(|| Arc::clone(&key.record))
    }

    /// What the store has for an id. An id refused within the last second is not looked up again, whether it is unknown or came
    /// with a wrong secret, so that both take the same time.
    async fn read(&self, id: KeyId, now: Timestamp) -> Result<Option<Arc<KeyRecord>>, Refusal> {
        if self.was_refused(id, now) && !self.is_stale(id, now) {
            return Ok(None);
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).contains_key(&id);
        let _turn = match known {
            true => None,
            false => Some(self.strangers_turn().await?),
        };
        let found = self.store.run(FindKey(id)).await.map_err(Refusal::Store)?;
        let Some(record) = found.map(Arc::new) else { return Ok(None) };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED && !known.contains_key(&id) {
            known.clear();
        }
        let (touched_at, uses) = match known.remove(&id) {
            Some(before) => (before.touched_at, before.uses),
            None => (AtomicI64::new(record.last_used_at.map_or(i64::MIN, Timestamp::as_millis)), Arc::default()),
        };
        let renewing = AtomicBool::new(false);
        known.insert(id, Known { record: Arc::clone(&record), read_at: now, renewing, touched_at, uses });
        Ok(Some(record))
    }

    async fn strangers_turn(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        let busy = || Refusal::Store(StoreError::Unavailable("too many unknown keys are being looked up".to_owned()));
        let turn = tokio::time::timeout(STRANGER_TIMEOUT, self.strangers.acquire()).await;
        turn.ok().and_then(Result::ok).ok_or_else(busy)
    }

    fn refuse(&self, id: KeyId, now: Timestamp) -> Refusal {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() >= REFUSED {
            refused.clear();
        }
        refused.insert(id, now);
        Refusal::Key(KeyProblem::Unknown)
    }

    fn was_refused(&self, id: KeyId, now: Timestamp) -> bool {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.get(&id).is_some_and(|at| now >= *at && now.since(*at) < BELIEVED_FOR)
    }

    /// Whether a key is known but its record is too old to be trusted: this request may come from the key's holder.
    fn is_stale(&self, id: KeyId, now: Timestamp) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&id).is_some_and(|key| now < key.read_at || now.since(key.read_at) >= BELIEVED_FOR)
    }

    /// Counts a request. The first request after [`TOUCHED_EVERY`] takes the counts, to write them down.
    fn note_use(&self, id: KeyId, now: Timestamp) -> (Arc<UseCounter>, Option<KeyUse>) {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let Some(key) = known.get(&id) else { return Default::default() };
        key.uses.requests.fetch_add(1, Ordering::Relaxed);
        key.uses.last_at.store(now.as_millis(), Ordering::Relaxed);
        (Arc::clone(&key.uses), key.is_due(now).then(|| key.uses.take()))
    }
}

impl Known {
    /// True once per [`TOUCHED_EVERY`].
    fn is_due(&self, now: Timestamp) -> bool {
        let before = self.touched_at.load(Ordering::Relaxed);
        let due = before == i64::MIN || now.since(Timestamp::from_millis(before)) >= TOUCHED_EVERY;
        due && self.touched_at.compare_exchange(before, now.as_millis(), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
