//! The API keys of partners: authentication, and what the operator does with keys.
//!
//! A key once read is trusted for a second (a cache), so that a busy partner costs the store one read a second and a
//! key that is revoked, or whose partner is suspended, stops working well within two. Then one request reads it again; those beside it need not wait for that. The
//! store of keys is private to this module.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::domain::api_key::{ApiKey, IssuedKey, KeyId, KeyRecord, KeyStatus, Mode};
use crate::domain::partner::name::{PartnerId, PartnerName};
use crate::domain::time::Timestamp;
use crate::error::KeyProblem;
pub use crate::store::keys::KeyFigures;
use crate::store::{KeyStore, StoreError};

/// How long what was read of a key is believed.
const BELIEVED_FOR: Duration = Duration::from_secs(1);

/// How long it may still be used while somebody else reads it again.
const USED_FOR: Duration = Duration::from_millis(1800);

/// How often the time of a key's last use is written, however often it is used.
const TOUCHED_EVERY: Duration = Duration::from_secs(60);

/// Keys remembered at the most. Only keys that exist are, so this is far above what any operator issues.
const REMEMBERED: usize = 10_000;

/// Ids that were refused a moment ago and are remembered at the most; past it they are asked about again.
const REFUSED: usize = 10_000;

/// Looks at the store at once for ids that are not known to be a partner's: whoever makes ids up takes this share of its
/// connections and no more.
const STRANGERS_AT_ONCE: usize = 2;

/// How long such a look may wait for its turn.
const STRANGER_TIMEOUT: Duration = Duration::from_secs(3);

/// Why a caller is not a known partner.
#[derive(Debug)]
pub enum Refusal {
    Key(KeyProblem),
    /// The store could not say.
    Store(StoreError),
}

#[derive(Debug)]
pub struct Keys {
    store: Arc<dyn KeyStore>,
    /// Which keys these records know; the others are nobody's here.
    mode: Mode,
    known: RwLock<HashMap<KeyId, Known>>,
    /// When an id was last refused, be there such a key or not.
    refused: Mutex<HashMap<KeyId, Timestamp>>,
    strangers: Semaphore,
}

#[derive(Debug)]
struct Known {
    record: Arc<KeyRecord>,
    read_at: Timestamp,
    /// Whether somebody reads it again at this moment.
    renewing: AtomicBool,
    /// When the last use was written, in milliseconds.
    touched_at: AtomicI64,
}

/// A valid key, and whether its use is to be written down.
#[derive(Debug)]
pub struct Holder {
    pub record: Arc<KeyRecord>,
    pub touch: bool,
}

/// What a new key is issued with.
#[derive(Debug)]
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

/// What became of a key that got a successor.
#[derive(Debug)]
pub struct Rotated {
    pub old_ends: Timestamp,
    pub new_ends: Option<Timestamp>,
}

