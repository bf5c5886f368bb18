//! The tokens in a mail's links: which sign-up or request to sign in they are about and what they may do, proved by a keyed hash.
//!
//! They name its id and when it was made: a database that was restored, or that lost its last rows with a failed server, gives
//! ids out again, but never with the time of another. An old link is then about nothing, and not about somebody else.
//!
//! They are derived when they are needed and stored nowhere, so a mail that is sent again has the same link, and a stolen
//! database confirms nothing.

use ring::hmac;

use super::{KeyPurpose, Secret};
use crate::domain::base32;
use crate::domain::campaign::CampaignMail;
use crate::domain::mail::PersonRef;
use crate::domain::sign_in::{SignInCode, SignInId, SignInRef};
use crate::domain::sign_up::{SignUpId, SignUpRef};
use crate::domain::time::Timestamp;

/// What a token lets its holder do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Confirm,
    /// "This wasn't me", and unsubscribing with one click.
    Decline,
    /// Saying what became of a mail: the return path that it leaves with (VERP).
    Bounce,
    /// The same of a mail about a campaign, whose token names a person.
    BounceOfPerson,
    /// Opening one's own page.
    SignIn,
    /// Switching off a kind of mail, whose token names a person.
    Unsubscribe(CampaignMail),
}

impl Purpose {
    const fn label(self) -> &'static [u8] {
        match self {
            Self::Confirm => b"confirm",
            Self::Decline => b"decline",
            Self::Bounce => b"bounce",
            Self::BounceOfPerson => b"bounce of person",
            Self::SignIn => b"sign in",
            Self::Unsubscribe(CampaignMail::Opened) => b"unsubscribe campaign_opened",
            Self::Unsubscribe(CampaignMail::Offer) => b"unsubscribe campaign_offer",
            Self::Unsubscribe(CampaignMail::Result) => b"unsubscribe campaign_result",
        }
    }
}

/// Five bits a character: 65 for the id, 65 for the time, 130 for the proof.
const NUMBER: usize = 13;
const PROOF: usize = 26;

#[derive(Clone)]
pub struct TokenMaker(Secret);

impl TokenMaker {
    pub fn new(secret: &Secret) -> Self {
        Self(secret.clone())
    }

    /// Whether what it makes is dead already: its secret leaked, and this node lacks the next one.
    pub fn is_replaced(&self) -> bool {
        self.0.generations().is_replaced()
    }

    pub fn token(&self, purpose: Purpose, sign_up: SignUpRef) -> String {
        self.write(purpose, sign_up.id.0, sign_up.created_at)
    }

    /// The sign-up that a token is about, if it is one of ours for this purpose.
    pub fn read(&self, purpose: Purpose, token: &str) -> Option<SignUpRef> {
        self.verify(purpose, token, false).map(|(id, created_at)| SignUpRef { id: SignUpId(id), created_at })
    }

    /// The same for saying no and nothing else, which works for a while after the secret leaked.
    pub fn read_no(&self, purpose: Purpose, token: &str) -> Option<SignUpRef> {
        self.verify(purpose, token, true).map(|(id, created_at)| SignUpRef { id: SignUpId(id), created_at })
    }

    /// A token that names a person.
    pub fn person_token(&self, purpose: Purpose, person: PersonRef) -> String {
        self.write(purpose, person.id, person.created_at)
    }

    pub fn read_person(&self, purpose: Purpose, token: &str) -> Option<PersonRef> {
        // Such a token only switches mail off, or reports what became of it.
        self.verify(purpose, token, true).map(|(id, created_at)| PersonRef { id, created_at })
    }

    /// The kind of mail that a token switches off, and for whom.
    pub fn read_unsubscribe(&self, token: &str) -> Option<(CampaignMail, PersonRef)> {
        let read = |kind| Some((kind, self.read_person(Purpose::Unsubscribe(kind), token)?));
        CampaignMail::ALL.into_iter().find_map(read)
    }

    /// The token of the link that a request to sign in is answered with.
    pub fn sign_in_token(&self, sign_in: SignInRef) -> String {
        self.write(Purpose::SignIn, sign_in.id.0, sign_in.created_at)
    }

    pub fn read_sign_in(&self, token: &str) -> Option<SignInRef> {
        self.verify(Purpose::SignIn, token, false).map(|(id, created_at)| SignInRef { id: SignInId(id), created_at })
    }

    /// The code that stands beside that link.
    pub fn sign_in_code(&self, sign_in: SignInRef) -> SignInCode {
        sign_in_code_with(self.0.generations().newest(KeyPurpose::MailToken), sign_in)
    }

    /// Whether a typed code is that of a request, also of one that was mailed before a rotation.
    pub fn is_sign_in_code(&self, sign_in: SignInRef, code: &SignInCode) -> bool {
        let generations = self.0.generations();
        generations.reading(KeyPurpose::MailToken).any(|key| sign_in_code_with(key, sign_in).matches(code))
    }

    fn write(&self, purpose: Purpose, id: i64, created_at: Timestamp) -> String {
        let number = |number: i64| base32::text::<NUMBER>(&number.to_be_bytes());
        let generations = self.0.generations();
        let proof = proof_with(generations.newest(KeyPurpose::MailToken), purpose, id, created_at);
        [number(id), number(created_at.as_millis()), proof].concat()
    }

