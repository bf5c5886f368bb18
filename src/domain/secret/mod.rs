//! The secret of an installation, and what is derived from it.

pub mod mark;
pub mod operator;
pub mod proof;
pub mod seal;
pub mod session;
pub mod token;

use ring::{hkdf, hmac};

/// The text every keyed hash of this installation starts from. Shown in no log and no error.
#[derive(Clone)]
pub struct Secret(hmac::Key);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the secret is too short: it needs at least {} characters", Secret::SHORTEST)]
pub struct SecretTooShort;

impl Secret {
    pub const SHORTEST: usize = 32;

    /// Takes the secret as text, without the white space around it (files end in a line break).
    pub fn new(text: &str) -> Result<Self, SecretTooShort> {
        let text = text.trim();
        if text.chars().count() < Self::SHORTEST {
            return Err(SecretTooShort);
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes())))
    }

    /// A key for one purpose, so that what one purpose reveals says nothing about another.
    pub fn derive(&self, purpose: &str) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&self.0, purpose.as_bytes()).as_ref())
    }

    /// Bytes for one purpose that leave this program, by HKDF-SHA256 (RFC 5869): its salt is this secret, its key the purpose.
    pub fn hkdf(&self, purpose: &str, info: &[&[u8]]) -> [u8; 32] {
        let extracted = hmac::sign(&self.0, purpose.as_bytes());
        let mut bytes = [0; 32];
        let expanded = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, extracted.as_ref());
        let filled = expanded.expand(info, hkdf::HKDF_SHA256).and_then(|key| key.fill(&mut bytes));
        filled.expect("one hash's length can always be had");
        bytes
    }

    /// The sandbox's own secret: no token, code or link of the one means anything to the other.
    #[must_use]
    pub fn of_sandbox(&self) -> Self {
        Self(self.derive("sandbox"))
    }

    /// Tells two secrets apart without revealing either; kept in the store so that a node with another secret is noticed.
    pub fn fingerprint(&self) -> String {
        let tag = hmac::sign(&self.derive("fingerprint"), b"");
        super::base32::text::<16>(tag.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_leave_are_those_of_hkdf() {
        let text = "x".repeat(32);
        let mut expected = [0; 32];
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, text.as_bytes());
        let prk = salt.extract(b"purpose");
        prk.expand(&[b"in", b"fo"], hkdf::HKDF_SHA256).unwrap().fill(&mut expected).unwrap();
        let secret = Secret::new(&text).unwrap();
        assert_eq!(secret.hkdf("purpose", &[b"info"]), expected);
        assert_ne!(secret.hkdf("another", &[b"info"]), expected);
        assert_ne!(secret.hkdf("purpose", &[b"infO"]), expected);
    }

    #[test]
    fn white_space_around_it_does_not_matter_and_length_does() {
        let text = "x".repeat(32);
        let one = Secret::new(&text).unwrap();
        assert_eq!(one.fingerprint(), Secret::new(&format!(" {text}\n")).unwrap().fingerprint());
        assert_ne!(one.fingerprint(), Secret::new(&"y".repeat(32)).unwrap().fingerprint());
        assert_eq!(one.fingerprint().len(), 16);
        assert_eq!(Secret::new(&"x".repeat(31)).unwrap_err(), SecretTooShort);
        assert_eq!(Secret::new(&" ".repeat(40)).unwrap_err(), SecretTooShort);
        assert!(!format!("{one:?}").contains('x'));
        assert_ne!(one.of_sandbox().fingerprint(), one.fingerprint());
        assert_eq!(one.of_sandbox().fingerprint(), Secret::new(&text).unwrap().of_sandbox().fingerprint());
    }
}
