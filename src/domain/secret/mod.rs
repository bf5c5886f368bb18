//! The secret of an installation in its generations, and the keys that are derived from it.

pub mod mark;
pub mod operator;
pub mod proof;
pub mod seal;
pub mod session;
pub mod token;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use ring::{hkdf, hmac};

use super::base32;
use super::time::{DAY, Timestamp};

/// How long the ways to say no (decline, unsubscribe, bounce) work after a generation leaked.
pub const SAYS_NO_FOR: Duration = DAY.saturating_mul(30);

/// What a key is for. SECURITY.md tells what a rotation does to each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPurpose {
    ReferralCode,
    WebhookMessage,
    Sandbox,
    AddressMark,
    IdempotentInput,
    EventCursor,
    WebhookSecret,
    MailToken,
    SessionCookie,
    SessionForm,
    SignInBrowser,
    OperatorCookie,
    OperatorForm,
    OperatorKey,
    ProofOfWork,
    SentForm,
    SecondFactor,
}

/// What becomes of the keys of a purpose when the secret is rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRotation {
    /// There is one key for good: what it makes never changes.
    Carried,
    /// New keys make; those of older generations read until the generation is retired, even if it leaked.
    ReadUntilRetired,
    /// The same, but a generation that leaked reads nothing.
    ReadUnlessLeaked,
}

impl KeyPurpose {
    pub const ALL: [Self; 17] = [
        Self::ReferralCode,
        Self::WebhookMessage,
        Self::Sandbox,
        Self::AddressMark,
        Self::IdempotentInput,
        Self::EventCursor,
        Self::WebhookSecret,
        Self::MailToken,
        Self::SessionCookie,
        Self::SessionForm,
        Self::SignInBrowser,
        Self::OperatorCookie,
        Self::OperatorForm,
        Self::OperatorKey,
        Self::ProofOfWork,
        Self::SentForm,
        Self::SecondFactor,
    ];

    /// Fixed for good: what the key makes is out in the world.
    pub const fn label(self) -> &'static str {
        match self {
            Self::ReferralCode => "referral code",
            Self::WebhookMessage => "webhook message",
            Self::Sandbox => "sandbox",
            Self::AddressMark => "address mark",
            Self::IdempotentInput => "idempotent input",
            Self::EventCursor => "event cursor",
            Self::WebhookSecret => "webhook secret",
            Self::MailToken => "mail token",
            Self::SessionCookie => "session cookie",
            Self::SessionForm => "session form",
            Self::SignInBrowser => "sign-in browser",
            Self::OperatorCookie => "operator cookie",
            Self::OperatorForm => "operator form",
            Self::OperatorKey => "operator key",
            Self::ProofOfWork => "proof of work",
            Self::SentForm => "sent form",
            Self::SecondFactor => "second factor",
        }
    }

    pub const fn after_rotation(self) -> AfterRotation {
        match self {
            Self::ReferralCode | Self::WebhookMessage | Self::Sandbox => AfterRotation::Carried,
            Self::AddressMark
            | Self::IdempotentInput
            | Self::EventCursor
            | Self::WebhookSecret
            // It opens nothing by itself, and operators who need it must not be locked out at night.
            | Self::SecondFactor => AfterRotation::ReadUntilRetired,
            Self::MailToken
            | Self::SessionCookie
            | Self::SessionForm
            | Self::SignInBrowser
            | Self::OperatorCookie
            | Self::OperatorForm
            | Self::OperatorKey
            | Self::ProofOfWork
            | Self::SentForm => AfterRotation::ReadUnlessLeaked,
        }
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the secret is too short: it needs at least {} characters", Secret::SHORTEST)]
pub struct SecretTooShort;

/// One key, its bytes shown in no log and no error.
#[derive(Clone)]
struct Key {
    key: hmac::Key,
    bytes: [u8; 32],
}

impl Key {
    fn of(bytes: [u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &bytes), bytes }
    }

    fn derive(root: &hmac::Key, purpose: &str) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(hmac::sign(root, purpose.as_bytes()).as_ref());
        Self::of(bytes)
    }
}

/// The keys that never change, of the first generation or as a file carries them on.
#[derive(Clone)]
pub struct CarriedKeys {
    codes: Key,
    messages: Key,
    sandbox: Key,
}