    fn verify(&self, purpose: Purpose, token: &str, is_no: bool) -> Option<(i64, Timestamp)> {
        use subtle::ConstantTimeEq;
        let token = token.as_bytes();
        if token.len() != NUMBER + NUMBER + PROOF {
            return None;
        }
        let (id, rest) = token.split_at(NUMBER);
        let (created_at, proof) = rest.split_at(NUMBER);
        let number = |text| base32::decode(text).map(i64::from_be_bytes);
        let (id, created_at) = (number(id)?, Timestamp::from_millis(number(created_at)?));
        let generations = self.0.generations();
        let is_of = |key| bool::from(proof_with(key, purpose, id, created_at).as_bytes().ct_eq(proof));
        let is_ours = match is_no {
            true => generations.reading_no(KeyPurpose::MailToken, created_at).any(is_of),
            false => generations.reading(KeyPurpose::MailToken).any(is_of),
        };
        is_ours.then_some((id, created_at))
    }

    /// An id for one mail that stays the same however often it is sent.
    pub fn mail_id(&self, mail: i64) -> String {
        base32::text::<16>(self.sign(b"mail", &[mail]).as_ref())
    }

    /// An id for the mail about an endpoint that was disabled at a time.
    pub fn endpoint_mail_id(&self, endpoint: i64, at: i64) -> String {
        base32::text::<16>(self.sign(b"endpoint mail", &[endpoint, at]).as_ref())
    }

    /// Names the mail about a change that a partner made.
    pub fn change_mail_id(&self, change: i64, at: i64) -> String {
        base32::text::<16>(self.sign(b"change mail", &[change, at]).as_ref())
    }

    /// What opens the mailbox of a development server.
    pub fn mailbox_key(&self) -> String {
        base32::text::<16>(self.sign(b"mailbox", &[]).as_ref())
    }

    /// What opens the page of a partner's inbox in the sandbox.
    pub fn inbox_token(&self, partner: &str) -> String {
        let generations = self.0.generations();
        let key = generations.newest(KeyPurpose::MailToken);
        base32::text::<PROOF>(hmac::sign(key, &[b"inbox\0", partner.as_bytes()].concat()).as_ref())
    }

    fn sign(&self, label: &[u8], numbers: &[i64]) -> hmac::Tag {
        sign_with(self.0.generations().newest(KeyPurpose::MailToken), label, numbers)
    }
}

fn sign_in_code_with(key: &hmac::Key, sign_in: SignInRef) -> SignInCode {
    let numbers = [sign_in.id.0, sign_in.created_at.as_millis()];
    SignInCode::from_bits(sign_with(key, b"sign-in code", &numbers).as_ref())
}

fn proof_with(key: &hmac::Key, purpose: Purpose, id: i64, created_at: Timestamp) -> String {
    base32::text::<PROOF>(sign_with(key, purpose.label(), &[id, created_at.as_millis()]).as_ref())
}

fn sign_with(key: &hmac::Key, label: &[u8], numbers: &[i64]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(key);
    context.update(label);
    numbers.iter().for_each(|number| context.update(&number.to_be_bytes()));
    context.sign()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_its_purpose_its_sign_up_and_its_installation_alone() {
        let maker = TokenMaker::new(&Secret::new(&"a".repeat(32)).unwrap());
        let other = TokenMaker::new(&Secret::new(&"b".repeat(32)).unwrap());
        for (id, time) in [(1, 0), (1, 1), (2, 0), (77, 1_790_000_000_123), (i64::MAX, i64::MAX), (-1, -1)] {
            let created_at = Timestamp::from_millis(time);
            let (sign_up, sign_in) =
                (SignUpRef { id: SignUpId(id), created_at }, SignInRef { id: SignInId(id), created_at });
            let token = maker.token(Purpose::Confirm, sign_up);
            assert_eq!(token.len(), 52);
            assert_eq!(token, maker.token(Purpose::Confirm, sign_up), "the same each time");
            assert_eq!(maker.read(Purpose::Confirm, &token), Some(sign_up));
            assert_eq!(maker.read(Purpose::Decline, &token), None);
            assert_eq!(maker.read_sign_in(&token), None);
            assert_eq!(maker.read_sign_in(&maker.sign_in_token(sign_in)), Some(sign_in));
            assert_eq!(other.read(Purpose::Confirm, &token), None);
            let person = PersonRef { id, created_at };
            for kind in CampaignMail::ALL {
                let token = maker.person_token(Purpose::Unsubscribe(kind), person);
                assert_eq!(maker.read_unsubscribe(&token), Some((kind, person)));
                assert_eq!(maker.read_person(Purpose::BounceOfPerson, &token), None);
            }
            assert_eq!(maker.read_unsubscribe(&token), None);
            for at in 0..token.len() {
                let mut bad = token.clone();
                bad.replace_range(at..=at, if &token[at..=at] == "0" { "1" } else { "0" });
                assert!(maker.read(Purpose::Confirm, &bad).is_none(), "{at}");
            }
        }
        for bad in ["", "x", &"0".repeat(52), &"é".repeat(26), &"u".repeat(52), &"0".repeat(1000)] {
            assert_eq!(maker.read(Purpose::Confirm, bad), None);
        }
    }
}
