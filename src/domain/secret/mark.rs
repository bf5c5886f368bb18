//! Keyed hashes of addresses: they recognize a person who was erased, and reveal to no one else who it was.

use ring::hmac;

use super::Secret;
use crate::domain::base32;
use crate::domain::email::EmailAddress;

/// Five bits a character: 130 bits.
const LENGTH: usize = 26;

#[derive(Clone)]
pub struct AddressMarker(hmac::Key);

/// Where an address or a mailbox stood, its mark stands; nothing of either begins so.
pub fn tombstone(mark: &str) -> String {
    format!("{PREFIX}{mark}")
}

/// Whether a text is a tombstone, of an address or a mailbox.
pub fn is_tombstone(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// A mailbox's tombstone: what stands in its place once somebody of it is erased.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MailboxTombstone([u8; PREFIX.len() + LENGTH]);

const PREFIX: &str = "erased:";

impl MailboxTombstone {
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Both marks of an address.
#[derive(Clone, PartialEq, Eq)]
pub struct AddressMarks {
    pub address: String,
    pub mailbox: String,
}

impl AddressMarker {
    pub fn new(secret: &Secret) -> Self {
        Self(secret.derive("address mark"))
    }

    pub fn marks(&self, email: &EmailAddress) -> AddressMarks {
        AddressMarks { address: self.address(email), mailbox: self.mailbox(email) }
    }

    /// What stands in the records in the place of an address that was erased.
    pub fn tombstone(&self, email: &EmailAddress) -> String {
        tombstone(&self.address(email))
    }

    /// The same for every spelling that counts as the same address.
    pub fn address(&self, email: &EmailAddress) -> String {
        base32::text::<LENGTH>(self.sign(b"address\0", &email.normalized()).as_ref())
    }

    /// The same for every address whose mail arrives in the same mailbox.
    pub fn mailbox(&self, email: &EmailAddress) -> String {
        base32::text::<LENGTH>(self.sign(b"mailbox\0", &email.mailbox()).as_ref())
    }

    /// Where the mailbox of an address would lie; every sign-up asks, so it costs next to nothing.
    pub fn mailbox_tombstone(&self, email: &EmailAddress) -> MailboxTombstone {
        let mut tombstone = [0; PREFIX.len() + LENGTH];
        let (prefix, mark) = tombstone.split_at_mut(PREFIX.len());
        prefix.copy_from_slice(PREFIX.as_bytes());
        mark.copy_from_slice(&base32::encode::<LENGTH>(self.sign(b"mailbox\0", &email.mailbox()).as_ref()));
        MailboxTombstone(tombstone)
    }

    fn sign(&self, what: &[u8], text: &str) -> hmac::Tag {
        let mut sum = hmac::Context::with_key(&self.0);
        sum.update(what);
        sum.update(text.as_bytes());
        sum.sign()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_one_address_and_one_secret() {
        let marker = |secret: &str| AddressMarker::new(&Secret::new(&secret.repeat(32)).unwrap());
        let email = |text: &str| EmailAddress::parse(text).unwrap();
        let (ours, plain, tagged) = (marker("x"), email("kim@example.com"), email("Kim+bills@EXAMPLE.com"));
        assert_eq!(ours.address(&plain), ours.address(&email("KIM@example.com")));
        assert_ne!(ours.address(&plain), ours.address(&tagged));
        assert_eq!(ours.mailbox(&plain), ours.mailbox(&tagged));
        assert_ne!(ours.address(&plain), ours.mailbox(&plain));
        assert_ne!(ours.address(&plain), marker("y").address(&plain));
        assert_eq!(ours.address(&plain).len(), LENGTH);
        assert_eq!(ours.mailbox_tombstone(&tagged).as_str(), tombstone(&ours.mailbox(&plain)));
    }
}