impl CarriedKeys {
    pub fn of_bytes([codes, messages, sandbox]: [[u8; 32]; 3]) -> Self {
        Self { codes: Key::of(codes), messages: Key::of(messages), sandbox: Key::of(sandbox) }
    }

    /// What a file keeps of them.
    pub fn bytes(&self) -> [[u8; 32]; 3] {
        [self.codes.bytes, self.messages.bytes, self.sandbox.bytes]
    }
}

/// One generation of the secret: what its text gives.
#[derive(Clone)]
pub struct Generation {
    /// From 1 on.
    pub number: u32,
    /// From then on the service makes everything new with it; none for the first.
    pub begins_at: Option<Timestamp>,
    pub leaked_at: Option<Timestamp>,
    root: hmac::Key,
    keys: Arc<[Key; KeyPurpose::ALL.len()]>,
}

impl Generation {
    /// Takes the secret as text, without the white space around it (files end in a line break).
    pub fn new(number: u32, text: &str) -> Result<Self, SecretTooShort> {
        let text = text.trim();
        if text.chars().count() < Secret::SHORTEST {
            return Err(SecretTooShort);
        }
        Ok(Self::of_root(number, hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes())))
    }

    fn of_root(number: u32, root: hmac::Key) -> Self {
        let keys = KeyPurpose::ALL.map(|purpose| Key::derive(&root, purpose.label()));
        Self { number, begins_at: None, leaked_at: None, root, keys: Arc::new(keys) }
    }

    pub fn carried(&self) -> CarriedKeys {
        let key = |purpose| self.derived(purpose).clone();
        CarriedKeys {
            codes: key(KeyPurpose::ReferralCode),
            messages: key(KeyPurpose::WebhookMessage),
            sandbox: key(KeyPurpose::Sandbox),
        }
    }

    fn derived(&self, purpose: KeyPurpose) -> &Key {
        &self.keys[purpose as usize]
    }

    pub fn key(&self, purpose: KeyPurpose) -> &hmac::Key {
        &self.derived(purpose).key
    }

    /// Tells two texts apart without revealing either; kept in the store so that a node with another secret is noticed.
    pub fn fingerprint(&self) -> String {
        let tag = hmac::sign(&Key::derive(&self.root, "fingerprint").key, b"");
        base32::text::<16>(tag.as_ref())
    }

    fn begins(&self) -> Timestamp {
        self.begins_at.unwrap_or(Timestamp::from_millis(0))
    }
}

/// Every generation that is kept, and which of them does what now.
#[derive(Clone)]
pub struct Generations {
    carried: CarriedKeys,
    /// The newest first.
    list: Vec<Generation>,
    /// Which one makes everything new.
    current: usize,
    now: Timestamp,
    /// Whether a leak ended the current one, too, because its successor began and is not here.
    is_replaced: bool,
}

impl Generations {
    /// In any order; at least one. `now` decides which one makes everything new.
    pub fn new(carried: CarriedKeys, mut list: Vec<Generation>, now: Timestamp) -> Option<Self> {
        list.sort_by_key(|generation| std::cmp::Reverse(generation.number));
        let begun = list.iter().position(|generation| generation.begins() <= now);
        let current = begun.or_else(|| list.len().checked_sub(1))?;
        Some(Self { carried, list, current, now, is_replaced: false })
    }

