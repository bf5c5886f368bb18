//! Partner keys: `uh_<id>_<secret><checksum>`, and test keys: `uh_test_<id>_<secret><checksum>`.
//!
//! The prefix lets secret scanners find a leaked key, and says which records it opens; the id is public and names the key in
//! lists and logs; the secret holds 160 random bits; the checksum (CRC-32, over all before it) detects a mistyped key without
//! asking the store. Only a hash is kept.

mod mode;

use std::fmt;

use subtle::ConstantTimeEq;

pub use self::mode::Mode;
use super::base32;
use super::json::named_enum;
use super::partner::name::{PartnerId, PartnerName};
use super::time::Timestamp;

/// Keys of a partner that work for a while although they were rotated, before the partner itself may rotate another: rotating must
/// not multiply keys.
pub const MAX_ENDING_KEYS: u32 = 5;

const ID: usize = 8;
const SECRET: usize = 32;
const CHECKSUM: usize = 7;
const REST: usize = ID + 1 + SECRET + CHECKSUM;
const LONGEST: usize = length(Mode::Test);

const fn length(mode: Mode) -> usize {
    mode.prefix().len() + REST
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId([u8; ID]);

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}

impl KeyId {
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a key id: ids have {ID} characters")]
pub struct NotAKeyId;

impl std::str::FromStr for KeyId {
    type Err = NotAKeyId;

    /// An id, or a whole key of which only the id is taken, so that pasting a key to revoke it does what was meant.
    fn from_str(text: &str) -> Result<Self, NotAKeyId> {
        if let Ok(key) = ApiKey::parse(text) {
            return Ok(key.id());
        }
        let bytes: [u8; ID] = text.as_bytes().try_into().map_err(|_| NotAKeyId)?;
        if base32::is_canonical(&bytes) { Ok(Self(bytes)) } else { Err(NotAKeyId) }
    }
}

/// A whole key, secret included. It has no `Debug` that would show it and is kept no longer than a request.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    mode: Mode,
    /// As long as its mode has it; nothing after that.
    text: [u8; LONGEST],
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({}…)", self.id())
    }
}

/// Why a text cannot be a key of any installation. The messages go to callers; they never repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    #[error("it does not have the form of a key (uh_ or uh_test_, an id, an underscore, a secret)")]
    Form,
    #[error("it is mistyped or cut: its checksum does not match; copy it again")]
    Checksum,
}

impl ApiKey {
    /// How many random bytes a new key takes.
    pub const ENTROPY: usize = 25;

    /// A key to the union's own records.
    pub fn from_random(random: &[u8; Self::ENTROPY]) -> Self {
        Self::of_mode(Mode::Live, random)
    }

    pub fn of_mode(mode: Mode, random: &[u8; Self::ENTROPY]) -> Self {
        let mut text = [0; LONGEST];
        let id: [u8; ID] = base32::encode(&random[..5]);
        let secret: [u8; SECRET] = base32::encode(&random[5..]);
        let mut rest = text.as_mut_slice();
        for part in [mode.prefix().as_bytes(), &id, b"_", &secret] {
            let (start, end) = rest.split_at_mut(part.len());
            start.copy_from_slice(part);
            rest = end;
        }
        let sum = checksum(&text[..length(mode) - CHECKSUM]);
        text[length(mode) - CHECKSUM..length(mode)].copy_from_slice(&sum);
        Self { mode, text }
    }

    pub fn parse(text: &str) -> Result<Self, BadKey> {
        let mode = Mode::ALL.into_iter().find(|mode| text.len() == length(*mode)).ok_or(BadKey::Form)?;
        let (body, sum) = text.as_bytes().split_at(length(mode) - CHECKSUM);
        let rest = body.strip_prefix(mode.prefix().as_bytes()).ok_or(BadKey::Form)?;
        let (id, secret) = (&rest[..ID], &rest[ID + 1..]);
        if rest[ID] != b'_' || !base32::is_canonical(id) || !base32::is_canonical(secret) {
            return Err(BadKey::Form);
        }
        if checksum(body) != *sum {
            return Err(BadKey::Checksum);
        }
        let mut key = [0; LONGEST];
        key[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self { mode, text: key })
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    pub fn id(&self) -> KeyId {
        let mut id = [0; ID];
        let start = self.mode.prefix().len();
        id.copy_from_slice(&self.text[start..start + ID]);
        KeyId(id)
    }

    /// A plain hash is enough: 160 random bits cannot be searched, so there is nothing for salt or slowness to add.
    pub fn hash(&self) -> KeyHash {
        let mut hash = [0; 32];
        hash.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, self.reveal().as_bytes()).as_ref());
        KeyHash(hash)
    }

    /// The key itself, for the one time it is shown to the operator.
    pub fn reveal(&self) -> &str {
        std::str::from_utf8(&self.text[..length(self.mode)]).unwrap_or_default()
    }
}

