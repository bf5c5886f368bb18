//! The tokens in a mail's links: which sign-up or request to sign in they are about and what they may do, proved by a keyed hash.
//!
//! They are made anew whenever they are needed and kept nowhere, so a mail that is sent again carries the same link, and
//! whoever steals the database can confirm nothing.

use ring::hmac;

use super::Secret;
use crate::domain::base32;
use crate::domain::sign_in::{SignInCode, SignInId};
use crate::domain::sign_up::SignUpId;

/// What a token lets its holder do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Confirm,
    /// "This wasn't me", and unsubscribing with one click.
    Decline,
    /// Saying what became of a mail: the return path that it leaves with (VERP).
    Bounce,
    /// Opening one's own page.
    SignIn,
}

impl Purpose {
    const fn label(self) -> &'static [u8] {
        match self {
            Self::Confirm => b"confirm",
            Self::Decline => b"decline",
            Self::Bounce => b"bounce",
            Self::SignIn => b"sign in",
        }
    }
}

/// Five bits a character: 65 for the id, 130 for the proof.
const ID: usize = 13;
const PROOF: usize = 26;

#[derive(Debug, Clone)]
pub struct TokenMaker(hmac::Key);

impl TokenMaker {
    pub fn new(secret: &Secret) -> Self {
        Self(secret.derive("mail token"))
    }

    pub fn token(&self, purpose: Purpose, sign_up: SignUpId) -> String {
        self.write(purpose, sign_up.0)
    }

    /// The sign-up that a token is about, if it is one of ours for this purpose.
    pub fn read(&self, purpose: Purpose, token: &str) -> Option<SignUpId> {
        self.read_number(purpose, token).map(SignUpId)
    }

    /// The token of the link that a request to sign in is answered with.
    pub fn sign_in_token(&self, sign_in: SignInId) -> String {
        self.write(Purpose::SignIn, sign_in.0)
    }

    pub fn read_sign_in(&self, token: &str) -> Option<SignInId> {
        self.read_number(Purpose::SignIn, token).map(SignInId)
    }

    /// The code that stands beside that link.
    pub fn sign_in_code(&self, sign_in: SignInId) -> SignInCode {
        SignInCode::from_bits(self.sign(b"sign-in code", sign_in.0).as_ref())
    }

    fn write(&self, purpose: Purpose, number: i64) -> String {
        let id: [u8; ID] = base32::encode(&number.to_be_bytes());
        [&id[..], &self.proof(purpose, number)].concat().into_iter().map(char::from).collect()
    }

    fn read_number(&self, purpose: Purpose, token: &str) -> Option<i64> {
        use subtle::ConstantTimeEq;
        let token = token.as_bytes();
        if token.len() != ID + PROOF {
            return None;
        }
        let (id, proof) = token.split_at(ID);
        let number = i64::from_be_bytes(base32::decode(id)?);
        bool::from(self.proof(purpose, number).ct_eq(proof)).then_some(number)
    }

    /// An id for one mail that stays the same however often it is sent.
    pub fn mail_id(&self, mail: i64) -> String {
        let tag = self.sign(b"mail", mail);
        base32::encode::<16>(tag.as_ref()).into_iter().map(char::from).collect()
    }

    /// An id for the mail that tells that an endpoint was disabled at a time.
    pub fn endpoint_mail_id(&self, endpoint: i64, at: i64) -> String {
        let tag = self.sign(b"endpoint mail", endpoint.wrapping_mul(31).wrapping_add(at));
        base32::encode::<16>(tag.as_ref()).into_iter().map(char::from).collect()
    }

    /// What opens the mailbox of a development server.
    pub fn mailbox_key(&self) -> String {
        base32::encode::<16>(self.sign(b"mailbox", 0).as_ref()).into_iter().map(char::from).collect()
    }

    /// What opens the page of a partner's inbox in the sandbox.
    pub fn inbox_token(&self, partner: &str) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(b"inbox\0");
        context.update(partner.as_bytes());
        base32::encode::<PROOF>(context.sign().as_ref()).into_iter().map(char::from).collect()
    }

    fn proof(&self, purpose: Purpose, number: i64) -> [u8; PROOF] {
        base32::encode(self.sign(purpose.label(), number).as_ref())
    }

    fn sign(&self, label: &[u8], number: i64) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(label);
        context.update(&number.to_be_bytes());
        context.sign()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_its_purpose_its_sign_up_and_its_installation_alone() {
        let maker = TokenMaker::new(&Secret::new(&"a".repeat(32)).unwrap());
        let other = TokenMaker::new(&Secret::new(&"b".repeat(32)).unwrap());
        for id in [1, 2, 77, i64::MAX, -1] {
            let token = maker.token(Purpose::Confirm, SignUpId(id));
            assert_eq!(token.len(), 39);
            assert_eq!(token, maker.token(Purpose::Confirm, SignUpId(id)), "the same each time");
            assert_eq!(maker.read(Purpose::Confirm, &token), Some(SignUpId(id)));
            assert_eq!(maker.read(Purpose::Decline, &token), None);
            assert_eq!(maker.read_sign_in(&token), None);
            assert_eq!(maker.read_sign_in(&maker.sign_in_token(SignInId(id))), Some(SignInId(id)));
            assert_eq!(other.read(Purpose::Confirm, &token), None);
            for at in 0..token.len() {
                let mut bad = token.clone();
                bad.replace_range(at..=at, if &token[at..=at] == "0" { "1" } else { "0" });
                assert!(maker.read(Purpose::Confirm, &bad).is_none(), "{at}");
            }
        }
        for bad in ["", "x", &"0".repeat(39), &"é".repeat(39), &"u".repeat(39), &"0".repeat(1000)] {
            assert_eq!(maker.read(Purpose::Confirm, bad), None);
        }
    }
}
