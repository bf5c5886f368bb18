//! The cookie of the operator's page, and the tokens of its forms (CSRF). A cookie carries a keyed hash, so that a made-up one is
//! refused before the store is asked; the store keeps hashes alone.

use ring::{digest, hmac};
use subtle::ConstantTimeEq;

use super::Secret;
use super::session::{Nonce, proof};
use crate::domain::api_key::ApiKey;
use crate::domain::base32;
use crate::domain::operator::OperatorName;

/// Whose form it is.
#[derive(Clone, Copy)]
pub enum FormOwner<'a> {
    /// A session's.
    Session(&'a Nonce),
    /// Somebody's whom a proxy names in a header.
    Named(&'a OperatorName),
}

#[derive(Clone)]
pub struct OperatorProofs {
    cookies: hmac::Key,
    forms: hmac::Key,
    keys: hmac::Key,
}

impl OperatorProofs {
    pub fn new(secret: &Secret) -> Self {
        let key = |purpose| secret.derive(purpose);
        Self { cookies: key("operator cookie"), forms: key("operator form"), keys: key("operator key") }
    }

    /// What a browser keeps.
    pub fn cookie(&self, session: &Nonce) -> String {
        format!("{}.{}", session.as_str(), self.cookie_proof(session))
    }

    /// The session of a cookie that is ours.
    pub fn read_cookie(&self, cookie: &str) -> Option<Nonce> {
        let (nonce, proof) = cookie.split_once('.')?;
        let session = Nonce::read(nonce)?;
        bool::from(self.cookie_proof(&session).as_bytes().ct_eq(proof.as_bytes())).then_some(session)
    }

    fn cookie_proof(&self, session: &Nonce) -> String {
        proof(&self.cookies, &[session.as_str().as_bytes()])
    }

    /// What the key of a form is made of.
    pub fn key_bytes(&self, form: &Nonce) -> [u8; ApiKey::ENTROPY] {
        let tag = hmac::sign(&self.keys, form.as_str().as_bytes());
        std::array::from_fn(|i| tag.as_ref()[i])
    }

    /// What every form carries.
    pub fn form_token(&self, owner: FormOwner<'_>) -> String {
        let (kind, text): (&[u8], _) = match owner {
            FormOwner::Session(session) => (b"session ", session.as_str()),
            FormOwner::Named(name) => (b"name ", name.as_str()),
        };
        proof(&self.forms, &[kind, text.as_bytes()])
    }

    pub fn is_form_token(&self, owner: FormOwner<'_>, token: &str) -> bool {
        self.form_token(owner).as_bytes().ct_eq(token.as_bytes()).into()
    }
}

/// What the store keeps of a link's or a session's token. A plain hash is enough: 128 random bits cannot be searched.
pub fn token_hash(token: &Nonce) -> String {
    base32::text::<52>(digest::digest(&digest::SHA256, token.as_str().as_bytes()).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::secret::session::{NONCE, SessionMaker, SignedInBy};
    use crate::domain::time::Timestamp;

    #[test]
    fn a_cookie_is_of_its_installation_and_of_this_page_alone() {
        let secret = |text: &str| Secret::new(&text.repeat(32)).unwrap();
        let (ours, theirs) = (OperatorProofs::new(&secret("a")), OperatorProofs::new(&secret("b")));
        let (one, two) = (Nonce::from_random(&[1; NONCE]), Nonce::from_random(&[2; NONCE]));
        let cookie = ours.cookie(&one);
        assert_eq!(ours.read_cookie(&cookie), Some(one.clone()));
        assert_eq!(theirs.read_cookie(&cookie), None);
        let members = SessionMaker::new(&secret("a"));
        let member = members.cookie(&one, Timestamp::from_millis(i64::MAX), SignedInBy::Mail);
        assert!(members.read_cookie(&cookie, Timestamp::from_millis(0)).is_none());
        for forged in [
            member.as_str(),
            &cookie.replace(one.as_str(), two.as_str()),
            &format!("{cookie}.x"),
            one.as_str(),
            "",
            ".",
        ] {
            assert_eq!(ours.read_cookie(forged), None, "{forged}");
        }
    }

    #[test]
    fn a_form_token_is_of_its_owner_alone() {
        let ours = OperatorProofs::new(&Secret::new(&"a".repeat(32)).unwrap());
        let (one, two) = (Nonce::from_random(&[1; NONCE]), Nonce::from_random(&[2; NONCE]));
        // A name that is spelled as a session is no session.
        let named: OperatorName = one.as_str().parse().unwrap();
        let token = ours.form_token(FormOwner::Session(&one));
        assert!(ours.is_form_token(FormOwner::Session(&one), &token));
        for other in [FormOwner::Session(&two), FormOwner::Named(&named)] {
            assert!(!ours.is_form_token(other, &token));
        }
        assert!(!ours.is_form_token(FormOwner::Session(&one), ""));
        assert_ne!(token_hash(&one), token_hash(&two));
        assert_eq!(token_hash(&one).len(), 52);
    }
}
