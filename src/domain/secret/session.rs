//! The cookies of a member's own page, and the tokens of its forms (CSRF): proven by keyed hashes, so that a stolen database
//! opens no session.

use ring::hmac;
use std::fmt;
use subtle::ConstantTimeEq;

use super::{KeyPurpose, Secret};
use crate::domain::base32;
use crate::domain::email::EmailAddress;
use crate::domain::json::named_enum;
use crate::domain::time::Timestamp;

/// Bytes of randomness in a nonce.
pub const NONCE: usize = 16;

/// Five bits a character.
const NONCE_LENGTH: usize = 26;
const PROOF: usize = 26;

/// Something random that is kept for a person, or in a browser.
#[derive(Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce(…)")
    }
}

impl Nonce {
    pub fn from_random(bytes: &[u8; NONCE]) -> Self {
        Self(base32::text::<NONCE_LENGTH>(bytes))
    }

    /// Reads one that was written down.
    pub fn read(text: &str) -> Option<Self> {
        (text.len() == NONCE_LENGTH && base32::is_canonical(text.as_bytes())).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

named_enum! {
    /// How somebody came to be signed in, as the cookie says it.
    pub enum SignedInBy {
        /// With the link or the code that was mailed for it.
        Mail = "mail",
        /// By the button that made them a member. A program that follows mailed links may have pressed it, so such a session
        /// cannot export, leave or erase.
        Joining = "join",
    }
}

impl SignedInBy {
    pub const fn may_export_leave_and_erase(self) -> bool {
        matches!(self, Self::Mail)
    }
}

/// A cookie of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCookie {
    /// Of the person: all their browsers have the same.
    pub nonce: Nonce,
    pub by: SignedInBy,
    pub ends_at: Timestamp,
    /// By which it is remembered once its browser was signed out: a copy of it works no longer either.
    pub name: String,
}

#[derive(Clone)]
pub struct SessionMaker(Secret);

impl SessionMaker {
    pub fn new(secret: &Secret) -> Self {
        Self(secret.clone())
    }

    /// What a browser keeps: the person's nonce, until when it works, how they signed in, and the proof of all three. Nothing in
    /// it names the person.
    pub fn cookie(&self, session: &Nonce, ends_at: Timestamp, by: SignedInBy) -> String {
        let ends_at = ends_at.as_millis();
        let proof = cookie_proof(self.0.generations().newest(KeyPurpose::SessionCookie), session, ends_at, by);
        format!("{}.{ends_at}.{}.{proof}", session.0, by.name())
    }

    /// What a cookie says that is ours and has not ended.
    pub fn read_cookie(&self, cookie: &str, now: Timestamp) -> Option<SessionCookie> {
        let mut parts = cookie.split('.');
        let (nonce, millis) = (Nonce::read(parts.next()?)?, parts.next()?.parse().ok()?);
        let (by, proof) = (SignedInBy::from_name(parts.next()?)?, parts.next()?);
        let is_of = |key| bool::from(cookie_proof(key, &nonce, millis, by).as_bytes().ct_eq(proof.as_bytes()));
        let is_ours = self.0.generations().reading(KeyPurpose::SessionCookie).any(is_of);
        let ends_at = Timestamp::from_millis(millis);
        let is_good = is_ours && parts.next().is_none() && ends_at > now;
        is_good.then(|| SessionCookie { nonce, by, ends_at, name: format!("cookie {proof}") })
    }

    /// What every form of a session carries.
    pub fn csrf_token(&self, session: &Nonce) -> String {
        proof(self.0.generations().newest(KeyPurpose::SessionForm), &[session.0.as_bytes()])
    }

    pub fn is_csrf_token(&self, session: &Nonce, token: &str) -> bool {
        let is_of = |key| bool::from(proof(key, &[session.0.as_bytes()]).as_bytes().ct_eq(token.as_bytes()));
        self.0.generations().reading(KeyPurpose::SessionForm).any(is_of)
    }