fn checksum(body: &[u8]) -> [u8; CHECKSUM] {
    base32::encode(&crc32fast::hash(body).to_be_bytes())
}

/// What is kept of a key. Comparing two takes the same time wherever they differ.
#[derive(Clone, Copy)]
pub struct KeyHash(pub [u8; 32]);

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(…)")
    }
}

impl PartialEq for KeyHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for KeyHash {}

#[derive(Clone, PartialEq, Eq)]
pub struct IssuedKey {
    pub id: KeyId,
    pub partner: PartnerName,
    pub hash: KeyHash,
    pub per_minute: Option<u32>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    pub id: KeyId,
    /// With it a request of the partner needs no look-up.
    pub partner_id: PartnerId,
    pub partner: PartnerName,
    pub hash: KeyHash,
    /// Agent actions a minute; without a figure of its own the key follows the server's setting.
    pub per_minute: Option<u32>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub replaced_by: Option<KeyId>,
    /// Since when its partner is suspended: none of its keys works until that is lifted.
    pub suspended_at: Option<Timestamp>,
}

named_enum! {
    /// Whether a key opens anything, now.
    pub enum KeyStatus {
        Valid = "valid",
        Expired = "expired",
        Revoked = "revoked",
        Suspended = "suspended",
    }
}

impl KeyRecord {
    pub fn status(&self, now: Timestamp) -> KeyStatus {
        if self.revoked_at.is_some() {
            KeyStatus::Revoked
        } else if self.expires_at.is_some_and(|end| end <= now) {
            KeyStatus::Expired
        } else if self.suspended_at.is_some() {
            KeyStatus::Suspended
        } else {
            KeyStatus::Valid
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(mode: Mode) -> ApiKey {
        ApiKey::of_mode(mode, &std::array::from_fn(|i| i as u8 * 7 + 3))
    }

    #[test]
    fn a_key_reads_back_and_names_itself_and_its_records() {
        for (mode, prefix, length) in [(Mode::Live, "uh_", 51), (Mode::Test, "uh_test_", 56)] {
            let (key, id) = (key(mode), key(mode).id());
            let text = key.reveal();
            assert!(text.starts_with(prefix) && text.len() == length);
            assert_eq!((ApiKey::parse(text), key.mode(), Mode::of_text(text)), (Ok(key.clone()), mode, mode));
            assert_eq!(text[prefix.len()..prefix.len() + ID], *id.as_str());
            assert_eq!((text.parse(), id.as_str().parse()), (Ok(id), Ok(id)));
            assert!(!format!("{key:?}").contains(&text[prefix.len() + ID + 1..]));
        }
        assert_eq!((Mode::of_text("uh_test_"), Mode::of_text("")), (Mode::Test, Mode::Live));
    }

    #[test]
    fn every_single_changed_character_is_noticed_without_the_store() {
        for good in [key(Mode::Live), key(Mode::Test)] {
            let good = good.reveal();
            for at in 0..good.len() {
                for to in ["0", "z", "A", "_", "-"] {
                    let mut bad = good.to_owned();
                    bad.replace_range(at..=at, to);
                    assert!(bad == good || ApiKey::parse(&bad).is_err(), "{at} {to}");
                }
            }
            for bad in ["", "uh_", &good[..50], &format!("{good}0"), &good.to_uppercase(), &"é".repeat(26)] {
                assert_eq!(ApiKey::parse(bad), Err(BadKey::Form), "{bad}");
            }
        }
    }

    #[test]
    fn no_key_opens_other_records_with_another_prefix() {
        let (live, test) = (key(Mode::Live), key(Mode::Test));
        assert_ne!(test.hash(), live.hash());
        for renamed in [test.reveal().replacen("uh_test_", "uh_", 1), live.reveal().replacen("uh_", "uh_test_", 1)] {
            assert_eq!(ApiKey::parse(&renamed), Err(BadKey::Checksum), "the checksum covers the prefix too");
        }
    }

    #[test]
    fn standing_follows_the_clock_and_revocation_wins() {
        let at = Timestamp::from_millis;
        let mut record = KeyRecord {
            id: key(Mode::Live).id(),
            partner_id: PartnerId(1),
            partner: "Acme".parse().unwrap(),
            hash: key(Mode::Live).hash(),
            per_minute: None,
            created_at: at(0),
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
            replaced_by: None,
            suspended_at: None,
        };
        assert_eq!(record.status(at(i64::MAX)), KeyStatus::Valid);
        record.expires_at = Some(at(10));
        assert_eq!(record.status(at(9)), KeyStatus::Valid);
        assert_eq!(record.status(at(10)), KeyStatus::Expired);
        record.suspended_at = Some(at(5));
        assert_eq!(record.status(at(9)), KeyStatus::Suspended);
        assert_eq!(record.status(at(10)), KeyStatus::Expired, "lifting the suspension would not help");
        record.revoked_at = Some(at(5));
        assert_eq!(record.status(at(1)), KeyStatus::Revoked);
    }
}
