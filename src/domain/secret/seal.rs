//! Text that a browser hands back to us in an address, which no one can read or change on the way: authenticated encryption.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::{aead, hmac};

use super::{KeyPurpose, Secret};
use crate::domain::time::Timestamp;

/// Bytes of the time that stands before a text.
const TIME: usize = 8;

#[derive(Clone)]
pub struct Sealer(Secret, KeyPurpose);

impl Sealer {
    pub fn new(secret: &Secret, purpose: KeyPurpose) -> Self {
        Self(secret.clone(), purpose)
    }

    /// A text that was sent at a time, for an address.
    pub fn seal(&self, text: &str, at: Timestamp) -> String {
        let mut sealed = [&at.as_millis().to_be_bytes(), text.as_bytes()].concat();
        // A hash of what is sealed: two texts get the same one by no chance that counts, and nothing random is needed.
        let generations = self.0.generations();
        let key = generations.newest(self.1);
        let mut nonce = [0; aead::NONCE_LEN];
        nonce.copy_from_slice(&hmac::sign(key, &[b"nonce", &sealed[..]].concat()).as_ref()[..aead::NONCE_LEN]);
        let with = aead::Nonce::assume_unique_for_key(nonce);
        let done = sealing(key).seal_in_place_append_tag(with, aead::Aad::empty(), &mut sealed);
        done.expect("a form is shorter than what can be sealed at once");
        URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat())
    }

    /// What was sealed, if it is ours and was sent no longer ago than that.
    pub fn open(&self, sealed: &str, now: Timestamp, lasts: Duration) -> Option<String> {
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = sealed.split_at_checked(aead::NONCE_LEN)?;
        let open = |key| {
            let nonce = aead::Nonce::try_assume_unique_for_key(nonce).ok()?;
            let mut sealed = sealed.to_vec();
            sealing(key).open_in_place(nonce, aead::Aad::empty(), &mut sealed).ok().map(|opened| opened.to_vec())
        };
        let opened = self.0.generations().reading(self.1).find_map(open)?;
        let (at, text) = opened.split_first_chunk::<TIME>()?;
        let at = Timestamp::from_millis(i64::from_be_bytes(*at));
        (now < at.plus(lasts)).then(|| String::from_utf8(text.to_vec()).ok())?
    }
}

fn sealing(key: &hmac::Key) -> aead::LessSafeKey {
    let key = hmac::sign(key, b"key");
    let key = aead::UnboundKey::new(&aead::CHACHA20_POLY1305, key.as_ref()).expect("a hash is as long as a key");
    aead::LessSafeKey::new(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_is_opened_for_its_purpose_by_its_installation_in_its_time() {
        let sealer = |secret: &str, purpose| Sealer::new(&Secret::new(&secret.repeat(32)).unwrap(), purpose);
        let (ours, day, at) =
            (sealer("a", KeyPurpose::SentForm), Duration::from_secs(86_400), Timestamp::from_millis(1_000));
        let sealed = ours.seal("ana@example.com é", at);
        assert!(
            !sealed.contains("ana") && sealed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        );
        assert_eq!(sealed, ours.seal("ana@example.com é", at), "the same each time");
        assert_eq!(ours.open(&sealed, at, day).as_deref(), Some("ana@example.com é"));
        assert_eq!(ours.open(&sealed, at.plus(day), day), None, "its time is over");
        assert_eq!(sealer("b", KeyPurpose::SentForm).open(&sealed, at, day), None);
        assert_eq!(sealer("a", KeyPurpose::ProofOfWork).open(&sealed, at, day), None);
        for at_byte in 0..sealed.len() {
            let mut bad = sealed.clone();
            bad.replace_range(at_byte..=at_byte, if &sealed[at_byte..=at_byte] == "A" { "B" } else { "A" });
            assert_eq!(ours.open(&bad, at, day), None, "{at_byte}");
        }
        for bad in ["", "x", "é", &"A".repeat(27), &"A".repeat(1000)] {
            assert_eq!(ours.open(bad, at, day), None);
        }
    }
}
