//! Keyed hashes of addresses: they recognize a person who was erased, and reveal to no one else who it was.

use ring::hmac;

use super::{Generation, KeyPurpose, Secret};
use crate::domain::base32;
use crate::domain::email::EmailAddress;

/// Five bits a character: 130 bits.
const LENGTH: usize = 26;

/// What stands before the mark of a generation after the first, such as `~002~`: no mark and no address has that sign there.
const NUMBER: usize = 5;
const AROUND_NUMBER: char = '~';

const PREFIX: &str = "erased:";

#[derive(Clone)]
pub struct AddressMarker(Secret);

/// Where an address or a mailbox stood, its mark stands; nothing of either begins so.
pub fn tombstone(mark: &str) -> String {
    format!("{PREFIX}{mark}")
}

/// Whether a text is a tombstone, of an address or a mailbox.
pub fn is_tombstone(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// Between these texts, in the order of bytes, lie the tombstones of one generation of the secret.
pub fn tombstones_of(generation: u32) -> (String, String) {
    let begin = format!("{PREFIX}{}", number(generation));
    (begin.clone(), format!("{begin}{AROUND_NUMBER}"))
}

/// The generation of the secret that made the mark of an address; none of another text.
pub fn generation_of(mark: &str) -> Option<u32> {
    match mark.strip_prefix(AROUND_NUMBER) {
        None => (mark.len() == LENGTH).then_some(1),
        Some(rest) => rest.split_once(AROUND_NUMBER)?.0.parse().ok(),
    }
}

fn number(generation: u32) -> String {
    match generation {
        1 => String::new(),
        later => format!("{AROUND_NUMBER}{later:03}{AROUND_NUMBER}"),
    }
}

/// A mailbox's tombstone: what stands in its place once somebody of it is erased.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MailboxTombstone {
    bytes: [u8; PREFIX.len() + NUMBER + LENGTH],
    length: usize,
}

impl MailboxTombstone {
    fn add(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        self.bytes[self.length..end].copy_from_slice(bytes);
        self.length = end;
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
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
        Self(secret.clone())
    }

    pub fn marks(&self, email: &EmailAddress) -> AddressMarks {
        marks_of(self.0.generations().current(), email)
    }

    /// The marks that other generations of the secret make of an address; none before the first rotation.
    pub fn other_marks(&self, email: &EmailAddress) -> Vec<AddressMarks> {
        let generations = self.0.generations();
        let current = generations.current().number;
        let others = generations.all().iter().filter(|generation| generation.number != current);
        others.map(|generation| marks_of(generation, email)).collect()
    }

    /// What stands in the records in the place of an address that was erased.
    pub fn tombstone(&self, email: &EmailAddress) -> String {
        tombstone(&self.marks(email).address)
    }

    /// Where the mailbox of an address would lie; every sign-up asks, so it costs next to nothing.
    pub fn mailbox_tombstone(&self, email: &EmailAddress) -> MailboxTombstone {
        let generations = self.0.generations();
        let mut tombstone = MailboxTombstone { bytes: [0; PREFIX.len() + NUMBER + LENGTH], length: 0 };
        tombstone.add(PREFIX.as_bytes());
        tombstone.add(number(generations.current().number).as_bytes());
        tombstone.add(&base32::encode::<LENGTH>(sign(generations.current(), MAILBOX, &email.mailbox()).as_ref()));
        tombstone
    }
}

const ADDRESS: &[u8] = b"address\0";
const MAILBOX: &[u8] = b"mailbox\0";

/// That of the address is the same for every spelling that counts as the same address, that of the mailbox for every address whose
/// mail arrives in it.
fn marks_of(generation: &Generation, email: &EmailAddress) -> AddressMarks {
    let mark = |what, text: &str| {
        format!("{}{}", number(generation.number), base32::text::<LENGTH>(sign(generation, what, text).as_ref()))
    };
    AddressMarks { address: mark(ADDRESS, &email.normalized()), mailbox: mark(MAILBOX, &email.mailbox()) }
}

fn sign(generation: &Generation, what: &[u8], text: &str) -> hmac::Tag {
    let mut sum = hmac::Context::with_key(generation.key(KeyPurpose::AddressMark));
    sum.update(what);
    sum.update(text.as_bytes());
    sum.sign()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::secret::Generations;
    use crate::domain::time::Timestamp;

    fn email(text: &str) -> EmailAddress {
        EmailAddress::parse(text).unwrap()
    }

    #[test]
    fn a_mark_is_of_one_address_and_one_secret() {
        let marker = |secret: &str| AddressMarker::new(&Secret::new(&secret.repeat(32)).unwrap());
        let (ours, plain, tagged) = (marker("x"), email("kim@example.com"), email("Kim+bills@EXAMPLE.com"));
        let (of_plain, of_tagged) = (ours.marks(&plain), ours.marks(&tagged));
        assert_eq!(of_plain.address, ours.marks(&email("KIM@example.com")).address);
        assert_ne!(of_plain.address, of_tagged.address);
        assert_eq!(of_plain.mailbox, of_tagged.mailbox);
        assert_ne!(of_plain.address, of_plain.mailbox);
        assert_ne!(of_plain.address, marker("y").marks(&plain).address);
        assert_eq!(of_plain.address.len(), LENGTH);
        assert_eq!(ours.mailbox_tombstone(&tagged).as_str(), tombstone(&of_plain.mailbox));
        assert!(ours.other_marks(&plain).is_empty());
    }

    #[test]
    fn the_tombstones_of_a_generation_lie_together() {
        let (kim, begun) = (email("kim@example.com"), Timestamp::from_millis(0));
        let list = [1, 2, 12].map(|number| {
            let generation = Generation::new(number, &number.to_string().repeat(32)).unwrap();
            Generation { begins_at: Some(begun), ..generation }
        });
        let generations = Generations::new(list[0].carried(), list.to_vec(), begun).unwrap();
        let marker = AddressMarker::new(&Secret::of(generations));
        let newest = marker.tombstone(&kim);
        assert_eq!(marker.mailbox_tombstone(&kim).as_str(), tombstone(&marker.marks(&kim).mailbox));
        let older: Vec<_> = marker.other_marks(&kim).iter().map(|marks| tombstone(&marks.address)).collect();
        let all = [(1, &older[1]), (2, &older[0]), (12, &newest)];
        for (generation, _) in all {
            let (begin, end) = tombstones_of(generation);
            let inside: Vec<_> = all.iter().filter(|(_, text)| begin <= **text && **text < end).collect();
            assert_eq!(inside.len(), 1, "{generation}");
            assert_eq!(inside[0].0, generation);
            assert_eq!(generation_of(inside[0].1.strip_prefix(PREFIX).unwrap()), Some(generation));
        }
    }
}
