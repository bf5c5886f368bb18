//! A proof of work: what a browser does for a form while its source is throttled, so that a person's mail passes and a flood
//! costs something. Ours, bound to this form, good once and for a while.
//!
//! The question is a text with its end and a keyed hash, so that nothing is kept until it is answered. The answer is a
//! number that, written behind it, gives a SHA-256 that begins with enough zero bits. The crates that do this (altcha,
//! mcaptcha) bring a second set of hash functions beside ring, and a page of script beside ours.

use std::time::Duration;

use ring::{digest, hmac};
use subtle::ConstantTimeEq;

use super::{KeyPurpose, Secret};
use crate::domain::base32;
use crate::domain::time::Timestamp;

/// How many zero bits an answer's hash begins with: about 260,000 tries, a second or two on a phone.
pub const BITS: u32 = 18;

/// How long a question may be answered: somebody may leave the page open for a while.
const ASKED_FOR: Duration = Duration::from_secs(2 * 3600);

/// Characters of the random part and of the keyed hash. Together they are longer than a block of SHA-256, which the page's
/// script then hashes only once.
const NONCE: usize = 16;
const SEAL: usize = 40;

/// The random bytes that a question is made of.
pub const ENTROPY: usize = 10;

/// A question of ours whose answer was right; still to be used, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    pub name: String,
    pub ends_at: Timestamp,
}

/// What came with a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofCheck {
    Right(Proof),
    /// A question of ours without an answer: that browser runs no scripts.
    Not,
    /// No question of ours, or it is too old, or the answer is wrong.
    Wrong,
}

pub struct ProofMaker(Secret);

impl ProofMaker {
    pub fn new(secret: &Secret) -> Self {
        Self(secret.clone())
    }

    /// A question to put into a form.
    pub fn ask(&self, random: &[u8; ENTROPY], now: Timestamp) -> String {
        let asked = format!("{}.{}", now.plus(ASKED_FOR).as_millis(), base32::text::<NONCE>(random));
        format!("{asked}.{}", seal_with(self.0.generations().newest(KeyPurpose::ProofOfWork), &asked))
    }

    /// What a question and its answer are worth.
    pub fn check(&self, question: &str, answer: &str, now: Timestamp) -> ProofCheck {
        let Some(proof) = self.read(question, now) else { return ProofCheck::Wrong };
        match answer {
            "" => ProofCheck::Not,
            _ if answer.len() <= 20 && zero_bits(question, answer) >= BITS => ProofCheck::Right(proof),
            _ => ProofCheck::Wrong,
        }
    }

    fn read(&self, question: &str, now: Timestamp) -> Option<Proof> {
        let (asked, seal) = question.rsplit_once('.')?;
        let is_of = |key| bool::from(seal_with(key, asked).as_bytes().ct_eq(seal.as_bytes()));
        if !self.0.generations().reading(KeyPurpose::ProofOfWork).any(is_of) {
            return None;
        }
        let (end, nonce) = asked.split_once('.')?;
        let ends_at = Timestamp::from_millis(end.parse().ok()?);
        (ends_at > now).then(|| Proof { name: nonce.to_owned(), ends_at })
    }

    /// A name for a site, so that its answers can be counted without knowing whose they were.
    pub fn site_name(&self, site: &[u8]) -> String {
        let generations = self.0.generations();
        let key = generations.newest(KeyPurpose::ProofOfWork);
        base32::text::<NONCE>(hmac::sign(key, &[b"site ", site].concat()).as_ref())
    }
}

fn seal_with(key: &hmac::Key, asked: &str) -> String {
    base32::text::<SEAL>(hmac::sign(key, asked.as_bytes()).as_ref())
}

fn zero_bits(question: &str, answer: &str) -> u32 {
    let hash = digest::digest(&digest::SHA256, format!("{question}:{answer}").as_bytes());
    let (first, _) = hash.as_ref().split_at(8);
    first.try_into().map_or(0, |bytes| u64::from_be_bytes(bytes).leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn an_answer_is_good_for_its_question_and_its_time_alone() {
        let maker = ProofMaker::new(&Secret::new(&"a".repeat(32)).unwrap());
        let other = ProofMaker::new(&Secret::new(&"b".repeat(32)).unwrap());
        let question = maker.ask(&[7; ENTROPY], at(1000));
        assert_ne!(question, maker.ask(&[8; ENTROPY], at(1000)));
        let answer = (0_u64..).map(|n| n.to_string()).find(|n| zero_bits(&question, n) >= BITS).unwrap();
        let ProofCheck::Right(proof) = maker.check(&question, &answer, at(2000)) else { panic!("refused") };
        assert_eq!(proof.ends_at, at(1000 + 7_200_000));
        assert_eq!(maker.check(&question, "", at(2000)), ProofCheck::Not);
        for (question, answer, when) in [
            (question.as_str(), "0", 2000),
            (&question, &answer, 1000 + 7_200_000),
            (&question.replacen('.', "0.", 1), &answer, 2000),
            (&question[1..], &answer, 2000),
            ("", &answer, 2000),
            ("a.b.c", &answer, 2000),
            (&question, &"9".repeat(1000), 2000),
        ] {
            assert_eq!(maker.check(question, answer, at(when)), ProofCheck::Wrong, "{question} {answer}");
        }
        assert_eq!(other.check(&question, &answer, at(2000)), ProofCheck::Wrong);
    }
}
