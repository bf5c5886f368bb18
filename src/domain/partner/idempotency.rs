//! Idempotency keys (`Idempotency-Key`): a repeated request gets the first answer and does nothing more.

use crate::domain::time::DAY;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ring::hmac;

use crate::domain::base32;
use crate::domain::secret::{Generation, KeyPurpose, Secret};

/// How long the first answer is kept.
pub const KEPT_FOR: Duration = DAY.saturating_mul(30);

/// Keys that a partner may use for one address within [`KEYS_COUNTED_FOR`], whatever became of its sign-ups: the partner is
/// notified of each that is confirmed.
pub const MOST_KEYS: u32 = 100;
pub const KEYS_COUNTED_FOR: Duration = DAY.saturating_mul(7);

/// The idempotency key of a request: visible ASCII, so that it fits into a header and a path.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(Arc<str>);

impl fmt::Debug for IdempotencyKey {
    /// Without its text: a partner may have put anything into it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdempotencyKey(…)")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "Idempotency-Key: send it once, with 1 to {} visible ASCII characters, bare or between double quotes, such as a UUID; \
     leave the header out if the request is not to be repeated",
    IdempotencyKey::LONGEST
)]
pub struct BadIdempotencyKey;

/// How the refusal begins of a key that was used before with another input. Programs may compare it, as the reference says.
pub const REUSED_KEY: &str = "Idempotency-Key: it was used before with another input.";

impl IdempotencyKey {
    pub const LONGEST: usize = 255;

    pub fn parse(text: &str) -> Result<Self, BadIdempotencyKey> {
        let fits = (1..=Self::LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if fits { Ok(Self(text.into())) } else { Err(BadIdempotencyKey) }
    }

    /// As it stands in the header: a string of structured fields (`"…"`, with `\"` and `\\` inside), or bare. Both forms of a
    /// text are one key.
    pub fn from_header(value: &[u8]) -> Result<Self, BadIdempotencyKey> {
        let text = std::str::from_utf8(value).map_err(|_| BadIdempotencyKey)?.trim_matches([' ', '\t']);
        let Some(quoted) = text.strip_prefix('"') else { return Self::parse(text) };
        let quoted = quoted.strip_suffix('"').ok_or(BadIdempotencyKey)?;
        let (mut plain, mut characters) = (String::with_capacity(quoted.len()), quoted.chars());
        while let Some(character) = characters.next() {
            plain.push(match character {
                '\\' => characters.next().filter(|escaped| ['"', '\\'].contains(escaped)).ok_or(BadIdempotencyKey)?,
                '"' => return Err(BadIdempotencyKey),
                plain => plain,
            });
        }
        Self::parse(&plain)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A request that named itself, and what its answer is made of besides what the store finds.
#[derive(Clone)]
pub struct IdempotentRequest {
    pub key: IdempotencyKey,
    /// A keyed hash of what was asked: another input with the same key is refused.
    pub input: InputHash,
    /// Where the link of its answer leads.
    pub join_site: Arc<str>,
    /// What its answer says of savings.
    pub savings: u32,
}

/// The hash of an input, and what other generations of the secret make of it: its first request may have come before a rotation.
#[derive(Clone, PartialEq, Eq)]
pub struct InputHash {
    pub newest: String,
    others: Vec<String>,
}

impl From<String> for InputHash {
    fn from(newest: String) -> Self {
        Self { newest, others: Vec::new() }
    }
}

impl IdempotentRequest {
    /// The same request as it was hashed before a rotation of the secret; none if there was none.
    pub fn hashed_otherwise(&self) -> impl Iterator<Item = Self> {
        let hashed = |newest: &String| Self { input: newest.clone().into(), ..self.clone() };
        self.input.others.iter().map(hashed)
    }
}

/// The part of a first answer that cannot be found again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    pub link: String,
    pub savings: u32,
}

/// Makes the keyed hashes of inputs: without the installation's secret no one can guess which address one stands for.
#[derive(Clone)]
pub struct InputHasher(Secret);

impl InputHasher {
    pub fn new(secret: &Secret) -> Self {
        Self(secret.clone())
    }

    /// The hash of an operation's input, part by part; a part that was left out is another than an empty one.
    pub fn hash(&self, operation: &str, parts: &[Option<&str>]) -> InputHash {
        let generations = self.0.generations();
        let current = generations.current().number;
        let others = generations.all().iter().filter(|generation| generation.number != current);
        let hash = |generation: &Generation| hash_with(generation.key(KeyPurpose::IdempotentInput), operation, parts);
        InputHash { newest: hash(generations.current()), others: others.map(hash).collect() }
    }
}

fn hash_with(key: &hmac::Key, operation: &str, parts: &[Option<&str>]) -> String {
    let mut context = hmac::Context::with_key(key);
    for part in [Some(operation)].iter().chain(parts) {
        // Lengths keep the parts apart.
        context.update(&part.map_or(u64::MAX, |text| text.len() as u64).to_be_bytes());
        context.update(part.unwrap_or_default().as_bytes());
    }
    base32::text::<26>(context.sign().as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_quoted_or_bare_and_nothing_else_is() {
        let read = |value: &[u8]| IdempotencyKey::from_header(value).map(|key| key.as_str().to_owned());
        for (sent, key) in [
            ("8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"),
            ("\"order-17\"", "order-17"),
            ("  order-17\t", "order-17"),
            (r#""a\"b\\c""#, r#"a"b\c"#),
            ("a/b?c=d&e%20", "a/b?c=d&e%20"),
            ("a\"b", "a\"b"),
        ] {
            assert_eq!(read(sent.as_bytes()).as_deref(), Ok(key), "{sent}");
        }
        let long = "k".repeat(256);
        for bad in ["", "\"\"", "\"open", "two words", "\"two words\"", "\"a\"b\"", r#""a\n""#, r#""a\"#, "é", &long] {
            assert_eq!(read(bad.as_bytes()), Err(BadIdempotencyKey), "{bad}");
        }
        assert_eq!(read(b"\xff"), Err(BadIdempotencyKey));
        assert!(read(&long.as_bytes()[..255]).is_ok());
        assert!(!format!("{:?}", IdempotencyKey::parse("order-17")).contains("order"));
    }

    #[test]
    fn an_input_has_one_hash_and_another_input_another() {
        let hasher = InputHasher::new(&Secret::new(&"s".repeat(32)).unwrap());
        let hash = |operation, parts: &[Option<&str>]| hasher.hash(operation, parts);
        let one = hash("signUpUser", &[Some("ana@example.com"), None, Some("")]);
        assert!(one == hash("signUpUser", &[Some("ana@example.com"), None, Some("")]));
        assert!(one.newest.len() == 26 && one.others.is_empty());
        for other in [
            hash("createReferralLink", &[Some("ana@example.com"), None, Some("")]),
            hash("signUpUser", &[Some("ana@example.com"), Some(""), None]),
            hash("signUpUser", &[Some("ana@example.co"), Some("m"), Some("")]),
            hash("signUpUser", &[Some("ana@example.com"), None]),
        ] {
            assert_ne!(one.newest, other.newest);
        }
    }
}