    /// The same at another time.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        let current = self.list.iter().position(|generation| generation.begins() <= now);
        Self { current: current.unwrap_or(self.list.len() - 1), now, ..self }
    }

    /// The same where the successor of a leaked generation began and was not given to this node: it reads nothing that a leak ends.
    #[must_use]
    pub fn replaced(self) -> Self {
        Self { is_replaced: true, ..self }
    }

    pub fn is_replaced(&self) -> bool {
        self.is_replaced
    }

    pub fn current(&self) -> &Generation {
        &self.list[self.current]
    }

    pub fn all(&self) -> &[Generation] {
        &self.list
    }

    pub fn carried(&self) -> &CarriedKeys {
        &self.carried
    }

    /// What makes everything new for a purpose.
    pub fn newest(&self, purpose: KeyPurpose) -> &hmac::Key {
        match purpose {
            KeyPurpose::ReferralCode => &self.carried.codes.key,
            KeyPurpose::WebhookMessage => &self.carried.messages.key,
            KeyPurpose::Sandbox => &self.carried.sandbox.key,
            _ => self.current().key(purpose),
        }
    }

    /// The newest that there is, which may begin later: every node reads it already.
    pub fn newest_number(&self) -> u32 {
        self.list[0].number
    }

    /// What reads for a purpose, the newest first: also a generation that only other nodes make things with yet.
    pub fn reading(&self, purpose: KeyPurpose) -> impl Iterator<Item = &hmac::Key> {
        let kept = purpose.after_rotation() == AfterRotation::ReadUntilRetired;
        let reading = (0..self.list.len()).filter(move |at| kept || !self.is_ended(*at));
        reading.map(move |at| self.list[at].key(purpose))
    }

    /// The same for a way to say no of something that was made at a time. That works for a while after a leak, because people must be
    /// able to, but not for what came after it.
    pub fn reading_no(&self, purpose: KeyPurpose, made_at: Timestamp) -> impl Iterator<Item = &hmac::Key> {
        let reading = (0..self.list.len()).filter(move |at| {
            let successor = at.checked_sub(1).map(|at| self.list[at].begins());
            !self.is_ended(*at) || successor.is_some_and(|ended| made_at < ended && self.now < ended.plus(SAYS_NO_FOR))
        });
        reading.map(move |at| self.list[at].key(purpose))
    }

    /// Whether a leak ended one: not before its successor begins.
    fn is_ended(&self, at: usize) -> bool {
        self.list[at].leaked_at.is_some() && at > self.current || self.is_replaced
    }
}

/// The secret of an installation, shown in no log and no error. All who have it see a new generation at once.
#[derive(Clone)]
pub struct Secret(Arc<RwLock<Arc<Generations>>>);

impl Secret {
    pub const SHORTEST: usize = 32;