/// Why a key got none.
#[derive(Debug, thiserror::Error)]
pub enum NotRotated {
    #[error("there is no key {0}; `unionhall keys list` shows them")]
    Unknown(KeyId),
    #[error("key {0} no longer works, so there is nothing to rotate; issue a new key")]
    Over(KeyId),
    #[error(
        "key {0} belongs to {1}, which is suspended, so a new key would not work; first run `unionhall partners resume` with its name"
    )]
    Suspended(KeyId, String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Keys {
    pub fn new(store: Arc<dyn KeyStore>) -> Self {
        Self::of_mode(store, Mode::Live)
    }

    pub fn of_mode(store: Arc<dyn KeyStore>, mode: Mode) -> Self {
        Self {
            store,
            mode,
            known: RwLock::default(),
            refused: Mutex::default(),
            strangers: Semaphore::new(STRANGERS_AT_ONCE),
        }
    }

    /// The holder of the key in an `Authorization` header's value.
    pub async fn authenticate(&self, authorization: Option<&[u8]>, now: Timestamp) -> Result<Holder, Refusal> {
        let key = bearer(authorization).map_err(Refusal::Key)?;
        if key.mode() != self.mode {
            return Err(Refusal::Key(KeyProblem::Unknown));
        }
        // The hash is compared before anything else is told: only the holder of the whole key learns its status.
        let holds = |record: &Arc<KeyRecord>| key.hash() == record.hash;
        let record = match self.remembered(key.id(), now).filter(holds) {
            Some(record) => record,
            None => self.read(key.id(), now).await?.filter(holds).ok_or_else(|| self.refuse(key.id(), now))?,
        };
        match record.status(now) {
            KeyStatus::Valid => Ok(Holder { touch: self.is_due(key.id(), now), record }),
            KeyStatus::Expired => Err(Refusal::Key(KeyProblem::Expired)),
            KeyStatus::Revoked => Err(Refusal::Key(KeyProblem::Revoked)),
            KeyStatus::Suspended => Err(Refusal::Key(KeyProblem::Suspended)),
        }
    }

    /// Writes down that a key was used.
    pub async fn touch(&self, id: KeyId, now: Timestamp) -> Result<(), StoreError> {
        self.store.touch_key(id, now).await
    }

    /// All keys, oldest first, each with what came of its sign-ups.
    pub async fn list(&self) -> Result<Vec<(KeyRecord, KeyFigures)>, StoreError> {
        self.store.list_keys().await
    }

    /// The newest keys of a partner; how many people declined is not counted for each.
    pub async fn of_partner(&self, partner: PartnerId, most: u32) -> Result<Vec<(KeyRecord, KeyFigures)>, StoreError> {
        self.store.keys_of_partner(partner, most).await
    }

    /// The key of that id, without what came of it.
    pub async fn find(&self, id: KeyId) -> Result<Option<KeyRecord>, StoreError> {
        self.store.find_key(id).await
    }

    pub async fn issue(&self, key: &ApiKey, new: NewKey, now: Timestamp) -> Result<(), StoreError> {
        self.store.issue_key(new.issued(key, now)).await
    }

    /// Ends a key now; none if there is no such key.
    pub async fn revoke(&self, id: KeyId, now: Timestamp) -> Result<Option<KeyRecord>, StoreError> {
        self.store.revoke_key(id, now).await
    }

    /// Gives a key a successor with the same partner and limit, and lets it end after `grace`.
    pub async fn rotate(
        &self,
        id: KeyId,
        successor: &ApiKey,
        grace: Duration,
        expires_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Rotated, NotRotated> {
        let old = self.store.find_key(id).await?.ok_or(NotRotated::Unknown(id))?;
        match old.status(now) {
            KeyStatus::Valid => {}
            KeyStatus::Suspended => return Err(NotRotated::Suspended(id, old.partner.as_str().to_owned())),
            KeyStatus::Expired | KeyStatus::Revoked => return Err(NotRotated::Over(id)),
        }
        let (end, new_ends) = (now.plus(grace), expires_at.or(old.expires_at));
        let new = NewKey { partner: old.partner, per_minute: old.per_minute, expires_at: new_ends };
        // Not if it was revoked meanwhile.
        if !self.store.rotate_key(id, end, new.issued(successor, now)).await? {
            return Err(NotRotated::Over(id));
        }
        Ok(Rotated { old_ends: old.expires_at.map_or(end, |before| before.min(end)), new_ends })
    }

    fn remembered(&self, id: KeyId, now: Timestamp) -> Option<Arc<KeyRecord>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let key = known.get(&id)?;
        let age = now.since(key.read_at);
        // A clock that was set back must not make an entry last.
        let usable = now >= key.read_at
            && (age < BELIEVED_FOR || (age < USED_FOR && key.renewing.swap(true, Ordering::Relaxed)));
        usable.then(|| Arc::clone(&key.record))
    }

    /// What the store has of an id. One that was refused within the last second is not asked about again: neither one that
    /// is nobody's nor one whose secret was wrong, so that the two take the same time.
    async fn read(&self, id: KeyId, now: Timestamp) -> Result<Option<Arc<KeyRecord>>, Refusal> {
        if self.was_refused(id, now) && !self.is_stale(id, now) {
            return Ok(None);
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).contains_key(&id);
        let _turn = match known {
            true => None,
            false => Some(self.strangers_turn().await?),
        };
        let found = self.store.find_key(id).await.map_err(Refusal::Store)?;
        let Some(record) = found.map(Arc::new) else { return Ok(None) };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED && !known.contains_key(&id) {
            known.clear();
        }
        let written = record.last_used_at.map_or(i64::MIN, Timestamp::as_millis);
        let entry = known.entry(id).or_insert_with(|| Known {
            record: Arc::clone(&record),
            read_at: now,
            renewing: AtomicBool::new(false),
            touched_at: AtomicI64::new(written),
        });
        entry.record = Arc::clone(&record);
        entry.read_at = now;
        entry.renewing = AtomicBool::new(false);
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

    /// Whether a key is known whose record is too old to be believed: its holder may be the one who asks.
    fn is_stale(&self, id: KeyId, now: Timestamp) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&id).is_some_and(|key| now < key.read_at || now.since(key.read_at) >= BELIEVED_FOR)
    }

    /// True once in [`TOUCHED_EVERY`] for each key.
    fn is_due(&self, id: KeyId, now: Timestamp) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let Some(key) = known.get(&id) else { return false };
        let before = key.touched_at.load(Ordering::Relaxed);
        let due = before == i64::MIN || now.since(Timestamp::from_millis(before)) >= TOUCHED_EVERY;
        due && key.touched_at.compare_exchange(before, now.as_millis(), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// The key in a header like `Bearer uh_…`; the scheme's name may be in any case.
fn bearer(authorization: Option<&[u8]>) -> Result<ApiKey, KeyProblem> {
    let value = authorization.ok_or(KeyProblem::Missing)?;
    let text = std::str::from_utf8(value).map_err(|_| KeyProblem::NotBearer)?.trim();
    let (scheme, key) = text.split_once(' ').unwrap_or((text, ""));
    match scheme {
        "" => return Err(KeyProblem::Unclear),
        scheme if scheme.eq_ignore_ascii_case("bearer") => {}
        scheme if scheme.eq_ignore_ascii_case("basic") => return Err(KeyProblem::Basic),
        scheme if scheme.starts_with("uh_") => return Err(KeyProblem::NoScheme),
        _ => return Err(KeyProblem::NotBearer),
    }
    match key.trim() {
        "" => Err(KeyProblem::Missing),
        key => ApiKey::parse(key).map_err(|why| slip(key).unwrap_or(KeyProblem::Malformed(why))),
    }
}

/// A usual slip with what cannot be a key.
fn slip(text: &str) -> Option<KeyProblem> {
    let bare = text.trim_matches(['"', '\'', '`', '<', '>', '{', '}']);
    match text.starts_with('$') || ["API_KEY", "YOUR_API_KEY", "YOUR_KEY", "KEY", "TOKEN"].contains(&bare) {
        true => Some(KeyProblem::Placeholder),
        false => (bare.len() < text.len() && ApiKey::parse(bare).is_ok()).then_some(KeyProblem::Quoted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::api_key::BadKey;

    #[test]
    fn only_a_whole_bearer_key_is_taken() {
        let key = ApiKey::from_random(&[9; ApiKey::ENTROPY]);
        let whole = format!("Bearer {}", key.reveal());
        for good in [whole.clone(), format!("  bearer   {} ", key.reveal()), whole.replace("Bearer", "BEARER")] {
            assert_eq!(bearer(Some(good.as_bytes())), Ok(key.clone()), "{good}");
        }
        let huge = format!("Bearer {}", "x".repeat(100_000));
        let quoted = format!("Bearer \"{}\"", key.reveal());
        let cut = &whole[..whole.len() - 1];
        for (bad, why) in [
            (None, KeyProblem::Missing),
            (Some("Bearer"), KeyProblem::Missing),
            (Some("Bearer "), KeyProblem::Missing),
            (Some(""), KeyProblem::Unclear),
            (Some(" "), KeyProblem::Unclear),
            (Some("Basic YTpi"), KeyProblem::Basic),
            (Some("Digest x"), KeyProblem::NotBearer),
            (Some(key.reveal()), KeyProblem::NoScheme),
            (Some(quoted.as_str()), KeyProblem::Quoted),
            (Some("Bearer <API_KEY>"), KeyProblem::Placeholder),
            (Some("Bearer $KEY"), KeyProblem::Placeholder),
            (Some("Bearer ${KEY}"), KeyProblem::Placeholder),
            (Some("Bearer \"\""), KeyProblem::Malformed(BadKey::Form)),
            (Some(huge.as_str()), KeyProblem::Malformed(BadKey::Form)),
            (Some(cut), KeyProblem::Malformed(BadKey::Form)),
        ] {
            assert_eq!(bearer(bad.map(str::as_bytes)), Err(why), "{bad:?}");
        }
        assert_eq!(bearer(Some(b"Bearer \xff")), Err(KeyProblem::NotBearer));
    }
}