    /// What is remembered of the browser that asked to sign in with an address: not its nonce, and not the address.
    pub fn browser(&self, nonce: &Nonce, email: &EmailAddress) -> String {
        browser_with(self.0.generations().newest(KeyPurpose::SignInBrowser), nonce, email)
    }

    /// The same as any kept generation of the secret would have made it, the newest first.
    pub fn browsers(&self, nonce: &Nonce, email: &EmailAddress) -> Vec<String> {
        let generations = self.0.generations();
        generations.reading(KeyPurpose::SignInBrowser).map(|key| browser_with(key, nonce, email)).collect()
    }
}

fn cookie_proof(key: &hmac::Key, session: &Nonce, ends_at: i64, by: SignedInBy) -> String {
    proof(key, &[session.0.as_bytes(), &ends_at.to_be_bytes(), by.name().as_bytes()])
}

fn browser_with(key: &hmac::Key, nonce: &Nonce, email: &EmailAddress) -> String {
    proof(key, &[nonce.0.as_bytes(), email.normalized().as_bytes()])
}

pub(super) fn proof(key: &hmac::Key, parts: &[&[u8]]) -> String {
    let mut sum = hmac::Context::with_key(key);
    parts.iter().for_each(|part| sum.update(part));
    base32::text::<PROOF>(sum.sign().as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_its_nonce_its_time_its_sign_in_and_its_installation_alone() {
        let maker = |secret: &str| SessionMaker::new(&Secret::new(&secret.repeat(32)).unwrap());
        let (ours, at) = (maker("a"), Timestamp::from_millis);
        let (one, two) = (Nonce::from_random(&[1; NONCE]), Nonce::from_random(&[2; NONCE]));
        let cookie = ours.cookie(&one, at(1000), SignedInBy::Joining);
        let read = ours.read_cookie(&cookie, at(999)).unwrap();
        assert_eq!((&read.nonce, read.ends_at, read.by), (&one, at(1000), SignedInBy::Joining));
        assert!(!read.by.may_export_leave_and_erase());
        let mailed = ours.read_cookie(&ours.cookie(&one, at(1000), SignedInBy::Mail), at(0)).unwrap();
        assert!(mailed.by.may_export_leave_and_erase());
        assert_ne!(
            ours.read_cookie(&ours.cookie(&one, at(1001), read.by), at(0)).unwrap().name,
            read.name,
            "each browser's own"
        );
        assert_eq!(ours.read_cookie(&cookie, at(1000)), None, "it has ended");
        assert_eq!(maker("b").read_cookie(&cookie, at(0)), None);
        for forged in [
            cookie.replace(one.as_str(), two.as_str()),
            cookie.replace(".1000.", ".2000."),
            cookie.replace(".join.", ".mail."),
            cookie.replace(".join.", ".x."),
            cookie.replace(".join.", "."),
            format!("{cookie}.x"),
            format!("{cookie}x"),
            cookie.replace('.', ""),
            String::new(),
        ] {
            assert_eq!(ours.read_cookie(&forged, at(0)), None, "{forged}");
        }
        assert!(ours.is_csrf_token(&one, &ours.csrf_token(&one)));
        assert!(!ours.is_csrf_token(&one, &ours.csrf_token(&two)) && !ours.is_csrf_token(&one, ""));
        assert_ne!(ours.csrf_token(&one), cookie.split('.').nth(3).unwrap());
        let email = |text: &str| EmailAddress::parse(text).unwrap();
        assert_eq!(ours.browser(&one, &email("ana@example.com")), ours.browser(&one, &email("ANA@example.com")));
        assert_ne!(ours.browser(&one, &email("ana@example.com")), ours.browser(&one, &email("ben@example.com")));
        assert_eq!(Nonce::read(one.as_str()), Some(one.clone()));
        assert!(Nonce::read("x").is_none() && !format!("{one:?}").contains(one.as_str()));
    }
}