    pub fn of(generations: Generations) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(generations))))
    }

    /// A secret that was never rotated.
    pub fn new(text: &str) -> Result<Self, SecretTooShort> {
        Generation::new(1, text).map(Self::only)
    }

    fn only(generation: Generation) -> Self {
        let carried = generation.carried();
        let now = Timestamp::from_millis(0);
        Self::of(Generations { carried, list: vec![generation], current: 0, now, is_replaced: false })
    }

    pub fn generations(&self) -> Arc<Generations> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What a rotation made: everything that has this secret goes on with it.
    pub fn replace(&self, generations: Generations) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(generations);
    }

    /// Bytes for webhooks that leave this program, by HKDF-SHA256 (RFC 5869): its salt is the text of a generation, its key the
    /// purpose; none if that generation is not kept.
    pub fn hkdf(&self, number: u32, info: &[&[u8]]) -> Option<[u8; 32]> {
        let generations = self.generations();
        let generation = generations.list.iter().find(|generation| generation.number == number)?;
        let extracted = generation.derived(KeyPurpose::WebhookSecret).bytes;
        let mut bytes = [0; 32];
        let expanded = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, &extracted);
        let filled = expanded.expand(info, hkdf::HKDF_SHA256).and_then(|key| key.fill(&mut bytes));
        filled.expect("one hash's length can always be had");
        Some(bytes)
    }

    /// The sandbox's own secret: no token, code or link of the one means anything to the other. A rotation carries it on.
    #[must_use]
    pub fn of_sandbox(&self) -> Self {
        Self::only(Generation::of_root(1, self.generations().carried.sandbox.key.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn generation(number: u32, begins_at: Option<i64>, leaked_at: Option<i64>) -> Generation {
        let text = char::from_digit(number, 10).unwrap().to_string().repeat(32);
        let made = Generation::new(number, &text).unwrap();
        Generation { begins_at: begins_at.map(at), leaked_at: leaked_at.map(at), ..made }
    }

    fn tag(key: &hmac::Key) -> Vec<u8> {
        hmac::sign(key, b"x").as_ref().to_vec()
    }

    #[test]
    fn bytes_that_leave_are_those_of_hkdf() {
        let text = "x".repeat(32);
        let mut expected = [0; 32];
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, text.as_bytes());
        let prk = salt.extract(KeyPurpose::WebhookSecret.label().as_bytes());
        prk.expand(&[b"in", b"fo"], hkdf::HKDF_SHA256).unwrap().fill(&mut expected).unwrap();
        let secret = Secret::new(&text).unwrap();
        assert_eq!(secret.hkdf(1, &[b"info"]), Some(expected));
        assert_ne!(secret.hkdf(1, &[b"infO"]), Some(expected));
        assert_eq!(secret.hkdf(2, &[b"info"]), None);
    }

    #[test]
    fn white_space_around_it_does_not_matter_and_length_does() {
        let text = "x".repeat(32);
        let fingerprint = |text: &str| Generation::new(1, text).map(|generation| generation.fingerprint());
        let one = fingerprint(&text).unwrap();
        assert_eq!(fingerprint(&format!(" {text}\n")).as_ref(), Ok(&one));
        assert_ne!(fingerprint(&"y".repeat(32)).as_ref(), Ok(&one));
        assert_eq!(one.len(), 16);
        assert_eq!(fingerprint(&"x".repeat(31)), Err(SecretTooShort));
        assert_eq!(fingerprint(&" ".repeat(40)), Err(SecretTooShort));
    }

    #[test]
    fn labels_are_told_apart_and_purposes_are_in_order() {
        let labels: std::collections::BTreeSet<_> = KeyPurpose::ALL.iter().map(|purpose| purpose.label()).collect();
        assert_eq!(labels.len(), KeyPurpose::ALL.len());
        assert!(KeyPurpose::ALL.iter().enumerate().all(|(at, purpose)| *purpose as usize == at));
    }

    #[test]
    fn a_new_generation_makes_from_its_time_on_and_reads_before() {
        let (first, second) = (generation(1, None, None), generation(2, Some(100), None));
        let carried = first.carried();
        let all = Generations::new(carried, vec![first.clone(), second.clone()], at(99)).unwrap();
        assert_eq!(all.current().number, 1);
        let reading = |all: &Generations, purpose| all.reading(purpose).map(tag).collect::<Vec<_>>();
        let tags = |purpose| [&second, &first].map(|generation| tag(generation.key(purpose))).to_vec();
        assert_eq!(reading(&all, KeyPurpose::SessionCookie), tags(KeyPurpose::SessionCookie), "other nodes' clocks");
        let all = all.at(at(100));
        assert_eq!(all.current().number, 2);
        assert_eq!(tag(all.newest(KeyPurpose::MailToken)), tags(KeyPurpose::MailToken)[0]);
        assert_eq!(reading(&all, KeyPurpose::MailToken), tags(KeyPurpose::MailToken));
        for carried in [KeyPurpose::ReferralCode, KeyPurpose::WebhookMessage, KeyPurpose::Sandbox] {
            assert_eq!(carried.after_rotation(), AfterRotation::Carried);
            assert_eq!(tag(all.newest(carried)), tag(first.key(carried)));
        }
    }

    #[test]
    fn what_leaked_reads_marks_for_good_and_a_no_for_a_while() {
        let (first, second) = (generation(1, None, Some(50)), generation(2, Some(100), None));
        let all = Generations::new(first.carried(), vec![first, second], at(99)).unwrap();
        let count = |all: &Generations, purpose| all.reading(purpose).count();
        assert_eq!(count(&all, KeyPurpose::SessionCookie), 2, "nothing ends before the next one begins");
        let all = all.at(at(100));
        assert_eq!(count(&all, KeyPurpose::SessionCookie), 1);
        assert_eq!(count(&all, KeyPurpose::AddressMark), 2);
        assert_eq!(all.reading_no(KeyPurpose::MailToken, at(99)).count(), 2);
        assert_eq!(all.reading_no(KeyPurpose::MailToken, at(100)).count(), 1, "made after the leak");
        assert_eq!(count(&all.clone().replaced(), KeyPurpose::SessionCookie), 0);
        assert_eq!(all.at(at(100).plus(SAYS_NO_FOR)).reading_no(KeyPurpose::MailToken, at(99)).count(), 1);
    }

    #[test]
    fn all_who_have_it_see_a_new_generation() {
        let secret = Secret::new(&"1".repeat(32)).unwrap();
        let (theirs, sandbox) = (secret.clone(), secret.of_sandbox());
        let before = secret.generations();
        let list = vec![generation(1, None, None), generation(2, Some(0), None)];
        secret.replace(Generations::new(before.carried().clone(), list, at(1)).unwrap());
        assert_eq!(theirs.generations().current().number, 2);
        assert_eq!(sandbox.generations().current().number, 1);
        let print = |secret: &Secret| secret.generations().current().fingerprint();
        assert_eq!(print(&theirs.of_sandbox()), print(&sandbox), "carried on");
        assert_ne!(print(&sandbox), print(&Secret::new(&"1".repeat(32)).unwrap()));
    }
}
