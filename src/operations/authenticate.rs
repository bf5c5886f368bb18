//! Who is calling: the key in the `Authorization` header, checked against the store.
//!
//! A key once read is trusted for a second, so that a busy partner costs the store one read a second and a revoked key
//! stops working well within two. Then one request reads it again; those beside it need not wait for that.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::domain::api_key::{ApiKey, KeyId, KeyRecord, Standing};
use crate::domain::time::Timestamp;
use crate::error::KeyProblem;
use crate::store::{Store, StoreError};

/// How long what was read of a key is believed.
const BELIEVED_FOR: Duration = Duration::from_secs(1);

/// How long it may still be used while somebody else reads it again.
const USED_FOR: Duration = Duration::from_millis(1800);

/// How often the time of a key's last use is written, however often it is used.
const TOUCHED_EVERY: Duration = Duration::from_secs(60);

/// Keys remembered at the most. Only keys that exist are, so this is far above what any operator issues.
const REMEMBERED: usize = 10_000;

/// Why a caller is not a known partner.
#[derive(Debug)]
pub enum Refusal {
    Key(KeyProblem),
    /// The store could not say.
    Store(StoreError),
}

#[derive(Debug, Default)]
pub struct KeyRing {
    known: RwLock<HashMap<KeyId, Known>>,
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

impl KeyRing {
    /// The holder of the key in an `Authorization` header's value.
    pub async fn authenticate(
        &self,
        store: &dyn Store,
        authorization: Option<&[u8]>,
        now: Timestamp,
    ) -> Result<Holder, Refusal> {
        let key = bearer(authorization).map_err(Refusal::Key)?;
        let record = match self.remembered(key.id(), now) {
            Some(record) => record,
            None => self.read(store, key.id(), now).await?,
        };
        // The hash is compared before anything else is told: only the holder of the whole key learns its standing.
        if key.hash() != record.hash {
            return Err(Refusal::Key(KeyProblem::Unknown));
        }
        match record.standing(now) {
            Standing::Valid => Ok(Holder { touch: self.is_due(key.id(), now), record }),
            Standing::Expired => Err(Refusal::Key(KeyProblem::Expired)),
            Standing::Revoked => Err(Refusal::Key(KeyProblem::Revoked)),
        }
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

    async fn read(&self, store: &dyn Store, id: KeyId, now: Timestamp) -> Result<Arc<KeyRecord>, Refusal> {
        let found = store.find_key(id).await.map_err(Refusal::Store)?;
        let Some(record) = found else {
            return Err(Refusal::Key(KeyProblem::Unknown));
        };
        let record = Arc::new(record);
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
        Ok(record)
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
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(KeyProblem::NotBearer);
    }
    match key.trim() {
        "" => Err(KeyProblem::Missing),
        key => ApiKey::parse(key).map_err(KeyProblem::Malformed),
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
        let cut = &whole[..whole.len() - 1];
        for (bad, why) in [
            (None, KeyProblem::Missing),
            (Some("Bearer"), KeyProblem::Missing),
            (Some("Bearer "), KeyProblem::Missing),
            (Some(""), KeyProblem::NotBearer),
            (Some("Basic YTpi"), KeyProblem::NotBearer),
            (Some(key.reveal()), KeyProblem::NotBearer),
            (Some(huge.as_str()), KeyProblem::Malformed(BadKey::Form)),
            (Some(cut), KeyProblem::Malformed(BadKey::Form)),
        ] {
            assert_eq!(bearer(bad.map(str::as_bytes)), Err(why), "{bad:?}");
        }
        assert_eq!(bearer(Some(b"Bearer \xff")), Err(KeyProblem::NotBearer));
    }
}
